#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/load.h"
#include "program/lower/layout.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// Trained numbers that all tensor ranks of all stages hold: replicated ones once, tied copies and padding not at all.
std::int64_t trained_elements(const Program& program) {
  const int tensor = program.mesh.tensor();
  std::int64_t sum = 0;
  for (const Role& role : program.roles) {
    for (const Chunk& chunk : role.chunks) {
      for (const Parameter& p : program.kinds[static_cast<std::size_t>(chunk.kind)].parameters) {
        if (p.tied_copy) continue;
        for (int rank = 0; rank < tensor; ++rank) {
          if (!is_first_holder(p, rank)) continue;
          std::int64_t rows = p.local_rows;
          if (p.split == Split::kRows) rows = std::clamp<std::int64_t>(p.rows - rank * p.local_rows, 0, p.local_rows);
          const std::int64_t columns = p.local_columns - (rank % p.key_ranks != 0 ? p.key_columns : 0);
          sum += rows * columns * (p.experts > 0 ? program.mesh.expert_replicas() : 1);
        }
      }
    }
  }
  return sum;
}

TEST(LoweredParameters, OfGpt2AddUpToThePublishedCountInEverySplit) {
  Job job;
  job.model = models::load_model("gpt2-124m");
  job.training.sequence = 1024;
  job.training.global_batch = 24;
  for (const int tensor : {1, 2, 3, 4, 6, 12}) {
    for (const int pipeline : {1, 2, 3, 4, 12}) {
      for (const int virtual_stages : {1, 2}) {
        if (virtual_stages * pipeline > 12 || (virtual_stages > 1 && pipeline == 1)) continue;
        job.plan.tensor = tensor, job.plan.pipeline = pipeline, job.plan.virtual_stages = virtual_stages;
        job.plan.schedule = virtual_stages > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
        EXPECT_EQ(trained_elements(lowered(job)), 124439808) << tensor << " x " << pipeline;  // 124M, released weights
      }
    }
  }
}

// bigscience/bloom-560m.
TEST(LoweredParameters, OfABloomAddUpToThePublishedCountInEverySplit) {
  Job job;
  job.model.layers = 24, job.model.hidden = 1024, job.model.ffn_hidden = 4096;
  job.model.heads = job.model.kv_heads = 16, job.model.head_dim = 64;
  job.model.vocab = 250880, job.model.max_sequence = 2048;
  job.model.positions = models::Positions::kAlibi;
  job.model.embedding_norm = true;
  job.training.sequence = 2048;
  job.training.global_batch = 8;
  for (const int tensor : {1, 2, 4}) {
    for (const int pipeline : {1, 2, 8}) {
      job.plan.tensor = tensor, job.plan.pipeline = pipeline;
      EXPECT_EQ(trained_elements(lowered(job)), 559214592) << tensor << " x " << pipeline;
    }
  }
}

TEST(LoweredParameters, OfALlamaAddUpToItsCountInEverySplit) {
  Job job;
  job.model = models::load_model("llama2-70b");
  job.training.sequence = 4096;
  job.training.global_batch = 8;
  for (const int tensor : {1, 2, 8}) {
    for (const int pipeline : {1, 4, 5, 7, 8}) {
      job.plan.tensor = tensor, job.plan.pipeline = pipeline;
      EXPECT_EQ(trained_elements(lowered(job)), 68976648192);  // 68.98 B, released weights
    }
  }
}

TEST(LoweredParameters, AddUpToTheModelsCountOnRandomPlans) {
  RandomJobs jobs(3);
  for (int i = 0; i < 200; ++i) {
    Job job = jobs.next();
    job.model.vocab = 61;  // padding is not counted
    EXPECT_EQ(trained_elements(lowered(job)), models::count_parameters(job.model).total);
  }
}

TEST(LoweredParameters, LieInTheirSpaceAlignedAndApart) {
  RandomJobs jobs(5);
  for (int i = 0; i < 100; ++i) {
    const Program program = lowered(jobs.next());
    for (const ChunkTemplate& kind : program.kinds) {
      std::int64_t end = 0;
      for (const Parameter& p : kind.parameters) {
        ASSERT_EQ(p.offset % 16, 0) << p.name;
        ASSERT_GE(p.offset, end) << p.name;
        end = p.offset + p.local_rows * p.local_columns;
      }
      std::int64_t kept = 0;  // shards under ZeRO-3, else whole
      for (const Bucket& bucket : kind.buckets) kept += bucket.parameter_shard >= 0 ? bucket.shard : bucket.elements;
      ASSERT_LE(end, kind.buckets.back().begin + kind.buckets.back().elements);
      ASSERT_EQ(kept * size_of(program.job.plan.precision), kind.bytes[static_cast<std::size_t>(Space::kParameter)]);
      for (std::size_t number = 0; number < kind.buffers.size(); ++number) {
        if (static_cast<int>(number) == kind.tied_elsewhere) continue;  // another chunk's
        const Buffer& buffer = kind.buffers[number];
        ASSERT_LE(buffer.offset + buffer.bytes(),
                  std::max<std::int64_t>(kind.bytes[static_cast<std::size_t>(buffer.space)],
                                         buffer.space == Space::kScalar ? 24 : 0))
            << buffer.name;
      }
    }
  }
}

TEST(LoweredParameters, NamesAreTheModelsOwnOnceEach) {
  // 4 layers of 12 parameters, two embeddings, the final norm's two; the tied copy of the last stage is the same name.
  Job job = tiny_job();
  job.plan.pipeline = 2, job.plan.virtual_stages = 2, job.plan.schedule = Schedule::kInterleaved;
  const Program program = lowered(job);
  std::set<std::string> names;
  int parameters = 0;
  for (const Role& role : program.roles) {
    for (const Chunk& chunk : role.chunks) {
      for (const Parameter& p : program.kinds[static_cast<std::size_t>(chunk.kind)].parameters) {
        names.insert(global_name(p, chunk.first_layer));
        ++parameters;
      }
    }
  }
  EXPECT_EQ(names.size(), 52u);
  EXPECT_EQ(parameters, 53);
  EXPECT_TRUE(names.contains("h.0.attn.c_attn.weight"));
  EXPECT_TRUE(names.contains("h.3.mlp.c_proj.bias"));
}

TEST(LoweredChunks, EqualRunsShareAKind) {
  // 8 stages of one layer: first, six alike, last.
  Job job = tiny_job(8);
  job.plan.pipeline = 8;
  const Program program = lowered(job);
  EXPECT_EQ(program.kinds.size(), 3u);
  EXPECT_EQ(program.roles[3].chunks[0].kind, program.roles[6].chunks[0].kind);
  EXPECT_EQ(program.roles[6].chunks[0].first_layer, 6);
}

TEST(LoweredChunks, StagesThatRecomputeOtherwiseAreKindsOfTheirOwn) {
  Job job = tiny_job(8);
  job.plan.pipeline = 4;
  job.plan.stage_recompute = {Recompute::kFull, Recompute::kFull, Recompute::kNone, Recompute::kNone};
  const Program program = lowered(job);
  EXPECT_EQ(program.kinds.size(), 4u);
  EXPECT_EQ(program.kinds[static_cast<std::size_t>(program.roles[1].chunks[0].kind)].recompute, Recompute::kFull);
}

}  // namespace
}  // namespace trivium::program
