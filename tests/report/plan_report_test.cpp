#include "report/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "report/timeline_chart.h"
#include "tests/simulator/prepared.h"

namespace trivium::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// GPT-2 124M in four stages of two tensor ranks on one DGX A100.
class PlanReportPage : public testing::Test {
 protected:
  PlanReportPage() : cluster_(hardware::load_cluster("dgx-a100-80gb:1")) {
    program::Job& job = file_.job;
    job.model = models::load_model("gpt2-124m");
    job.training.sequence = 1024;
    job.training.global_batch = 16;
    job.plan.tensor = 2;
    job.plan.pipeline = 4;
    file_.cluster = "dgx-a100-80gb:1";
  }
  std::string page() {
    const simulator::Prepared prepared = simulator::prepared(file_.job, cluster_);
    program_ = prepared.program();
    simulator::SimulationOptions how;
    how.timeline = true;
    simulated_ = simulator::simulate(prepared, how).value_or_throw();
    return plan_report({file_,
                        cluster_,
                        program_,
                        simulated_,
                        simulated_.timeline,
                        overflow_,
                        sentences_,
                        {},
                        {},
                        spread_,
                        others_,
                        {}});
  }

  program::PlanFile file_;
  hardware::Cluster cluster_;
  program::Program program_;
  simulator::Simulation simulated_;
  std::string overflow_;
  std::vector<std::string> sentences_;
  std::optional<Spread> spread_;
  std::vector<PlanLine> others_;
};

TEST_F(PlanReportPage, HoldsFiguresPicturesAndThePlanItself) {
  file_.job.training.total_tokens = 1'000'000'000;
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("<title>gpt2-124m on dgx-a100-80gb:1</title>"));
  EXPECT_THAT(text, HasSubstr("whole training"));
  EXPECT_THAT(text, HasSubstr(">stage 3</text>"));
  EXPECT_THAT(text, HasSubstr("trivium.plan/1"));
  EXPECT_THAT(text, Not(HasSubstr("Does not fit")));
  EXPECT_THAT(text, Not(HasSubstr("Random variation")));
  EXPECT_THAT(text, Not(HasSubstr("Other plans")));
  EXPECT_EQ(page(), text);  // the same plan, the same bytes
}

TEST_F(PlanReportPage, SaysWhatItIsGiven) {
  overflow_ = "stage 0 needs <too much>";
  sentences_ = {"The bubble is large."};
  spread_ = Spread{0.05, 50, 1.9, 1.95, 2, 2.125};
  others_ = {{"TP8", 3, 1000, 0.5, 1 << 30}};
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("Does not fit: stage 0 needs &lt;too much&gt;"));
  EXPECT_THAT(text, HasSubstr("<li>The bubble is large.</li>"));
  EXPECT_THAT(text, HasSubstr("95 % below 2.125 s"));
  EXPECT_THAT(text, HasSubstr("Other plans"));
  EXPECT_THAT(text, HasSubstr("<td>TP8</td><td>3.00 s</td>"));
}

TEST_F(PlanReportPage, IsSafeWhateverAModelIsCalled) {
  file_.job.model.name = "<script>alert(1)</script>";
  EXPECT_THAT(page(), Not(HasSubstr("<script>")));
}

TEST_F(PlanReportPage, ItsTimelineShowsBothPassesAndTheBubble) {
  page();
  const std::string chart = timeline_chart(program_, simulated_.timeline, simulated_.iteration_ps);
  EXPECT_THAT(chart, HasSubstr(">forward</text>"));
  EXPECT_THAT(chart, HasSubstr(">backward</text>"));
  EXPECT_THAT(chart, Not(HasSubstr("gradients of matrices")));  // nothing is split
  // The last stage waits for three others at first: its row begins later than that of stage 0.
  const auto first_x = [&](const char* stage) {
    const std::size_t row = chart.find(std::string(">") + stage + "<");
    const std::size_t at = chart.find("<rect x=\"", row) + 9;
    return std::stod(chart.substr(at, 8));
  };
  EXPECT_LT(first_x("stage 0"), first_x("stage 3"));
}

}  // namespace
}  // namespace trivium::report
