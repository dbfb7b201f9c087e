#include "program/record/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::program {
namespace {

using nlohmann::json;

simulator::Prepared prepared_stages(const hardware::Cluster& cluster) {
  Job job;
  job.model = models::load_model("gpt-tiny");
  job.training.sequence = 32;
  job.training.global_batch = 2;
  job.plan.pipeline = 2;
  job.plan.precision = DType::kFp32;
  return simulator::prepared(job, cluster);
}

Program two_stages() { return prepared_stages(hardware::load_cluster("dgx-a100-80gb:1")).program(); }

/// An event of the first task of a kind on a rank.
Event event_of(const Program& program, int rank, TaskKind kind, std::int32_t op) {
  const auto& tasks = program.role_of(rank).tasks;
  Event event;
  event.rank = rank;
  event.op = op;
  while (tasks[static_cast<std::size_t>(event.task)].kind != kind) ++event.task;
  return event;
}

TEST(ChromeTrace, NamesAnEventByWhatIsComputed) {
  const Program program = two_stages();
  EXPECT_EQ(name_of(program, event_of(program, 0, TaskKind::kForward, 0)), "forward mb0 embedding");
  EXPECT_EQ(name_of(program, event_of(program, 0, TaskKind::kForward, -1)), "forward mb0");
  // Layers are those of the model: the second stage begins in its middle.
  const Chunk& chunk = program.role_of(1).chunks.front();
  ASSERT_GT(chunk.first_layer, 0);
  EXPECT_EQ(name_of(program, event_of(program, 1, TaskKind::kForward, 0)),
            "forward mb0 layer " + std::to_string(chunk.first_layer) + " norm");
}

TEST(ChromeTrace, KeepsPicosecondsAndPutsStepsOneAfterTheOther) {
  const Program program = two_stages();
  Event first = event_of(program, 0, TaskKind::kForward, 0);
  first.start_ps = 1;
  first.end_ps = 2'500'000;
  Event second = first;
  second.step = 1;
  const json trace = json::parse(chrome_trace(program, {{first, second}}));
  std::vector<double> starts;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") starts.push_back(event.at("ts"));
  }
  // 1 ps is 1e-6 us; the second step starts where the first ended, 2.5 us later.
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_DOUBLE_EQ(starts[0], 0.000001);
  EXPECT_DOUBLE_EQ(starts[1], 2.500001);
}

TEST(ChromeTrace, HasANamedProcessPerRankAndThreadPerLane) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const simulator::Prepared prepared = prepared_stages(cluster);
  const Program& program = prepared.program();
  simulator::SimulationOptions how;
  how.timeline = true;
  const auto simulation = simulator::simulate(prepared, how).value_or_throw();
  const json trace = json::parse(chrome_trace(program, simulation.timeline));
  std::set<std::pair<int, int>> named, used;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name") named.emplace(event.at("pid"), event.at("tid"));
    if (event.at("ph") == "X") used.emplace(event.at("pid"), event.at("tid"));
  }
  EXPECT_EQ(named, used);
  EXPECT_GE(named.size(), 4U);  // two ranks, each with a compute and a pipeline lane
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  EXPECT_TRUE(json::parse(chrome_trace(two_stages(), {})).at("traceEvents").empty());
}

}  // namespace
}  // namespace trivium::program
