// What lanes wait for, of a program small enough to be read off.
#include "runtime/executor/lane_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "program/lower/lower.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime {
namespace {

using program::Lane;
using program::Task;
using program::TaskKind;

program::Program lowered(const program::Plan& plan) {
  return std::get<program::Program>(program::lower(testing::toy_job(plan)));
}

// All work of one rank without transfers is on the compute lane, in order: nothing is left to wait for.
TEST(LaneOrder, OneLaneNeedsNoMarks) {
  const program::Program program = lowered({});
  const program::Role& role = program.roles.front();
  const LaneOrder order(program, role);
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const program::Body& body = program.body_of(role.tasks[t]);
    for (std::size_t s = 0; s < body.segments.size(); ++s) {
      EXPECT_TRUE(order.before(static_cast<int>(t), static_cast<int>(s)).empty());
    }
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      EXPECT_FALSE(order.is_awaited(static_cast<int>(t), static_cast<int>(i)));
    }
  }
  EXPECT_TRUE(order.side_lanes().empty());
}

// The second stage's forward reads what a receive brought: its first segment, on the compute lane, waits for the mark
// of the receive's one op. The receive of the next micro-batch into the same frame may wait for nothing of that kind.
TEST(LaneOrder, AForwardWaitsForItsReceive) {
  program::Plan plan;
  plan.pipeline = 2;
  const program::Program program = lowered(plan);
  const program::Role& role = program.roles.back();
  const LaneOrder order(program, role);
  int forwards = 0;
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const Task& task = role.tasks[t];
    if (task.kind != TaskKind::kForward) continue;
    ++forwards;
    int received = -1;
    for (std::size_t r = 0; r < role.tasks.size(); ++r) {
      if (role.tasks[r].kind == TaskKind::kRecv && role.tasks[r].micro_batch == task.micro_batch) {
        received = static_cast<int>(r);
      }
    }
    const LaneOrder::Wait wanted{order.mark_of(received, 0), Lane::kCompute};
    const auto waits = order.before(static_cast<int>(t), 0);
    EXPECT_NE(std::find(waits.begin(), waits.end(), wanted), waits.end());
    EXPECT_TRUE(order.is_awaited(received, 0));
  }
  EXPECT_EQ(forwards, 8);
}

// Every mark that a segment or an op waits for is left by an op that says so, and marks are distinct.
TEST(LaneOrder, WhatIsAwaitedIsMarked) {
  program::Plan plan;
  plan.tensor = 2;
  plan.data = 2;
  plan.zero_stage = 3;
  plan.overlap.tensor = plan.overlap.gradient_reduction = plan.overlap.parameter_gather = true;
  const program::Program program = lowered(plan);
  const program::Role& role = program.roles.front();
  const LaneOrder order(program, role);
  std::set<std::int32_t> marked, awaited;
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const program::Body& body = program.body_of(role.tasks[t]);
    const auto task = static_cast<std::int32_t>(t);
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const auto op = static_cast<int>(i);
      if (order.is_awaited(task, op)) {
        EXPECT_TRUE(marked.insert(order.mark_of(task, op)).second);
      }
      for (const std::int32_t earlier : body.ops[i].after) {
        if (earlier >= 0) awaited.insert(order.mark_of(task, earlier));
      }
    }
    for (std::size_t s = 0; s < body.segments.size(); ++s) {
      for (const LaneOrder::Wait& wait : order.before(task, static_cast<int>(s))) awaited.insert(wait.mark);
    }
  }
  EXPECT_EQ(marked, awaited);
  EXPECT_GT(awaited.size(), 100U);
  ASSERT_EQ(order.side_lanes().size(), 1U);
  EXPECT_EQ(order.side_lanes().front(), Lane::kTensor);
  EXPECT_GT(order.side_mark(0, 0), *marked.rbegin());
}

}  // namespace
}  // namespace trivium::runtime
