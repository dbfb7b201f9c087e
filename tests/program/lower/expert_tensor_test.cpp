// Experts that some neighbouring tensor ranks split, while others hold other ones.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "program/lower/layout.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// Four experts in every second layer, over two replicas of four tensor ranks, of which pairs split an expert.
Job pairs_job() {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 1.25};
  job.plan.tensor = 4, job.plan.data = 2;
  job.plan.expert = 4, job.plan.expert_tensor = 2;
  return job;
}

/// Ops of layer 1, a mixture.
std::vector<Op> ops_of(const Program& program, int body, OpKind kind) {
  std::vector<Op> found;
  for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
    if (op.layer == 1 && op.kind == kind) found.push_back(op);
  }
  return found;
}

// Of four tensor ranks pairs split an expert each, and two replicas the experts among them: a rank sends its 4 · 3 rows
// (10 of an expert, over four ranks) to every second tensor rank of either replica, 12 · 32 · 4 B = 1536, and gathers
// those of its neighbour, to compute 24 rows of one expert at half its width of 2 · 96.
TEST(ExpertTensor, RowsAreGatheredAmongTheRanksThatSplitAnExpert) {
  for (const bool sequence_parallel : {false, true}) {
    Job job = pairs_job();
    job.plan.sequence_parallel = sequence_parallel;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), testing::IsEmpty());
    EXPECT_EQ(program.mesh.members(Group::kExpert, 1), (std::vector<int>{1, 3, 5, 7}));
    EXPECT_EQ(program.mesh.members(Group::kExpertTensor, 1), (std::vector<int>{0, 1}));
    EXPECT_EQ(program.mesh.members(Group::kExpertData, 1), (std::vector<int>{1}));
    for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
      const auto exchanges = ops_of(program, body, OpKind::kAllToAll);
      EXPECT_EQ(exchanges.size(), 2u);
      for (const Op& op : exchanges) EXPECT_EQ(op.bytes, 1536);
      for (const OpKind kind : {OpKind::kAllGather, OpKind::kReduceScatter}) {
        const auto moved = ops_of(program, body, kind);
        const auto of_pairs = [](const Op& op) { return op.group == Group::kExpertTensor; };
        ASSERT_EQ(std::ranges::count_if(moved, of_pairs), 1);
        EXPECT_EQ(std::ranges::find_if(moved, of_pairs)->bytes, 2 * 1536);
      }
    }
    const auto products = ops_of(program, program.kinds[0].forward, OpKind::kExpertMatmul);
    EXPECT_EQ(products[0].m, 24);
    EXPECT_EQ(products[0].n, 96);
    EXPECT_EQ(products[0].experts, 1);
  }
}

// Parts of experts by pairs of four tensor ranks: of each number one holder, of the second biases the first of a pair.
TEST(ExpertTensor, PartsOfExpertsTileTheirGlobalMatrix) {
  Job job = pairs_job();
  job.model.linear_bias = true;
  const Program program = lowered(job);
  for (const Parameter& p : expert_parameters(job, 1)) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (int rank = 0; rank < 8; ++rank) {
      const Coordinates at = program.mesh.coordinates(rank);
      if (!is_first_holder(p, at.tensor)) continue;
      for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
        ++seen[*global_place(p, i / p.local_columns, i % p.local_columns, at.tensor, 4, program.mesh.expert_rank(at))];
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), p.rows * p.columns) << p.name;
    for (const auto& [place, times] : seen) ASSERT_EQ(times, 1);
  }
}

TEST(ExpertTensor, IsRefusedWhereItDoesNotDivide) {
  const auto reason = [](const Job& job) {
    const auto no = check(job);
    return !no ? "" : no->rule + ": " + no->reason;
  };
  Job job = pairs_job();
  EXPECT_EQ(reason(job), "");
  for (const int size : {3, 8}) {
    job.plan.expert_tensor = size;
    EXPECT_EQ(reason(job),
              fmt::format("expert_tensor-divides-tensor: experts are split by neighbouring tensor ranks: expert_tensor "
                          "{} does not divide tensor 4",
                          size));
  }
  job.plan.expert = 1, job.plan.expert_tensor = 2;
  EXPECT_EQ(reason(job),
            "tensor-divides-expert: tensor ranks that do not split experts share them: tensor 4 / expert_tensor 2 does "
            "not divide expert 1");
  job.plan.expert = 4, job.plan.data = 1;
  EXPECT_EQ(
      reason(job),
      "expert-divides-data: experts lie on neighbouring replicas: expert 4, over tensor 4 / expert_tensor 2, does "
      "not divide data 1");
  job.plan.data = 2, job.model.ffn_hidden = 97, job.model.experts->dense_hidden = 96;
  EXPECT_EQ(reason(job), "expert_tensor-divides-ffn_hidden: expert_tensor 2 does not divide 97 ffn_hidden");
}

}  // namespace
}  // namespace trivium::program
