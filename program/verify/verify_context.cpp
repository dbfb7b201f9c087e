#include "program/verify/verify_context.h"

#include <fmt/format.h>

#include <map>

#include "program/ir/text.h"

namespace trivium::program {
namespace {

// How often what lies in each buffer of a body was shifted: keys, or gradients of the keys of so many steps back.
class Shifts {
 public:
  Shifts(const Body& body, int ranks, std::vector<std::string>& problems)
      : body_(body), ranks_(ranks), problems_(problems) {}

  void follow(const Op& op, int index) {
    if (op.lane == Lane::kData) return;  // columns of a parameter's gradient, not of tokens
    switch (op.kind) {
      case OpKind::kSplitKv:
        shifts_[op.out[0]] = 0;
        break;
      case OpKind::kRingShift:
        shifts_[op.out[0]] = shifts_[op.in[0]] + 1;
        break;
      case OpKind::kAttentionBlock:
        expect(index, "reads keys", op.in[1], op.k);
        break;
      case OpKind::kAttentionBlockBackward:
        expect(index, "reads keys", op.in[4], op.k);
        shifts_[op.out[1]] = static_cast<int>(op.k);
        break;
      case OpKind::kAdd:
        if (shifts_.contains(op.in[0])) expect(index, "adds to gradients", op.out[0], shifts_[op.in[0]]);
        break;
      case OpKind::kJoinKv:
        expect(index, "takes home gradients", op.in[0], ranks_);
        break;
      default:
        break;
    }
  }

 private:
  void expect(int index, const char* what, int buffer, std::int64_t wanted) {
    if (shifts_[buffer] == wanted) return;
    problems_.push_back(fmt::format("body \"{}\" op {} ({}) {} that were shifted {} times, not {}", body_.name, index,
                                    name_of(body_.ops[static_cast<std::size_t>(index)].kind), what, shifts_[buffer],
                                    wanted));
  }

  const Body& body_;
  int ranks_;
  std::vector<std::string>& problems_;
  std::map<int, int> shifts_;
};

}  // namespace

void check_rings(const Program& program, std::vector<std::string>& problems) {
  if (program.mesh.context() == 1) return;
  for (const Body& body : program.bodies) {
    Shifts shifts(body, program.mesh.group_size(Group::kContextRing), problems);
    for (std::size_t i = 0; i < body.ops.size(); ++i) shifts.follow(body.ops[i], static_cast<int>(i));
  }
}

}  // namespace trivium::program
