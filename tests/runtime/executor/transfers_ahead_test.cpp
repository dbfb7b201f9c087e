// Transfers on cores, whose hosts do one thing at a time.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/executor/train.h"
#include "tests/program/jobs.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime {
namespace {

using program::Event;
using program::Role;
using program::TaskKind;

/// Sends whose place in the host's order is after a pass that they do not wait for.
int displaced_sends(const Role& role) {
  int displaced = 0;
  std::int32_t last_pass = -1;
  for (const program::Issue& issue : role.order) {
    const program::Task& task = role.tasks[static_cast<std::size_t>(issue.task)];
    if (task.transfer < 0) last_pass = issue.task;
    if (task.kind == TaskKind::kSend && task.after.front().task != last_pass) ++displaced;
  }
  return displaced;
}

// A partner would wait meanwhile: in interleaved schedules for as long as a pass takes, every other pass.
TEST(TransfersAhead, SendsLeaveBehindThePassThatMadeThem) {
  program::Plan plan;
  plan.pipeline = 2;
  plan.virtual_stages = 2;
  plan.schedule = program::Schedule::kInterleaved;
  const program::Job job = testing::toy_job(plan);
  const program::VerifiedProgram verified = program::verified(testing::ordered_program(job));
  const program::Program& program = verified;
  const auto corpus = testing::toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  TrainOptions options;
  options.steps = 2;
  options.timeline_steps = 1;
  const TrainResult result = train_in_threads(verified, *corpus, options);
  ASSERT_EQ(result.refused, "");
  int sends = 0;
  for (const Event& send : result.timeline.events) {
    const Role& role = program.role_of(send.rank);
    const program::Task& task = role.tasks[static_cast<std::size_t>(send.task)];
    if (task.kind != TaskKind::kSend) continue;
    ++sends;
    std::int64_t made = 0;
    for (const Event& event : result.timeline.events) {
      if (event.rank == send.rank && event.task == task.after.front().task) made = std::max(made, event.end_ps);
    }
    const auto between = std::ranges::count_if(result.timeline.events, [&](const Event& event) {
      return event.rank == send.rank && event.lane == program::Lane::kCompute && event.start_ps >= made &&
             event.start_ps < send.start_ps;
    });
    EXPECT_EQ(between, 0) << "rank " << send.rank << ", task " << send.task;
  }
  EXPECT_EQ(sends, 2 * 3 * 8);  // both ways over three borders of four chunks, eight micro-batches
  EXPECT_GT(displaced_sends(program.roles[0]) + displaced_sends(program.roles[1]), 0);
}

}  // namespace
}  // namespace trivium::runtime
