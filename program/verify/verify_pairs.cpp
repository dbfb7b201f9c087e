#include "program/verify/verify_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "program/ir/text.h"
#include "program/ir/turns.h"

namespace trivium::program {
namespace {

constexpr std::array kWorkspaces{Space::kWorkspace, Space::kForwardWorkspace};

/// What of a body matters here.
struct Facts {
  std::array<bool, kWorkspaces.size()> uses{};
  std::vector<std::pair<std::int16_t, std::int16_t>> waits;  ///< segment, an earlier one that it waits for
};

Facts facts_of(const Program& program, const Body& body) {
  const ChunkTemplate& kind = program.kind_of(body);
  Facts facts;
  std::vector<std::int16_t> segment_of(body.ops.size());
  for (std::size_t s = 0; s < body.segments.size(); ++s) {
    for (int i = body.segments[s].begin; i < body.segments[s].end; ++i) {
      segment_of[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(s);
    }
  }
  std::set<std::pair<std::int16_t, std::int16_t>> waits;
  for (std::size_t i = 0; i < body.ops.size(); ++i) {
    const Op& op = body.ops[i];
    const auto touch = [&](int b) {
      if (b == kNoBuffer) return;
      const Space space = kind.buffers[static_cast<std::size_t>(b)].space;
      for (std::size_t w = 0; w < kWorkspaces.size(); ++w) facts.uses[w] = facts.uses[w] || space == kWorkspaces[w];
    };
    for (const int b : op.in) touch(b);
    for (const int b : op.out) touch(b);
    for (const std::int32_t before : op.after) {
      if (before < 0 || segment_of[static_cast<std::size_t>(before)] == segment_of[i]) continue;
      waits.emplace(segment_of[i], segment_of[static_cast<std::size_t>(before)]);
    }
  }
  facts.waits.assign(waits.begin(), waits.end());
  return facts;
}

class PairChecker {
 public:
  PairChecker(const Program& program, const Role& role, std::map<int, Facts>& facts, std::vector<std::string>& problems)
      : program_(program), role_(role), facts_(facts), problems_(problems) {}

  void check() {
    check_partners();
    if (role_.order.empty()) return;
    issued_.resize(role_.tasks.size());
    for (const Issue& issue : role_.order) {
      if (is_pass(role_.tasks[static_cast<std::size_t>(issue.task)].kind)) visit(issue);
    }
  }

 private:
  static bool is_pass(TaskKind kind) {
    return kind == TaskKind::kForward || kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeights;
  }

  const Facts& facts_of_task(const Task& task) {
    const auto [at, fresh] = facts_.try_emplace(task.body);
    if (fresh) at->second = facts_of(program_, program_.body_of(task));
    return at->second;
  }

  void say(std::size_t id, const std::string& what) {
    problems_.push_back(fmt::format("{} {}", name_task(role_, id), what));
  }

  void check_partners() {
    std::set<std::int32_t> taken;
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) {
      const Task& task = role_.tasks[id];
      if (task.beside < 0) continue;
      if (static_cast<std::size_t>(task.beside) >= id) {
        say(id, "takes turns with a later task");
        continue;
      }
      const Task& other = role_.tasks[static_cast<std::size_t>(task.beside)];
      const bool passes = task.kind == TaskKind::kBackward && other.kind == TaskKind::kForward;
      if (!passes) say(id, "takes turns with what is no pass the other way");
      if (task.chunk == other.chunk && task.micro_batch == other.micro_batch)
        say(id, "takes turns with its own forward");
      if (!taken.insert(task.beside).second) say(id, "takes turns with a forward that takes turns with another");
    }
  }

  // Whether the two, both begun, may be.
  bool may_mix(std::int32_t a, std::int32_t b) const {
    return role_.tasks[static_cast<std::size_t>(a)].beside == b || role_.tasks[static_cast<std::size_t>(b)].beside == a;
  }

  void visit(const Issue& issue) {
    const auto id = static_cast<std::size_t>(issue.task);
    const Task& task = role_.tasks[id];
    const Facts& facts = facts_of_task(task);
    std::vector<char>& issued = issued_[id];
    if (issued.empty()) {
      issued.resize(program_.body_of(task).segments.size(), 0);
      begin(issue.task, facts);
      open_.push_back(issue.task);
    }
    for (const auto& [segment, before] : facts.waits) {
      if (segment == issue.segment && issued[static_cast<std::size_t>(before)] == 0) {
        say(id, fmt::format("is issued at segment {} before segment {} that it waits for", segment, before));
      }
    }
    issued[static_cast<std::size_t>(issue.segment)] = 1;
    if (std::find(issued.begin(), issued.end(), 0) == issued.end()) std::erase(open_, issue.task);
  }

  void begin(std::int32_t task, const Facts& facts) {
    for (const std::int32_t other : open_) {
      const Facts& theirs = facts_of_task(role_.tasks[static_cast<std::size_t>(other)]);
      for (std::size_t w = 0; w < kWorkspaces.size(); ++w) {
        if (!facts.uses[w] || !theirs.uses[w]) continue;
        say(static_cast<std::size_t>(task),
            fmt::format("begins in the {} of task {}, which has not ended", name_of(kWorkspaces[w]), other));
      }
      if (!may_mix(task, other)) {
        say(static_cast<std::size_t>(task), fmt::format("begins before task {}, no partner of it, has ended", other));
      }
    }
  }

  const Program& program_;
  const Role& role_;
  std::map<int, Facts>& facts_;
  std::vector<std::string>& problems_;
  std::vector<std::vector<char>> issued_;  // by task and segment
  std::vector<std::int32_t> open_;         // passes begun and not ended
};

}  // namespace

void check_pairs(const Program& program, std::vector<std::string>& problems) {
  std::map<int, Facts> facts;  // by body
  for (const Role& role : program.roles) PairChecker(program, role, facts, problems).check();
}

}  // namespace trivium::program
