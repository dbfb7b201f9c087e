#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kTwoByTwo =
    "trivium simulate --model gpt2-124m --cluster dgx-a100-80gb:1 --tensor 2 --pipeline 2 --data 2 --micro-batch 1 "
    "--global-batch 8 --json";

double sum(const json& parts) {
  double total = 0;
  for (const auto& part : parts) total += part.get<double>();
  return total;
}

TEST(Simulate, JsonHasTheAgreedKeysAndPartsThatSum) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(kTwoByTwo);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("schema"), "trivium.simulation/1");
  const double iteration = result.at("iteration_s");
  EXPECT_GT(iteration, 0);
  // Picoseconds as doubles: the parts of a 0.1 s iteration are exact to far better than 1e-9 of it.
  EXPECT_NEAR(sum(result.at("breakdown_s")), iteration, 1e-9 * iteration);
  // 8 samples of 1,024 tokens in one iteration.
  EXPECT_NEAR(result.at("tokens_per_s").get<double>() * iteration, 8 * 1024, 1e-6);
  EXPECT_LE(result.at("mfu"), result.at("hfu"));
  ASSERT_EQ(result.at("ranks").size(), 8U);
  std::int64_t peak = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const json& entry = result.at("ranks").at(static_cast<std::size_t>(rank));
    EXPECT_EQ(entry.at("rank"), rank);
    EXPECT_EQ(entry.at("stage"), rank / 4);  // placement: tensor and data inside, pipeline outside
    EXPECT_NEAR(sum(entry.at("breakdown_s")), iteration, 1e-9 * iteration);
    EXPECT_EQ(sum(entry.at("memory_bytes")), entry.at("peak_memory_bytes").get<double>());
    peak = std::max(peak, entry.at("peak_memory_bytes").get<std::int64_t>());
  }
  EXPECT_EQ(result.at("peak_memory_bytes"), peak);
}

TEST(Simulate, GivesTheSameBytesEveryTime) {
  const Workplace workplace;
  EXPECT_EQ(workplace.run(kTwoByTwo).out, workplace.run(kTwoByTwo).out);
}

TEST(Simulate, LinksTellTheSameAsTextAndAsJson) {
  const Workplace workplace;
  const json plain = json::parse(workplace.run(kTwoByTwo).out);
  EXPECT_FALSE(plain.contains("links"));
  json result = json::parse(workplace.run(std::string(kTwoByTwo) + " --links").out);
  const json links = result.at("links");
  ASSERT_EQ(links.size(), 1U);  // one node
  EXPECT_EQ(links[0].at("wires"), "inside nodes");
  double bytes = 0;
  for (const json& use : links[0].at("uses")) bytes += use.at("bytes").get<double>();
  EXPECT_NEAR(links[0].at("bytes").get<double>(), bytes, 1e-9 * bytes);
  EXPECT_LE(links[0].at("exposed_s"), links[0].at("busy_s"));
  result.erase("links");
  EXPECT_EQ(result, plain);
  std::string text(kTwoByTwo);
  text.replace(text.find(" --json"), 7, " --links");
  EXPECT_THAT(workplace.run(text).out, HasSubstr("inside nodes  all"));
}

TEST(Simulate, TracesOfEveryRankHaveTheSameBytesEveryTime) {
  const Workplace workplace;
  const std::string command = std::string(kTwoByTwo) + " --slow-device 3=1.2 --trace ";
  ASSERT_EQ(workplace.run(command + "one.json").exit_code, 0);
  ASSERT_EQ(workplace.run(command + "two.json").exit_code, 0);
  EXPECT_EQ(workplace.read("one.json"), workplace.read("two.json"));
  std::set<int> ranks;
  const json trace = json::parse(workplace.read("one.json"));
  for (const json& event : trace.is_array() ? trace : trace.at("traceEvents")) ranks.insert(event.at("pid").get<int>());
  EXPECT_EQ(ranks.size(), 8U);
}

TEST(Simulate, MarksAPlanThatDoesNotFitAsHypothetical) {
  const Workplace workplace;
  const std::string command =
      "trivium simulate --model gpt3-175b --cluster dgx-a100-80gb:1 --tensor 8 --global-batch 8 --recompute full";
  const Outcome refused = workplace.run(command);
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_NE(refused.err.find("GiB of 80.0 GiB"), std::string::npos) << refused.err;
  const Outcome ignored = workplace.run(command + " --ignore-memory --json");
  ASSERT_EQ(ignored.exit_code, 0) << ignored.err;
  EXPECT_EQ(json::parse(ignored.out).at("hypothetical"), true);
}

// 1e12 tokens on two nodes: energy is power times time, and the DGX has a price.
TEST(Simulate, CountsTimeEnergyAndPriceOfAWholeTraining) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(
      "trivium simulate --model gpt2-124m --cluster dgx-a100-80gb:2 --data 16 --global-batch 64 "
      "--total-tokens 1000000000000 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  const json& whole = result.at("whole_training");
  const double seconds = whole.at("seconds");
  const double slower = result.at("iteration_expected_s").get<double>() / result.at("iteration_s").get<double>();
  EXPECT_NEAR(seconds * result.at("tokens_per_s").get<double>(), 1e12 * slower, 1) << "as expected when measured";
  const auto [low, high] = result.at("iteration_interval_90_s").get<std::pair<double, double>>();
  EXPECT_NEAR(whole.at("seconds_interval_90").at(1).get<double>() / whole.at("seconds_interval_90").at(0).get<double>(),
              high / low, 1e-9);
  // 2 nodes x (8 x 400 W + 3,300 W) = 13 kW; 2 x $40.97 an hour.
  EXPECT_NEAR(whole.at("energy_joules").get<double>(), 13'000 * seconds, 1);
  EXPECT_NEAR(whole.at("cost_usd").get<double>(), 2 * 40.97 * seconds / 3600, 0.01);
}

TEST(Simulate, TakesThePlanFileAndTheResultOfThePlanner) {
  const Workplace workplace;
  const Outcome planned = workplace.run(
      "trivium plan --model gpt-tiny --cluster generic-cpu --ranks 2 --global-batch 8 -o plan.json --json > "
      "result.json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Outcome from_plan = workplace.run("trivium simulate plan.json --json");
  ASSERT_EQ(from_plan.exit_code, 0) << from_plan.err;
  EXPECT_EQ(from_plan.out, workplace.run("trivium simulate result.json --json").out);
  // What the planner promised is what the simulator finds.
  EXPECT_EQ(json::parse(workplace.read("result.json")).at("best").at("iteration_s"),
            json::parse(from_plan.out).at("iteration_s"));
}

// Reductions and transfers of two nodes overlap: the report has both figures, and the first is that of every rank.
TEST(Simulate, SaysWhatSharedLinksCost) {
  const Workplace workplace;
  const std::string command =
      "trivium simulate --model gpt3-1.3b --cluster dgx-a100-80gb:4 --tensor 8 --pipeline 2 --data 2 --global-batch 16 "
      "--overlap-gradient-reduction";
  const Outcome text = workplace.run(command), folded = workplace.run(command + " --json"),
                every = workplace.run(command + " --json --every-rank");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find(" if communication that overlaps did not share links\n"), std::string::npos) << text.out;
  const double shared = json::parse(folded.out).at("iteration_s"), simulated = json::parse(every.out).at("iteration_s");
  EXPECT_LT(json::parse(folded.out).at("iteration_unshared_s").get<double>(), shared);
  EXPECT_NEAR(shared, simulated, 1e-9 * simulated);
}

// Quantiles come in order, the nominal iteration lies below them (meetings wait for the slowest), and the draw is the
// seed's.
TEST(Simulate, DrawsIterationsWithJitter) {
  const Workplace workplace;
  const std::string command = std::string(kTwoByTwo) + " --jitter 5% --samples 20 --seed 7";
  const Outcome outcome = workplace.run(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out), drawn = result.at("uncertainty");
  EXPECT_EQ(drawn.at("jitter"), 0.05);
  EXPECT_EQ(drawn.at("samples"), 20);
  EXPECT_EQ(drawn.at("seed"), 7);
  const double nominal = result.at("iteration_s"), p5 = drawn.at("iteration_p5_s"), p50 = drawn.at("iteration_p50_s"),
               p95 = drawn.at("iteration_p95_s");
  EXPECT_LT(nominal, p5);
  EXPECT_LT(p5, p50);
  EXPECT_LT(p50, p95);
  EXPECT_LT(p95, 1.05 * nominal);
  EXPECT_EQ(workplace.run(command).out, outcome.out);
  EXPECT_NE(workplace.run(std::string(kTwoByTwo) + " --jitter 0.05 --samples 20 --seed 8").out, outcome.out);
}

TEST(Simulate, ASlowDeviceOrLinkHoldsAllUp) {
  const Workplace workplace;
  const auto iteration = [&](const std::string& options) {
    const Outcome outcome = workplace.run(std::string(kTwoByTwo) + options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("iteration_s").get<double>();
  };
  const double nominal = iteration(" --every-rank");
  EXPECT_GT(iteration(" --slow-device 5=1.3"), nominal);
  EXPECT_LT(iteration(" --slow-device 5=1.3"), 1.3 * nominal);
  EXPECT_GT(iteration(" --slow-link 5=2 --slow-link 6=3"), iteration(" --slow-link 5=2"));
}

// 8 devices with 1,000 h each fail every 125 h; checkpoints of 1 h lie sqrt(2 · 1 · 125) h apart by Young.
TEST(Simulate, SaysWhatFailuresLeave) {
  const Workplace workplace;
  const Outcome outcome = workplace.run(std::string(kTwoByTwo) +
                                        " --mtbf 1000h --checkpoint-cost 1h --restart-cost 0s --tokens 1000000000");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out), failures = result.at("failures");
  EXPECT_EQ(failures.at("mtbf_s"), 125 * 3600);
  EXPECT_NEAR(failures.at("young_interval_s").get<double>(), 15.811388 * 3600, 1);
  const double goodput = failures.at("goodput");
  EXPECT_NEAR(failures.at("simulated_goodput").get<double>(), goodput, .02);
  EXPECT_NEAR(failures.at("training_s").get<double>(),
              result.at("whole_training").at("seconds").get<double>() / goodput, 1e-3);
  EXPECT_EQ(json::parse(workplace.run(kTwoByTwo).out).count("failures"), 0U);
}

// Their own profiles are not hidden by one of them that is broken.
TEST(Profiles, OfAUserThatCannotBeReadAreNamedAndTheOthersListed) {
  const Workplace place;
  place.run(
      "mkdir -p ../data/trivium/profiles && trivium profiles --template dgx-a100-80gb -o "
      "../data/trivium/profiles/mine.json && echo '{' > ../data/trivium/profiles/broken.json");
  const Outcome outcome = place.run("trivium profiles");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("dgx-h100-80gb"));
  EXPECT_THAT(outcome.out, HasSubstr("mine"));
  EXPECT_THAT(outcome.err, HasSubstr("broken.json"));
}

}  // namespace
}  // namespace trivium::cli
