// Plans as plan controls, rows, points and reports; projects as files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "gui/model/axis.h"
#include "gui/model/evaluation.h"
#include "gui/model/plan_controls.h"
#include "gui/model/plan_rows.h"
#include "gui/model/project.h"
#include "gui/model/report.h"
#include "gui/model/sensitivity.h"
#include "gui/model/spread.h"
#include "program/plan/job_json.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const program::Plan& plan_of(const Scenario& scenario) { return scenario.file.job.plan; }

TEST(Ticks, AreRoundNumbersWithinTheRange) {
  EXPECT_THAT(ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks(0.3, 1.1, 4), ElementsAre(testing::DoubleEq(0.4), testing::DoubleEq(0.6), testing::DoubleEq(0.8),
                                              testing::DoubleEq(1.0)));
  EXPECT_THAT(ticks(5, 5, 4), ElementsAre(5));
  EXPECT_FALSE(ticks(1e12, 1e12 + 1, 7).empty());
}

TEST(PlanControls, OfferWhatTheJobAllows) {
  const Scenario scenario = example_scenario();
  EXPECT_THAT(choices(scenario, "pipeline"), Contains("96"));  // 96 layers
  EXPECT_THAT(choices(scenario, "pipeline"), Not(Contains("5")));
  EXPECT_THAT(choices(scenario, "tensor"), Contains("8"));
  for (const PlanControl& plan_control : plan_controls()) {
    EXPECT_THAT(choices(scenario, plan_control.field), Contains(value_of(scenario, plan_control.field)))
        << plan_control.field;
  }
}

TEST(PlanControls, TurnWithThemWhatWouldMakeNoSense) {
  Scenario scenario = turn(example_scenario(), "virtual_stages", "2", true);
  EXPECT_EQ(plan_of(scenario).schedule, program::Schedule::kInterleaved);
  scenario = turn(std::move(scenario), "schedule", "1f1b", true);
  EXPECT_EQ(plan_of(scenario).virtual_stages, 1);
  scenario = turn(std::move(scenario), "schedule", "interleaved", true);
  EXPECT_EQ(plan_of(scenario).virtual_stages, 2);
  scenario = turn(std::move(scenario), "sequence_parallel", "true", true);
  EXPECT_TRUE(plan_of(scenario).sequence_parallel);
  scenario = turn(std::move(scenario), "tensor", "1", true);
  EXPECT_FALSE(plan_of(scenario).sequence_parallel);
  scenario = turn(std::move(scenario), "pipeline", "1", true);
  EXPECT_EQ(plan_of(scenario).schedule, program::Schedule::k1f1b);
}

TEST(PlanControls, FillTheDevicesOrLeaveThemAlone) {
  EXPECT_EQ(plan_of(turn(example_scenario(), "tensor", "4", true)).data, 16);
  EXPECT_EQ(plan_of(turn(example_scenario(), "tensor", "4", false)).data, 8);
}

TEST(PlanControls, RefuseWhatIsNoValue) {
  EXPECT_THROW(turn(example_scenario(), "tensor", "eight", true), base::Failure);
  EXPECT_THROW(turn(example_scenario(), "recompute", "some", true), base::Failure);
}

TEST(PlanControls, OfferExpertsAndShardGroupsThatDivide) {
  Scenario scenario = example_scenario();  // eight replicas of a dense model
  EXPECT_THAT(choices(scenario, "expert"), ElementsAre("1"));
  EXPECT_THAT(choices(scenario, "shard_group"), ElementsAre("0", "2", "4"));
  scenario.file.job.model.experts = models::Experts{};
  scenario.file.job.model.experts->count = 4;
  EXPECT_THAT(choices(scenario, "expert"), ElementsAre("1", "2", "4"));
  scenario = turn(std::move(scenario), "zero_stage", "2", true);
  scenario = turn(std::move(scenario), "shard_group", "4", true);
  EXPECT_EQ(plan_of(scenario).shard_group, 4);
  scenario = turn(std::move(scenario), "tensor", "64", true);  // one replica is left
  EXPECT_EQ(plan_of(scenario).data, 1);
  EXPECT_EQ(plan_of(scenario).shard_group, 0);
}

TEST(PlanControls, AreTurnedWhateverTheirKind) {
  Scenario scenario = example_scenario();
  for (const PlanControl& plan_control : plan_controls()) {
    for (const std::string& value : choices(scenario, plan_control.field)) {
      EXPECT_EQ(value_of(with_field(scenario, plan_control.field, value), plan_control.field), value)
          << plan_control.field;
    }
  }
  EXPECT_EQ(shown("bucket_bytes", "26214400"), "25.0 MiB");
  EXPECT_EQ(shown("bucket_bytes", "0"), "one a layer");
  EXPECT_EQ(shown("placement", "tensor-context-data-pipeline"), "T › C › D › P");
  EXPECT_EQ(shown("tensor", "8"), "8");
}

TEST(ParetoFront, HoldsThePlansThatNoneBeatsInBoth) {
  EXPECT_THAT(pareto_front({{3, 1}, {1, 3}, {2, 2}, {3, 3}, {2, 2.5}}), ElementsAre(1, 2, 0));
  EXPECT_THAT(pareto_front({{1, 1}, {1, 1}, {2, 1}}), ElementsAre(0));
  EXPECT_TRUE(pareto_front({}).empty());
}

PlanRow row(double iteration_s, double compute_s, double bubble_s) {
  PlanRow made;
  made.summary = "made up";
  made.iteration_s = iteration_s;
  made.breakdown_s[static_cast<std::size_t>(simulator::Part::kCompute)] = compute_s;
  made.breakdown_s[static_cast<std::size_t>(simulator::Part::kBubble)] = bubble_s;
  return made;
}

TEST(PlanRows, TellSmallCostsToo) {
  EXPECT_EQ(dollars_text(28.809), "$28.81");
  EXPECT_EQ(dollars_text(0), "$0.00");
  EXPECT_EQ(dollars_text(0.000421), "$0.00042");
}

TEST(PlanRows, SayWhichFieldsDiffer) {
  PlanRow a = row(1, 1, 0), b = row(2, 1, 1);
  b.plan.tensor = 2;
  const std::vector<DifferenceRow> rows = differences({a, b});
  const auto named = [&](const std::string& name) {
    return *std::find_if(rows.begin(), rows.end(), [&](const DifferenceRow& one) { return one.name == name; });
  };
  EXPECT_TRUE(named("tensor").differs);
  EXPECT_THAT(named("tensor").values, ElementsAre("1", "2"));
  EXPECT_FALSE(named("pipeline").differs);
  EXPECT_THAT(named("overlap.tensor").values, ElementsAre("off", "off"));
  EXPECT_EQ(rows[0].name, "iteration");
  EXPECT_TRUE(rows[0].differs);
  EXPECT_TRUE(differences({}).empty());
}

// Files leave fields out that say nothing: plans have unlike many members.
TEST(Differences, AreOfFieldsThatOnlyOnePlanUses) {
  PlanRow plain, special;
  special.plan.expert_dispatch = program::ExpertDispatch::kDeepEp;
  special.plan.recompute_layers = 3;
  for (const auto& plans : {std::vector{plain, special}, std::vector{special, plain}}) {
    std::vector<std::string> differ;
    for (const DifferenceRow& row : differences(plans)) {
      ASSERT_EQ(row.values.size(), 2u) << row.name;
      if (row.differs) differ.push_back(row.name + ": " + row.values[0] + ", " + row.values[1]);
    }
    const bool first = plans.front().plan.recompute_layers == 0;
    EXPECT_EQ(differ, first ? (std::vector<std::string>{"expert_dispatch: stack, deepep", "recompute_layers: 0, 3"})
                            : (std::vector<std::string>{"expert_dispatch: deepep, stack", "recompute_layers: 3, 0"}));
  }
}

TEST(PlanRows, SayWhyAPlanIsBehind) {
  const std::vector<std::string> lines = why_not(row(3, 1.5, 1.5), row(2, 1.8, 0.2));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("+50.0 %"));
  EXPECT_EQ(lines[1], "Loses with bubble: 1.50 s against 200 ms.");
  EXPECT_EQ(lines[2], "Gains with compute: 1.50 s against 1.80 s.");
  EXPECT_THAT(why_not(row(2, 1, 1), row(2, 1, 1))[0], HasSubstr("not slower"));
}

class ProjectFile : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("trivium-project-") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ProjectFile, IsReadBackAsItWas) {
  Project project;
  project.scenario = staged_scenario();
  project.scenario.fixed = {"tensor", "overlap.tensor"};
  project.scenario.ranks = 4;
  project.scenario.ignore_memory = true;
  project.pinned = {staged_scenario().file.job.plan, small_scenario().file.job.plan};
  project.corpus = "text.txt";
  base::write_file_atomically(path("p.json"), project_text(project));
  const Project read = read_project(path("p.json"));
  EXPECT_EQ(project_text(read), project_text(project));
  EXPECT_EQ(read.scenario.cluster.devices(), 8);
  EXPECT_EQ(read.pinned[0].pipeline, 4);
}

TEST_F(ProjectFile, MayBeAPlanFile) {
  base::write_file_atomically(path("plan.json"), program::to_json(staged_scenario().file).dump());
  EXPECT_EQ(read_project(path("plan.json")).scenario.file.job.plan.pipeline, 4);
}

TEST_F(ProjectFile, SaysWhatIsWrongAndWhere) {
  const auto complaint = [&](const std::string& content) {
    std::ofstream(path("bad.json")) << content;
    try {
      read_project(path("bad.json"));
    } catch (const base::Failure& failure) {
      EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
      return failure.error().message;
    }
    return std::string("read");
  };
  EXPECT_THAT(complaint("{"), HasSubstr("bad.json"));
  EXPECT_THAT(complaint("[]"), HasSubstr("bad.json"));
  nlohmann::json json = nlohmann::json::parse(project_text({staged_scenario(), {}, "", ""}));
  json["fixed"] = {"tensr"};
  EXPECT_THAT(complaint(json.dump()), AllOf(HasSubstr("#/fixed/0"), HasSubstr("tensor")));
  json["fixed"] = nlohmann::json::array();
  json["ranks"] = -1;
  EXPECT_THAT(complaint(json.dump()), HasSubstr("#/ranks"));
}

// What a crash or another program left of an autosaved project: every member replaced by every other kind of value or
// missing, and the text cut or altered anywhere. It is refused as input, or read and looked at.
TEST_F(ProjectFile, DamagedAnywhereIsRefusedOrRead) {
  Project project;
  project.scenario = staged_scenario();
  project.scenario.fixed = {"tensor"};
  project.pinned = {staged_scenario().file.job.plan};
  const std::string sound = project_text(project);
  int refused = 0, read = 0;
  const auto attack = [&](const std::string& text) {
    base::write_file_atomically(path("p.json"), text);
    try {
      const Project found = read_project(path("p.json"));
      evaluate(found.scenario, Depth::kQuick);
      ++read;
    } catch (const base::Failure& failure) {
      EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput) << failure.error().message;
      EXPECT_THAT(failure.error().message, HasSubstr("p.json"));
      ++refused;
    }
  };
  const nlohmann::json json = nlohmann::json::parse(sound);
  std::set<std::string> places;
  const nlohmann::json leaves = json.flatten();
  for (const auto& [leaf, value] : leaves.items()) {
    for (nlohmann::json::json_pointer at(leaf); !at.empty(); at.pop_back()) places.insert(at.to_string());
  }
  for (const std::string& place : places) {
    const nlohmann::json::json_pointer at(place);
    for (const char* other : {"null", "-1", "1e300", "\"x\"", "[]", "{}", "true"}) {
      nlohmann::json damaged = json;
      damaged[at] = nlohmann::json::parse(other);
      attack(damaged.dump());
    }
    nlohmann::json without = json;
    nlohmann::json& holder = without[at.parent_pointer()];
    if (holder.is_object()) holder.erase(at.back());
    attack(without.dump());
  }
  std::mt19937 random(23);
  for (int i = 0; i < 400; ++i) {
    std::string text = sound;
    const std::size_t place = random() % text.size();
    if (i % 2 == 0) text.resize(place);
    if (i % 2 == 1) text[place] = static_cast<char>(random() % 256);
    attack(text);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 50);
}

TEST(Evaluation, AgreesWithTheSearchAndWithItself) {
  const Evaluation quick = evaluate(staged_scenario(), Depth::kQuick), full = evaluate(staged_scenario(), Depth::kFull);
  ASSERT_TRUE(quick.runs() && full.runs());
  // Segments and ops agree where lanes are not shared inside a segment: a percent at the most.
  EXPECT_NEAR(quick.figures.iteration_s / full.figures.iteration_s, 1, 0.01);
  EXPECT_EQ(quick.memory.size(), 4U);
  EXPECT_GT(full.timeline->events.size(), quick.timeline->events.size());
}

TEST(Evaluation, EndsEarlyWhenItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  for (const Depth depth : {Depth::kQuick, Depth::kFull}) {
    const Evaluation evaluation = evaluate(staged_scenario(), depth, stop.get_token());
    EXPECT_FALSE(evaluation.runs());
    EXPECT_THAT(evaluation.refusal, HasSubstr("given up"));
    EXPECT_EQ(evaluation.timeline, nullptr);
  }
}

TEST(Evaluation, SimulatesWhatDoesNotFitAndSaysSo) {
  Scenario scenario = with_cluster(example_scenario(), "dgx-a100-80gb:1");
  scenario.file.job.plan.pipeline = 1;
  scenario.file.job.plan.data = 1;
  const Evaluation evaluation = evaluate(scenario, Depth::kQuick);
  EXPECT_TRUE(evaluation.runs());
  EXPECT_FALSE(evaluation.fits());
  EXPECT_THAT(evaluation.overflow, HasSubstr("80.0 GiB"));
}

TEST(Insight, FindsThatFasterArithmeticHelpsAndSaysWhatToChange) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  const Insight found = insight(evaluation, {});
  ASSERT_EQ(found.machine.size(), 6U);
  for (const Sensitivity& one : found.machine) {
    EXPECT_EQ(one.refusal, "");
    EXPECT_LE(one.gain, 1e-9) << one.change;  // better hardware slows nothing down
  }
  EXPECT_LT(found.machine[0].gain, 0);
  EXPECT_FALSE(found.plans.empty());
  EXPECT_FALSE(found.sentences.empty());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(insight(evaluation, stop.get_token()).machine.empty());
}

TEST(Report, HoldsWhatTheViewsShow) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  Insight said;
  said.sentences = {"The bubble is large."};
  said.machine = {{"network +10 %", -0.02, ""}};
  said.plans = {{"tensor 2 to 4", 0, "does not fit"}};
  const report::Spread spread{0.05, 50, 1, 1.01, 1.02, 1.03};
  const std::string page = report_html(evaluation, said, spread, {row(1, 1, 0)}, {{"Cluster", "AAAA"}});
  for (const char* part : {"The bubble is large.", "network +10 %", "−2.0 %", "does not fit", "95 % below 1.03 s",
                           "made up", "data:image/png;base64,AAAA", "</html>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST(Spread, HasTheIterationBetweenItsEnds) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  const auto narrow = sample_spread(evaluation, 0.02, {}), wide = sample_spread(evaluation, 0.2, {});
  ASSERT_TRUE(narrow && wide);
  EXPECT_EQ(narrow->samples, kMostSamples);
  EXPECT_LE(narrow->p5_s, narrow->p50_s);
  EXPECT_LE(narrow->p50_s, narrow->p95_s);
  EXPECT_LT(narrow->p95_s - narrow->p5_s, wide->p95_s - wide->p5_s);
  // Longer ops lengthen the path, shorter ones wait for it: chance costs time on the whole.
  EXPECT_GT(wide->p50_s, wide->nominal_s * 0.99);
  EXPECT_NEAR(narrow->nominal_s / evaluation.figures.iteration_s, 1, 0.02);
}

TEST(Spread, ComesDownToTheIterationWithoutChance) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  const auto found = sample_spread(evaluation, 1e-9, {});
  ASSERT_TRUE(found);
  // One simulation gives both: ops that are longer by a billionth at most move no quantile by more than that.
  for (const double value : {found->p5_s, found->p50_s, found->p95_s}) {
    EXPECT_NEAR(value / found->nominal_s, 1, 2e-9);
  }
}

TEST(Spread, IsNothingWhereItWasStoppedOrNothingRuns) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(sample_spread(evaluation, 0.05, stop.get_token()));
  EXPECT_FALSE(sample_spread(evaluate(staged_scenario(), Depth::kQuick), 0.05, {}));
  EXPECT_FALSE(sample_spread(evaluate(with_field(staged_scenario(), "tensor", "5"), Depth::kFull), 0.05, {}));
}

TEST(Report, TablesHaveARowForEverything) {
  const Evaluation evaluation = evaluate(staged_scenario(), Depth::kFull);
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_EQ(lines(ranks_csv(evaluation)), 1 + 8);
  EXPECT_EQ(lines(memory_csv(evaluation)), 1 + 4);
  EXPECT_EQ(lines(ranks_memory_csv(evaluation)), 1 + 8);
  EXPECT_EQ(lines(timeline_csv(evaluation)), 1 + static_cast<long>(evaluation.timeline->events.size()));
  EXPECT_EQ(lines(plans_csv({row(1, 1, 0), row(2, 1, 1)})), 1 + 2);
}

}  // namespace
}  // namespace trivium::gui
