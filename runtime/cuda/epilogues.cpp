#include "runtime/cuda/epilogues.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace trivium::runtime::cuda {
namespace {

using program::Body;
using program::Buffer;
using program::ChunkTemplate;
using program::Op;
using program::OpKind;

constexpr std::int64_t kGelu = 0, kRowsOf = 8;  // kActivation's k; cuBLASLt: rows of the kept input are multiples

struct Pair {
  const Op* product = nullptr;
  const Op* activation = nullptr;
};

/// Looks for pairs in one body of a kind.
class BodyPairs {
 public:
  BodyPairs(const ChunkTemplate& kind, const Body& body) : kind_(kind), body_(body) {}

  template <class Visit>
  void visit(const Visit& visit) const {
    for (const program::Segment& segment : body_.segments) {
      for (int j = segment.begin; j < segment.end; ++j) {
        const Op& activation = op(j);
        const bool forward = activation.kind == OpKind::kActivation;
        if (!forward && activation.kind != OpKind::kActivationBackward) continue;
        const int product = forward ? activation.in[0] : activation.in[2];
        for (int i = j - 1; i >= segment.begin; --i) {
          if (!writes(op(i), product)) continue;
          if (fits(op(i), activation, forward) && may_wait(i, j, product)) visit(Pair{&op(i), &activation});
          break;
        }
      }
    }
  }

 private:
  const Op& op(int i) const { return body_.ops[static_cast<std::size_t>(i)]; }
  const Buffer& buffer(int id) const { return kind_.buffers[static_cast<std::size_t>(id)]; }

  static bool writes(const Op& op, int id) { return std::find(op.out.begin(), op.out.end(), id) != op.out.end(); }

  bool overlap(int a, int b) const {
    if (a == program::kNoBuffer || b == program::kNoBuffer) return false;
    const Buffer &x = buffer(a), &y = buffer(b);
    return x.space == y.space && x.offset < y.offset + y.bytes() && y.offset < x.offset + x.bytes();
  }

  // 16-bit GELU with a bias, over all columns of a product in 16 bits that adds none itself; what is written must not
  // lie where something is read meanwhile.
  bool fits(const Op& product, const Op& activation, bool forward) const {
    const bool kinds = forward ? product.kind == OpKind::kMatmul && product.in[2] == program::kNoBuffer
                               : product.kind == OpKind::kMatmulDgrad;
    const std::int64_t columns = forward ? product.n : product.k;
    const int kept = activation.in[0], result = activation.out[0];
    return kinds && product.fp8 == program::Fp8::kNone && program::is_half(product.dtype) && activation.k == kGelu &&
           columns == activation.n && columns % kRowsOf == 0 && activation.in[1] != program::kNoBuffer &&
           buffer(result).dtype == product.dtype && buffer(kept).dtype == product.dtype && !overlap(result, kept) &&
           !overlap(result, product.in[0]) && !overlap(result, product.in[1]);
  }

  // The product's turn passes until the activation's: nobody else reads what it writes or writes what it reads until
  // then, and no other lane counts on it being done.
  bool may_wait(int i, int j, int written) const {
    if (op(i).lane != program::Lane::kCompute || op(j).lane != program::Lane::kCompute) return false;
    for (int between = i + 1; between < j; ++between) {
      for (const int id : op(between).in) {
        if (overlap(id, written)) return false;
      }
      for (const int id : op(between).out) {
        if (overlap(id, written) || overlap(id, op(i).in[0]) || overlap(id, op(i).in[1])) return false;
      }
    }
    const auto counts_on_it = [&](std::int32_t earlier) { return earlier >= i && earlier < j; };
    return std::none_of(body_.ops.begin(), body_.ops.end(),
                        [&](const Op& any) { return std::any_of(any.after.begin(), any.after.end(), counts_on_it); });
  }

  const ChunkTemplate& kind_;
  const Body& body_;
};

bool names(const Op& op, int id) {
  return std::find(op.in.begin(), op.in.end(), id) != op.in.end() ||
         std::find(op.out.begin(), op.out.end(), id) != op.out.end();
}

}  // namespace

Epilogues::Epilogues(const program::Program& program) {
  std::map<std::pair<int, int>, std::vector<Pair>> forward;  // by kind and kept input
  std::map<const Op*, const Op*> gradients;                  // activation's gradient to its product
  for (const Body& body : program.bodies) {
    BodyPairs(program.kind_of(body), body).visit([&](const Pair& pair) {
      if (pair.activation->kind == OpKind::kActivation) {
        forward[{body.chunk_kind, pair.activation->in[0]}].push_back(pair);
      } else {
        gradients[pair.activation] = pair.product;
      }
    });
  }
  const auto add = [&](const Op* product, const Op* activation, EpiloguePart part) {
    parts_[product] = EpiloguePart::kProduct;
    parts_[activation] = part;
    ++pairs_;
  };
  // All who read or write the kept input must know that it holds the bias.
  for (const auto& [key, pairs] : forward) {
    std::set<const Op*> known;
    for (const Pair& pair : pairs) known.insert({pair.product, pair.activation});
    std::vector<const Op*> readers;
    bool all_known = true;
    for (const Body& body : program.bodies) {
      if (body.chunk_kind != key.first) continue;
      for (const Op& op : body.ops) {
        if (!names(op, key.second) || known.contains(&op)) continue;
        if (op.kind == OpKind::kActivationBackward && op.in[0] == key.second) {
          readers.push_back(&op);
        } else {
          all_known = false;
        }
      }
    }
    if (!all_known) continue;
    for (const Pair& pair : pairs) add(pair.product, pair.activation, EpiloguePart::kActivation);
    for (const Op* reader : readers) {
      const auto product = gradients.find(reader);
      if (product == gradients.end()) {
        parts_[reader] = EpiloguePart::kGradientAlone;
      } else {
        add(product->second, reader, EpiloguePart::kGradient);
      }
    }
  }
}

}  // namespace trivium::runtime::cuda
