// The longest chain of what must come one after the other, computed apart from the engine: no simulation is faster.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"
#include "tests/simulator/analytic/random_jobs.h"

namespace trivium::simulator {
namespace {

using program::Group;
using program::Lane;
using program::Program;

/// Ends of all ops, pushed later until nothing moves: an op ends its duration after the latest of what it waits for.
class LongestChain {
 public:
  explicit LongestChain(const CostedProgram& costed) : costed_(costed), program_(*costed.program) {
    for (const program::Role& role : program_.roles) {
      auto& tasks = ends_.emplace_back();
      for (const program::Task& task : role.tasks) tasks.emplace_back(program_.body_of(task).ops.size(), 0);
    }
  }

  std::int64_t length() {
    do {
      moved_ = false;
      rendezvous_.swap(known_);
      rendezvous_.clear();
      for (const program::Role& role : program_.roles) walk(role);
    } while (moved_ || rendezvous_ != known_);
    return longest_;
  }

 private:
  void walk(const program::Role& role) {
    const auto stage = static_cast<std::size_t>(role.stage);
    std::map<Group, int> places;
    std::int64_t computed = 0;  // the compute lane runs tasks in order
    for (std::size_t t = 0; t < role.tasks.size(); ++t) {
      const program::Task& task = role.tasks[t];
      const program::Body& body = program_.body_of(task);
      auto& ends = ends_[stage][t];
      std::array<std::int64_t, program::kLanes> lanes{};  // ops of a body keep their order on every lane
      for (std::size_t s = 0; s < body.segments.size(); ++s) {
        std::int64_t entry = 0;
        for (const program::Dependency& d : task.after) {
          if (d.before == static_cast<int>(s)) entry = std::max(entry, end_of(role, d));
        }
        for (int i = body.segments[s].begin; i < body.segments[s].end; ++i) {
          const program::Op& op = body.ops[static_cast<std::size_t>(i)];
          auto& lane = lanes[static_cast<std::size_t>(op.lane)];
          std::int64_t start = std::max(entry, lane);
          if (op.lane == Lane::kCompute) start = std::max(start, computed);
          for (const int before : op.after) {
            if (before >= 0) start = std::max(start, ends[static_cast<std::size_t>(before)]);
          }
          std::int64_t ps = costed_.op_ps[stage][static_cast<std::size_t>(task.body)][static_cast<std::size_t>(i)];
          if (joins_stages(op)) {
            const std::pair<int, int> key = task.transfer >= 0
                                                ? std::pair(-1, task.transfer)
                                                : std::pair(static_cast<int>(op.group), places[op.group]++);
            auto& [latest, longest] = rendezvous_[key];
            latest = std::max(latest, start);
            longest = std::max(longest, ps);
            if (const auto known = known_.find(key); known != known_.end()) {
              start = std::max(start, known->second.first);
              ps = std::max(ps, known->second.second);
            }
          }
          lane = start + ps;
          if (op.lane == Lane::kCompute) computed = lane;
          moved_ |= ends[static_cast<std::size_t>(i)] != lane;
          ends[static_cast<std::size_t>(i)] = lane;
          longest_ = std::max(longest_, lane);
        }
      }
    }
  }

  static bool joins_stages(const program::Op& op) {
    return program::is_communication(op.kind) && (op.group == Group::kPipeline || op.group == Group::kEmbedding ||
                                                  op.group == Group::kModel || op.group == Group::kWorld);
  }

  std::int64_t end_of(const program::Role& role, const program::Dependency& d) const {
    const program::Body& body = program_.body_of(role.tasks[static_cast<std::size_t>(d.task)]);
    const auto& ends = ends_[static_cast<std::size_t>(role.stage)][static_cast<std::size_t>(d.task)];
    std::int64_t latest = 0;
    for (std::size_t s = 0; s < body.segments.size(); ++s) {
      if (d.segment != program::kWholeTask && d.segment != static_cast<int>(s)) continue;
      for (int i = body.segments[s].begin; i < body.segments[s].end; ++i) {
        latest = std::max(latest, ends[static_cast<std::size_t>(i)]);
      }
    }
    return latest;
  }

  const CostedProgram& costed_;
  const Program& program_;
  std::vector<std::vector<std::vector<std::int64_t>>> ends_;                                 // [stage][task][op]
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> rendezvous_, known_;  // latest start, longest
  std::int64_t longest_ = 0;
  bool moved_ = false;
};

TEST(CriticalPath, NoIterationIsShorterNorLongerThanAllWorkInARow) {
  std::mt19937 random(41);
  int tight = 0;
  for (int i = 0; i < 120; ++i) {
    const RandomJob made = random_job(random);
    SCOPED_TRACE(program::summary(made.job.plan));
    const Program program = std::get<Program>(program::lower(made.job));
    const CostedProgram costed = cost(program, made.cluster);
    const std::int64_t chain = LongestChain(costed).length();
    const ListSchedule simulated = list_schedule(costed, Granularity::kOp).value_or_throw();
    std::int64_t serial = 0;
    for (const auto& spans : simulated.stages) {
      for (const Span& span : spans) serial += span.end_ps - span.begin_ps;
    }
    EXPECT_LE(chain, simulated.makespan_ps);
    EXPECT_LE(simulated.makespan_ps, serial);
    tight += chain == simulated.makespan_ps ? 1 : 0;
  }
  EXPECT_GT(tight, 20);  // where no two communications want one lane at once, the chain is all there is
}

}  // namespace
}  // namespace trivium::simulator
