// Blocks whose attention and MLP read the same input (GPT-J, PaLM, Falcon): fewer tensor collectives, fewer buffers.
#include <map>

#include "models/load.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

Job parallel_job(bool shared_norm) {
  Job job = tiny_job();
  job.model.parallel_block = true;
  job.model.shared_norm = shared_norm;
  job.plan.tensor = 2;
  return job;
}

std::map<OpKind, int> tensor_collectives(const Program& program, int body) {
  std::map<OpKind, int> counts;
  for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
    if (is_communication(op.kind) && op.group == Group::kTensor && op.layer == 1) ++counts[op.kind];
  }
  return counts;
}

TEST(ParallelBlock, OneAllReduceForwardAndOneBackwardWhereTheNormIsShared) {
  const Program program = lowered(parallel_job(true));
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].forward), (std::map<OpKind, int>{{OpKind::kAllReduce, 1}}));
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].backward), (std::map<OpKind, int>{{OpKind::kAllReduce, 1}}));
}

TEST(ParallelBlock, TwoNormsNeedTheirGradientsApart) {
  const Program program = lowered(parallel_job(false));
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].forward), (std::map<OpKind, int>{{OpKind::kAllReduce, 1}}));
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].backward), (std::map<OpKind, int>{{OpKind::kAllReduce, 2}}));
}

// Sequence parallel: one gather before the block and one scatter after it; backward gathers what was read again.
TEST(ParallelBlock, SequenceParallelGathersWhatBothBranchesReadOnce) {
  Job job = parallel_job(true);
  job.plan.sequence_parallel = true;
  const Program program = lowered(job);
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].forward),
            (std::map<OpKind, int>{{OpKind::kAllGather, 1}, {OpKind::kReduceScatter, 1}}));
  EXPECT_EQ(tensor_collectives(program, program.kinds[0].backward),
            (std::map<OpKind, int>{{OpKind::kAllGather, 2}, {OpKind::kReduceScatter, 1}}));
}

// Per token and layer a sequential block keeps the stream between its halves and the second norm: 2 h in the dtype and
// two statistics. T = 16, h = 32, fp32, 4 layers: 4 (16·32·2·4 + 16·2·4) = 16,896 B.
TEST(ParallelBlock, KeepsNeitherAMiddleNorASecondNorm) {
  const auto frame = [](const Program& program) {
    return program.kinds[0].bytes[static_cast<std::size_t>(Space::kFrame)];
  };
  Job sequential = tiny_job();
  sequential.plan.tensor = 2;
  EXPECT_EQ(frame(lowered(sequential)) - frame(lowered(parallel_job(true))), 16'896);
}

TEST(ParallelBlock, EveryShippedModelOfTheKindIsLoweredWithItsPublishedCount) {
  for (const char* name : {"falcon-7b", "falcon-40b", "falcon-180b", "palm-8b", "palm-62b", "palm-540b"}) {
    Job job;
    job.model = models::load_model(name);
    job.training.sequence = 2048;
    job.training.global_batch = 1;
    const Program program = lowered(job);
    std::int64_t elements = 0;
    for (const Parameter& p : program.kinds[0].parameters) elements += p.local_rows * p.local_columns;
    EXPECT_EQ(elements, models::count_parameters(job.model).total) << name;
  }
}

}  // namespace
}  // namespace trivium::program
