#include "gui/timeline/spans/program_spans.h"

#include <gtest/gtest.h>

#include <set>

#include "gui/timeline/spans/critical_path.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/record/chrome_trace.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::gui {
namespace {

struct SimulationTrace {
  program::Program program;
  hardware::Cluster cluster;
  simulator::Simulation simulation;
};

SimulationTrace simulation_of(const program::Plan& plan) {
  program::Job job;
  job.model = models::load_model("gpt-tiny");
  if (plan.expert > 1) {
    job.model.linear_bias = job.model.qkv_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2};
  }
  job.training.sequence = 64;
  job.training.global_batch = 8 * plan.data;
  job.plan = plan;
  SimulationTrace simulated;
  simulated.cluster = hardware::load_cluster("dgx-a100-80gb:2");
  const simulator::Prepared prepared = simulator::prepared(job, simulated.cluster);
  simulated.program = prepared.program();
  simulated.simulation = simulator::simulate(prepared, {simulator::Granularity::kOp, true}).value_or_throw();
  return simulated;
}

SimulationTrace simulation_of(int tensor, int pipeline, int data) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.recompute = program::Recompute::kFull;
  return simulation_of(plan);
}

/// Names of the categories that spans of the plan have.
std::set<std::string> categories_of(const program::Plan& plan) {
  const SimulationTrace simulated = simulation_of(plan);
  const auto store = spans_of(simulated.program, simulated.simulation.timeline, &simulated.cluster);
  std::set<std::string> names;
  for (std::uint32_t s = 0; s < store->size(); ++s) {
    names.insert(store->categories()[static_cast<std::size_t>(store->category_of(s))].name);
  }
  return names;
}

TEST(ProgramSpans, TellEveryKindOfExchangeApart) {
  program::Plan ring;
  ring.context = 2;
  ring.attention = program::Attention::kFlash;
  EXPECT_TRUE(categories_of(ring).contains("context"));
  program::Plan away;
  away.data = 2;
  away.offload.optimizer = program::Storage::kHost;
  EXPECT_TRUE(categories_of(away).contains("offload"));
  program::Plan pairs;
  pairs.data = pairs.expert = 2;
  pairs.overlap.expert = true;
  EXPECT_TRUE(categories_of(pairs).contains("expert"));
  EXPECT_FALSE(categories_of(pairs).contains("other"));
  program::Plan plain;
  plain.data = 2;
  const std::set<std::string> usual = categories_of(plain);
  EXPECT_FALSE(usual.contains("context"));
  EXPECT_FALSE(usual.contains("offload"));
  EXPECT_FALSE(usual.contains("other"));
}

TEST(ProgramSpans, HoldsEveryEventUnderItsName) {
  const SimulationTrace simulated = simulation_of(2, 2, 1);
  const auto& events = simulated.simulation.timeline.events;
  const auto store = spans_of(simulated.program, simulated.simulation.timeline, &simulated.cluster);
  std::vector<std::int64_t> length(events.size());
  for (std::uint32_t s = 0; s < store->size(); ++s) {
    const program::Event& event = events[store->event_of(s)];
    length[store->event_of(s)] += store->end_of(s) - store->start_of(s);
    const std::string name = store->name_of(s), in_traces = program::name_of(simulated.program, event);
    const bool said_twice = store->details()[store->detail_of(s)].empty();  // "send mb0 send"
    ASSERT_EQ(name, said_twice ? in_traces.substr(0, name.size()) : in_traces);
    if (store->is_waiting(s)) {
      ASSERT_EQ(store->end_of(s) - store->start_of(s), event.wait_ps);
    }
  }
  for (std::size_t e = 0; e < events.size(); ++e) ASSERT_EQ(length[e], events[e].end_ps - events[e].start_ps);
  EXPECT_EQ(store->end(), simulated.simulation.iteration_ps);
}

TEST(ProgramSpans, StandInTheHierarchyOfTheCluster) {
  const SimulationTrace simulated = simulation_of(2, 2, 4);  // a stage on each of the two nodes
  const auto store = spans_of(simulated.program, simulated.simulation.timeline, &simulated.cluster);
  std::vector<std::string> groups;
  for (const Row& row : store->rows()) {
    if (row.kind != RowKind::kLane) groups.push_back(row.name);
  }
  EXPECT_EQ(groups, (std::vector<std::string>{simulated.cluster.name, "node 0", "rank 0 · stage 0 · tp 0 · dp 0",
                                              "node 1", "rank 8 · stage 1 · tp 0 · dp 0"}));
  EXPECT_EQ(store->left_out(), 0U);
}

TEST(ProgramSpans, JoinBothEndsOfEveryTransfer) {
  const SimulationTrace simulated = simulation_of(1, 2, 1);
  const auto store = spans_of(simulated.program, simulated.simulation.timeline, &simulated.cluster);
  std::size_t sends = 0, arrows = 0;
  for (const program::Task& task : simulated.program.roles[0].tasks) sends += task.transfer >= 0;
  for (const Flow& flow : store->flows()) {
    arrows += flow.transfer;
    EXPECT_EQ(store->start_of(flow.from), store->start_of(flow.to));  // work begins together
  }
  EXPECT_EQ(arrows, sends);
  EXPECT_GT(arrows, 0U);
}

TEST(ProgramSpans, TheCriticalPathOfASimulationHasNoGap) {
  const SimulationTrace simulated = simulation_of(2, 2, 2);
  const auto store = spans_of(simulated.program, simulated.simulation.timeline, &simulated.cluster);
  const CriticalPath path = critical_path(*store);
  EXPECT_EQ(path.idle_ps, 0);
  EXPECT_GT(path.spans.size(), 100U);
}

TEST(ProgramSpans, PutStepsOneAfterTheOther) {
  SimulationTrace simulated = simulation_of(1, 1, 1);
  program::Timeline timeline = simulated.simulation.timeline;
  const std::size_t count = timeline.events.size();
  for (std::size_t e = 0; e < count; ++e) {
    program::Event event = timeline.events[e];
    event.step = 5;
    timeline.events.push_back(event);
  }
  const auto store = spans_of(simulated.program, timeline, nullptr);
  EXPECT_EQ(store->step_starts(), (std::vector<std::int64_t>{0, simulated.simulation.iteration_ps}));
  EXPECT_EQ(store->end(), 2 * simulated.simulation.iteration_ps);
}

TEST(ProgramSpans, CountsEventsOfAnotherPlanAndShowsThemAllTheSame) {
  const SimulationTrace simulated = simulation_of(1, 1, 1);
  program::Timeline timeline;
  timeline.events.push_back({0, 0, 0, 0, program::Lane::kCompute, 0, 10, 0});
  timeline.events.push_back({0, 99, 0, 0, program::Lane::kCompute, 0, 10, 0});
  timeline.events.push_back({0, 0, 1'000'000, 0, program::Lane::kCompute, 10, 20, 0});
  timeline.events.push_back({0, 0, 0, 1'000'000, program::Lane::kCompute, 20, 5, 90});  // ends before it starts
  EXPECT_EQ(foreign_events(simulated.program, timeline), 3U);
  const auto store = spans_of(simulated.program, timeline, &simulated.cluster);
  EXPECT_EQ(store->size(), 4U);
  EXPECT_EQ(store->end(), 20);
}

}  // namespace
}  // namespace trivium::gui
