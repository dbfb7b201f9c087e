// How unevenly experts are chosen: counts, Zipf's law, and what of them a rank gets.
#include "program/plan/expert_load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/files.h"
#include "program/lower/lower.h"
#include "program/plan/job_json.h"
#include "tests/input_error.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

TEST(ExpertLoad, IsTheRankWithMostOverTheEvenShare) {
  const ExpertLoad counted{{6, 2, 1, 1, 0, 2, 2, 2}, 0};
  EXPECT_DOUBLE_EQ(counted.imbalance(8, 1), 1);
  EXPECT_DOUBLE_EQ(counted.imbalance(8, 2), 10.0 * 2 / 16);  // of 6 + 2 + 1 + 1
  EXPECT_DOUBLE_EQ(counted.imbalance(8, 4), 8.0 * 4 / 16);
  EXPECT_DOUBLE_EQ(counted.imbalance(8, 8), 6.0 * 8 / 16);
  const ExpertLoad zipf{{}, 1};
  const double all = 1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4;
  EXPECT_DOUBLE_EQ(zipf.imbalance(4, 4), 4 / all);
  EXPECT_DOUBLE_EQ(zipf.imbalance(4, 2), 2 * (1 + 1.0 / 3) / all);  // the first and the third
  EXPECT_DOUBLE_EQ(ExpertLoad{}.imbalance(4, 2), 1);
}

class ExpertLoadFile : public ::testing::Test {
 protected:
  ~ExpertLoadFile() override { std::remove(path_.c_str()); }
  void write(const std::string& text) const { base::write_file_atomically(path_, text); }
  const std::string path_ = ::testing::TempDir() + "expert_load_" + std::to_string(getpid());
};

TEST_F(ExpertLoadFile, IsCountsInOrder) {
  write("[3, 0,\n 5]");
  EXPECT_EQ(read_expert_load(path_), (std::vector<std::int64_t>{3, 0, 5}));
  Plan plan;
  Training training;
  set_field(plan, training, "expert_load", path_);
  EXPECT_EQ(training.expert_load.choices, (std::vector<std::int64_t>{3, 0, 5}));
  set_field(plan, training, "expert_load", "1,2");
  EXPECT_EQ(training.expert_load.choices, (std::vector<std::int64_t>{1, 2}));
  write("3 many");
  EXPECT_EQ(input_error([&] { read_expert_load(path_); }),
            path_ +
                ": \"many\" does not say how often an expert was chosen; that is a whole number from 0 to "
                "1125899906842624");
  write("0 0 0");
  EXPECT_EQ(input_error([&] { read_expert_load(path_); }), path_ + ": does not say how often experts were chosen");
}

Job loaded_job() {
  Job job = tiny_job();
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true};
  job.plan.data = 2, job.plan.expert = 2;
  return job;
}

TEST(ExpertLoad, IsRefusedWhereItSaysNothing) {
  const auto why = [](const Job& job) {
    const auto no = check(job);
    return no ? no->reason : "";
  };
  Job job = loaded_job();
  job.training.expert_load.zipf = 0.5;
  EXPECT_EQ(why(job), "");
  job.training.expert_load = {{1, 2, 3}, 0};
  EXPECT_EQ(why(job), "expert_load has 3 entries; " + job.model.name + " has 4 experts");
  job.training.expert_load = {{1, 2, 3, 4}, 0.5};
  EXPECT_NE(why(job).find("exclude each other"), std::string::npos);
  job.training.expert_load = {{1, 2, 3, 4}, 0};
  job.model.experts->dropless = false;
  EXPECT_NE(why(job).find("pads its experts to a capacity"), std::string::npos);
  job.model.experts.reset();
  job.plan.expert = 1;
  EXPECT_NE(why(job).find("has no experts"), std::string::npos);
}

// Rows of the experts, and so their products and exchanges, follow the rank with most.
TEST(ExpertLoad, GivesRanksThatManyRows) {
  const auto rows = [](const ExpertLoad& load) {
    Job job = loaded_job();
    job.training.expert_load = load;
    const Program program = lowered(job);
    for (const Op& op : program.bodies[static_cast<std::size_t>(program.kinds[0].forward)].ops) {
      if (op.kind == OpKind::kExpertMatmul) return op.m;
    }
    return std::int64_t{0};
  };
  const std::int64_t even = rows({});
  ASSERT_GT(even, 0);
  EXPECT_EQ(rows({{1, 1, 1, 1}, 0}), even);
  EXPECT_EQ(rows({{2, 1, 1, 0}, 0}), even * 3 / 2);
  EXPECT_GT(rows({{}, 1}), even);
}

}  // namespace
}  // namespace trivium::program
