#include "simulator/certainty/error_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "simulator/certainty/measured_errors.h"

namespace trivium::simulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ErrorParts parts() {
  ErrorParts p;
  p.device = 0.03, p.stack = 0.04, p.kind = 0.02, p.machine = 0.10;
  p.run = {0.05, 0.06, 0.08};
  p.known = {1.7, 1.9}, p.unknown = {1.8, 2.0};
  return p;
}

const Likeness kHere{"a100", "megatron", "dense", "selene", 0};
const Likeness kElsewhere{"h100", "fsdp", "experts", "other", 2};

TEST(ErrorModel, WithoutRunsIsAsUnsureAsAllPartsTogether) {
  const ErrorOutlook outlook = ErrorModel({}, parts()).at(kElsewhere);
  EXPECT_EQ(outlook.mean, 0);
  EXPECT_DOUBLE_EQ(outlook.deviation, std::sqrt(.03 * .03 + .04 * .04 + .02 * .02 + .10 * .10 + .08 * .08));
  EXPECT_EQ(outlook.reach.high, 2.0);
  EXPECT_EQ(outlook.runs, 0);
}

// One cell, and a run that shares only its stack: regression on one observation.
TEST(ErrorModel, ExpectsTheShareOfAnErrorThatIsShared) {
  const ErrorModel model({{kHere, "paper", 4, 0.2, 0.3, 0.05}}, parts());
  const Likeness other{"h100", "megatron", "experts", "other", 0};
  const double own = (.05 * .05 * 10 + .05 * .05 * 3) / 13;
  const double of_cell = .03 * .03 + .04 * .04 + .02 * .02 + .10 * .10 + own / 4, shared = .04 * .04;
  const ErrorOutlook outlook = model.at(other);
  EXPECT_NEAR(outlook.mean, shared / of_cell * 0.3, 1e-12) << "elsewhere counts what the source left out would say";
  const double before = .03 * .03 + .04 * .04 + .02 * .02 + .10 * .10 + .05 * .05;
  EXPECT_NEAR(outlook.deviation, std::sqrt(before - shared * shared / of_cell), 1e-12);
}

TEST(ErrorModel, IsSurerOfWhatWasMeasured) {
  const ErrorModel model({{kHere, "paper", 50, 0.01, 0.2, 0.02}}, parts());
  const ErrorOutlook here = model.at(kHere);
  Likeness near = kHere;
  near.machine = "another";
  EXPECT_LT(here.deviation, model.at(near).deviation);
  EXPECT_LT(model.at(near).deviation, model.at(kElsewhere).deviation);
  EXPECT_EQ(here.reach.low, 1.7);
  EXPECT_NEAR(here.mean, 0.01, 0.002) << "here the profile has learned from the runs";
  EXPECT_EQ(here.runs, 50);
  EXPECT_THAT(here.sources, ElementsAre("paper"));
  EXPECT_EQ(model.at(kElsewhere).runs, 0);
  EXPECT_EQ(model.at(kElsewhere).on_device, 0);
}

TEST(ErrorModel, TakesTheSpreadOfRunsThatAreAlike) {
  const ErrorModel steady({{kHere, "paper", 100, 0, 0, 0.01}}, parts());
  const ErrorModel noisy({{kHere, "paper", 100, 0, 0, 0.12}}, parts());
  EXPECT_LT(steady.at(kHere).deviation, 0.03);
  EXPECT_GT(noisy.at(kHere).deviation, 0.10);
}

TimeErrors times() {
  return {{{{"a100", "megatron", "dense", "selene"}, "paper", 4, 0.2, 0.3, 0.0025}},
          {0.03, 0.04, 0.02, 0.10, 0.05},
          {-3, 1, 2},
          {{"dense", "a100", true, 2, 4, {-1.5, 0.25, 2}}},
          0.04,
          0.01};
}

TEST(MeasuredErrors, ReadWhatTheyWrite) {
  const nlohmann::json json = to_json(times(), ErrorModel({{kHere, "paper", 4, 0.2, 0.3, 0.05}}, parts()));
  const MeasuredErrors read = measured_errors_from_json(json, "errors.json");
  EXPECT_EQ(to_json(read.time, read.memory), json);
  const RunLikeness here = times().cells().front().like;
  EXPECT_DOUBLE_EQ(read.time.at(here, {}).deviation, times().at(here, {}).deviation);
  EXPECT_EQ(read.time.at(here, {}).quantiles.high, 2);
}

TEST(MeasuredErrors, NameWhatIsWrong) {
  nlohmann::json json = to_json(times(), ErrorModel({}, parts()));
  const auto message = [&] {
    try {
      measured_errors_from_json(json, "errors.json");
    } catch (const base::Failure& failure) {
      return failure.error().message;
    }
    return std::string("nothing");
  };
  json["time"]["cells"][0]["runs"] = 0;
  EXPECT_THAT(message(), HasSubstr("errors.json#/time/cells/0/runs"));
  json["time"]["cells"][0]["runs"] = 1;
  json["time"]["quantiles"][0]["middle"] = -2;
  EXPECT_THAT(message(), HasSubstr("errors.json#/time/quantiles/0/middle"));
  json["time"]["quantiles"][0]["middle"] = 0;
  json["memory"]["parts"]["run"] = nlohmann::json::array({0.1});
  EXPECT_THAT(message(), HasSubstr("errors.json#/memory/parts/run"));
}

TEST(MeasuredErrors, AreShipped) {
  EXPECT_GT(measured_errors().time.cells().size(), 10U);
  EXPECT_GT(measured_errors().time.quantiles().size(), 10U);
  EXPECT_GE(measured_errors().memory.parts().known.high, 1);
}

}  // namespace
}  // namespace trivium::simulator
