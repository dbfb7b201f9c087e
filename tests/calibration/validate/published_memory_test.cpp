// Memory against published figures: Korthikanti et al. 2022 (arXiv 2205.05198), figure 1, as Calculon encodes it.
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/validate/validate.h"
#include "hardware_profiles/load.h"
#include "simulator/memory/memory.h"
#include "tests/simulator/prepared.h"

namespace trivium::calibration {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kActivations = 0.05;

/// A model of the paper's table 3 on tensor 8.
struct PaperModel {
  int layers, hidden, heads, micro_batch, pipeline, virtual_stages;
  double state, plain,
      best;  ///< GiB: parameters and optimizer; activations without and with SP and selective recompute
};
const PaperModel k22B{48, 6144, 64, 4, 1, 1, 45.6, 59.3, 9.6};
const PaperModel k175B{96, 12288, 96, 1, 8, 3, 45.6, 66.8, 12.4};
const PaperModel k530B{105, 20480, 128, 1, 35, 3, 31.6, 114, 23.1};
const PaperModel k1T{128, 25600, 160, 1, 64, 1, 33.0, 131, 26.6};

/// Of a stage in the middle (with one stage, of that one), in 18 B a parameter: bf16 with fp32 gradients.
simulator::StageMemory memory_of(const PaperModel& paper, bool best, bool first_stage) {
  program::Job job;
  job.model.layers = paper.layers, job.model.hidden = paper.hidden;
  job.model.heads = job.model.kv_heads = paper.heads;
  job.model.head_dim = paper.hidden / paper.heads, job.model.ffn_hidden = 4 * paper.hidden;
  job.model.vocab = 51200, job.model.max_sequence = 2048;
  job.training.sequence = 2048;
  job.training.global_batch = 4 * paper.micro_batch * paper.pipeline;  // enough to fill every frame of the pipeline
  job.training.dropout = 0.1;
  job.plan.stack = "megatron-2022";
  job.plan.tensor = 8, job.plan.pipeline = paper.pipeline, job.plan.virtual_stages = paper.virtual_stages;
  job.plan.schedule = paper.virtual_stages > 1 ? program::Schedule::kInterleaved : program::Schedule::k1f1b;
  job.plan.micro_batch = paper.micro_batch;
  job.plan.precision = program::DType::kBf16;
  job.plan.sequence_parallel = best;
  job.plan.recompute = best ? program::Recompute::kSelective : program::Recompute::kNone;
  hardware::Cluster cluster{"selene", {{hardware::load_node("selene-dgx-a100-80gb"), paper.pipeline}}};
  const auto stages = simulator::prepared(job, cluster).memory();
  return stages.at(first_stage ? 0 : stages.size() / 2);
}

// Parameters, gradients and optimizer state: within 3 %.
TEST(PublishedMemory, OfTheStateIs18BytesAParameter) {
  for (const PaperModel& paper : {k22B, k175B, k530B, k1T}) {
    const simulator::StageMemory m = memory_of(paper, true, false);
    EXPECT_NEAR(static_cast<double>(m.parameters + m.gradients + m.optimizer) / kGiB / paper.state, 1, 0.03)
        << paper.hidden;
  }
}

// Activations of the first stage, with and without sequence parallelism and selective recomputation. The stack frees
// the outputs that it sent (appendix B of the paper); with them 530B, of one layer a chunk, would be 10 % above.
TEST(PublishedMemory, OfActivationsIsThePapers) {
  for (const PaperModel& paper : {k22B, k175B, k530B, k1T}) {
    EXPECT_NEAR(static_cast<double>(memory_of(paper, true, true).activations) / kGiB / paper.best, 1, kActivations)
        << paper.hidden;
    EXPECT_NEAR(static_cast<double>(memory_of(paper, false, true).activations) / kGiB / paper.plain, 1, kActivations)
        << paper.hidden;
  }
}

}  // namespace
}  // namespace trivium::calibration
