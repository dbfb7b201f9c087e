#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>

#include "base/files.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

/// A change to the tiny job and the rule that must refuse it, with what its reason must say.
struct Refusal {
  const char* rule;
  const char* reason;
  std::function<void(Job&)> change;
};

void expect_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    Job job = tiny_job();
    refusal.change(job);
    const auto verdict = check(job);
    ASSERT_TRUE(verdict) << refusal.rule;
    EXPECT_EQ(verdict->rule, refusal.rule);
    EXPECT_EQ(verdict->reason, refusal.reason);
  }
}

TEST(Check, AcceptsTheJobThatAllRefusalsStartFrom) { EXPECT_TRUE(!check(tiny_job())); }

TEST(Check, RefusesCountsOutOfRange) {
  expect_refused({
      {"tensor-in-range", "tensor is 0; it must be 1 to 16777216", [](Job& j) { j.plan.tensor = 0; }},
      {"context-in-range", "context is -1; it must be 1 to 16777216", [](Job& j) { j.plan.context = -1; }},
      {"pipeline-in-range", "pipeline is 0; it must be 1 to 16777216", [](Job& j) { j.plan.pipeline = 0; }},
      {"virtual_stages-in-range", "virtual_stages is 0; it must be 1 to 16777216",
       [](Job& j) { j.plan.virtual_stages = 0; }},
      {"data-in-range", "data is 16777217; it must be 1 to 16777216", [](Job& j) { j.plan.data = 16'777'217; }},
      {"expert-in-range", "expert is 0; it must be 1 to 16777216", [](Job& j) { j.plan.expert = 0; }},
      {"micro_batch-in-range", "micro_batch is 0; it must be 1 to 16777216", [](Job& j) { j.plan.micro_batch = 0; }},
      {"sequence-in-range", "sequence is 0; it must be 1 to 16777216", [](Job& j) { j.training.sequence = 0; }},
      {"global_batch-in-range", "global_batch is 0; it must be 1 to 16777216",
       [](Job& j) { j.training.global_batch = 0; }},
      {"ranks-in-range", "4194304 ranks are more than 1048576", [](Job& j) { j.plan.data = 1 << 22; }},
      {"dropout-in-range", "dropout is 1; it must be in [0, 1)", [](Job& j) { j.training.dropout = 1; }},
      {"dropout-in-range", "dropout is -0.5; it must be in [0, 1)", [](Job& j) { j.training.dropout = -0.5; }},
  });
}

TEST(Check, RefusesWhatIsNotLoweredYetByName) {
  expect_refused({
      {"offload.gradients-supported",
       "offload.gradients is not implemented: stack megatron adds to the tied embedding of one stage at both ends of a "
       "backward; use stack trivium, or pipeline 2",
       [](Job& j) { j.plan.offload.gradients = Storage::kHost, j.plan.stack = "megatron"; }},
      {"offload.gradients-supported",
       "offload.gradients is not implemented: experts that are spread over ranks keep their own; use none, or expert 1",
       [](Job& j) {
         j.model.linear_bias = false;
         j.model.experts = models::Experts{.count = 4};
         j.plan.data = j.plan.expert = 2;
         j.plan.offload.gradients = Storage::kHost;
       }},
      {"offload-parameters-sharded",
       "offload.parameters with zero_stage 0: they are whole on the device between passes; use zero_stage 3",
       [](Job& j) { j.plan.offload.parameters = Storage::kDisk; }},
      {"compression-supported",
       "compression is not implemented: top_k in fp16: what is not sent would outlive the loss scale; use precision "
       "bf16",
       [](Job& j) { j.plan.compression = Compression::kTopK, j.plan.precision = DType::kFp16; }},
      {"compression-supported",
       "compression is not implemented: sums that are scattered to shards; use zero_stage 0, or compression none",
       [](Job& j) { j.plan.compression = Compression::kFp16, j.plan.data = 2, j.plan.zero_stage = 1; }},
      {"overlap.pipeline-supported",
       "overlap.pipeline is not implemented: transfers always overlap with compute; use true",
       [](Job& j) { j.plan.overlap.pipeline = false; }},
      {"stack-known", "unknown stack \"megatron-2077\"", [](Job& j) { j.plan.stack = "megatron-2077"; }},
  });
}

TEST(Check, AcceptsAShardGroupOfAllReplicas) {
  Job job = tiny_job();
  job.plan.data = job.plan.shard_group = 4;
  EXPECT_TRUE(!check(job));
}

TEST(Check, RefusesShardGroupsThatDoNotTileTheReplicas) {
  expect_refused({
      {"zero_stage-in-range", "zero_stage is 4; it must be 0 to 3", [](Job& j) { j.plan.zero_stage = 4; }},
      {"zero_stage-in-range", "zero_stage is -1; it must be 0 to 3", [](Job& j) { j.plan.zero_stage = -1; }},
      {"shard-group-needs-zero", "shard_group 2 with zero_stage 0: nothing is sharded",
       [](Job& j) { j.plan.data = 4, j.plan.shard_group = 2; }},
      {"shard-group-divides-data", "shard_group 3 is not a divisor of data 4 from 2 on",
       [](Job& j) { j.plan.data = 4, j.plan.zero_stage = 3, j.plan.shard_group = 3; }},
      {"shard-group-divides-data", "shard_group 1 is not a divisor of data 4 from 2 on",
       [](Job& j) { j.plan.data = 4, j.plan.zero_stage = 3, j.plan.shard_group = 1; }},
      {"shard-group-divides-data", "shard_group 8 is not a divisor of data 4 from 2 on",
       [](Job& j) { j.plan.data = 4, j.plan.zero_stage = 3, j.plan.shard_group = 8; }},
  });
}

TEST(Check, RefusesTensorSplitsThatDoNotDivide) {
  expect_refused({
      {"tensor-divides-heads", "tensor 3 does not divide 4 heads", [](Job& j) { j.plan.tensor = 3; }},
      {"tensor-divides-kv_heads", "3 kv_heads can be neither split over nor shared by tensor 4 ranks",
       [](Job& j) { j.model.heads = 12, j.model.kv_heads = 3, j.plan.tensor = 4; }},
      {"top_k-needs-whole-key-heads",
       "tensor 4 ranks share 2 kv_heads and would choose other gradients of them to send; use compression none or "
       "fp16, "
       "or tensor 2",
       [](Job& j) { j.model = tiny_llama(), j.plan.tensor = 4, j.plan.compression = Compression::kTopK; }},
      {"tensor-divides-ffn_hidden", "tensor 4 does not divide 130 ffn_hidden",
       [](Job& j) { j.model.ffn_hidden = 130, j.plan.tensor = 4; }},
      {"sequence-parallel-needs-tensor", "sequence_parallel splits tokens over the tensor ranks; tensor is 1",
       [](Job& j) { j.plan.sequence_parallel = true; }},
      {"tensor-divides-sequence", "tensor 4 does not divide the sequence of 14 tokens",
       [](Job& j) { j.plan.sequence_parallel = true, j.plan.tensor = 4, j.training.sequence = 14; }},
  });
}

TEST(Check, RefusesPlacementsThatAreNoOrderOfTheDimensions) {
  const auto placement = [](const char* text) { return [text](Job& j) { j.plan.placement = text; }; };
  expect_refused({
      {"placement-known",
       "placement \"tensor-data-pipeline\" is not an order of tensor, context, data and pipeline joined by '-'",
       placement("tensor-data-pipeline")},
      {"placement-known",
       "placement \"tensor-tensor-data-pipeline\" is not an order of tensor, context, data and pipeline joined by '-'",
       placement("tensor-tensor-data-pipeline")},
      {"placement-known", "placement \"\" is not an order of tensor, context, data and pipeline joined by '-'",
       placement("")},
  });
}

TEST(Check, RefusesStagesOnNodesThatAreNotWhole) {
  expect_refused({
      {"stage-nodes-count", "stage_nodes has 1 entries; pipeline is 2",
       [](Job& j) { j.plan.pipeline = 2, j.plan.stage_nodes = {0}; }},
      {"stage-nodes-need-whole-stages",
       "stage_nodes puts whole stages on nodes; placement \"tensor-context-pipeline-data\" must end with pipeline",
       [](Job& j) {
         j.plan.pipeline = 2, j.plan.stage_nodes = {0, 1}, j.plan.placement = "tensor-context-pipeline-data";
       }},
  });
}

// What nobody has written is said in the docs, field by field.
TEST(Unsupported, StandsInTheDocs) {
  const std::filesystem::path top = TRIVIUM_SOURCE_DIR;
  const std::string page = base::read_file(top / "docs/reference/combinations.md");
  const std::regex refusal("(?:missing\\(\"|[\" ])([a-z_.]+)(?:\"|(?: muon)? is not implemented)");
  std::set<std::string> fields;
  for (const auto& file : std::filesystem::directory_iterator(top / "program/lower")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string source = base::read_file(file.path());
    // A rule that is named so has a reason that says so, near it.
    for (std::size_t rule = 0; (rule = source.find("-supported\"", rule)) != std::string::npos; ++rule) {
      EXPECT_NE(source.substr(rule, 200).find("is not implemented"), std::string::npos)
          << file.path() << ": " << source.substr(rule, 60);
    }
    for (auto at = std::sregex_iterator(source.begin(), source.end(), refusal); at != std::sregex_iterator(); ++at) {
      const std::string all = at->str();
      if (all.starts_with("missing(") || all.ends_with("is not implemented")) fields.insert(at->str(1));
    }
  }
  EXPECT_GE(fields.size(), 12U);
  for (const std::string& field : fields) EXPECT_NE(page.find("| `" + field + "`"), std::string::npos) << field;
}

}  // namespace
}  // namespace trivium::program
