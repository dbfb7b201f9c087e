#include "program/ir/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/golden.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/program/ir/golden" / name;
}

/// Tensor 2, two stages of one layer, two replicas with ZeRO-1, two micro-batches.
Program small_mix() {
  Job job = tiny_job(2);
  job.training.global_batch = 4;
  job.plan.tensor = job.plan.pipeline = job.plan.data = 2;
  job.plan.zero_stage = 1;
  return lowered(job);
}

TEST(ProgramText, OfTheFirstStageIsTheGolden) {
  expect_golden(golden("tensor-pipeline-zero-rank-0.txt"), text_of(small_mix(), 0));
}

TEST(ProgramText, OfTheLastStageIsTheGolden) {
  expect_golden(golden("tensor-pipeline-zero-rank-7.txt"), text_of(small_mix(), 7));
}

TEST(ProgramText, OfSequenceParallelWithFullRecomputationIsTheGolden) {
  Job job = tiny_job(1);
  job.training.global_batch = 1;
  job.plan.tensor = 2;
  job.plan.sequence_parallel = job.plan.overlap.tensor = true;
  job.plan.recompute = Recompute::kFull;
  expect_golden(golden("sequence-parallel-recompute.txt"), text_of(lowered(job), 0));
}

TEST(ProgramText, IsTheSameEveryTime) {
  const Program program = small_mix();
  EXPECT_EQ(text_of(program, 3), text_of(program, 3));
  EXPECT_EQ(text_of(program, 3), text_of(small_mix(), 3));
}

TEST(ProgramText, ShowsTheHostOrderWhereThereIsOne) {
  Program program = small_mix();
  program.roles[0].order = {{0, 0}, {0, 1}, {2, 0}};
  EXPECT_NE(text_of(program, 0).find("order (task.segment)\n  0.0 0.1 2.0\n"), std::string::npos);
}

TEST(ProgramText, DescribesATaskInAFewWords) {
  const Program program = small_mix();
  EXPECT_EQ(describe(program.roles[0].tasks[0]), "forward chunk 0 micro-batch 0");
  EXPECT_EQ(describe(program.roles[0].tasks.back()), "gather_parameters chunk 0");
}

TEST(ProgramText, NamesEveryOpKindOnce) {
  std::vector<std::string_view> names;
  for (int kind = 0; kind < kOpKinds; ++kind) names.push_back(name_of(static_cast<OpKind>(kind)));
  EXPECT_EQ(names.front(), "embedding");
  EXPECT_EQ(names[static_cast<std::size_t>(OpKind::kMatmulWgrad)], "matmul_wgrad");
  EXPECT_EQ(names[static_cast<std::size_t>(OpKind::kZeroGradients)], "zero_gradients");
  EXPECT_EQ(names.back(), "recv");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace trivium::program
