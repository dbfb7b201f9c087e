// Whether a job can be lowered: divisibility, ranges, and fields that are not lowered yet, refused by name.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include "program/lower/adapters.h"
#include "program/lower/chunk_shape.h"
#include "program/lower/documents.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "program/lower/muon.h"
#include "program/lower/parameter_gather.h"
#include "program/lower/recompute.h"
#include "program/lower/sharding.h"
#include "program/lower/stage_layers.h"
#include "program/plan/expert_load.h"

namespace trivium::program {
namespace {

using Verdict = std::optional<Infeasible>;

Verdict refuse(std::string rule, std::string reason) { return Infeasible{std::move(rule), std::move(reason)}; }

Verdict check_ranges(const Job& job) {
  const Plan& plan = job.plan;
  const std::pair<const char*, std::int64_t> counts[] = {{"tensor", plan.tensor},
                                                         {"context", plan.context},
                                                         {"pipeline", plan.pipeline},
                                                         {"virtual_stages", plan.virtual_stages},
                                                         {"data", plan.data},
                                                         {"expert", plan.expert},
                                                         {"micro_batch", plan.micro_batch},
                                                         {"recompute_group", plan.recompute_group},
                                                         {"sequence", job.training.sequence},
                                                         {"global_batch", job.training.global_batch}};
  constexpr std::int64_t kMost = 1 << 24;
  for (const auto& [name, value] : counts) {
    if (value < 1 || value > kMost) {
      return refuse(fmt::format("{}-in-range", name), fmt::format("{} is {}; it must be 1 to {}", name, value, kMost));
    }
  }
  constexpr double kMostRanks = 1 << 20;
  const double ranks = 1.0 * plan.tensor * plan.context * plan.pipeline * plan.data;
  if (ranks > kMostRanks)
    return refuse("ranks-in-range", fmt::format("{:.0f} ranks are more than {:.0f}", ranks, kMostRanks));
  if (job.training.dropout < 0 || job.training.dropout >= 1) {
    return refuse("dropout-in-range", fmt::format("dropout is {}; it must be in [0, 1)", job.training.dropout));
  }
  return std::nullopt;
}

Verdict missing(const std::string& field, const std::string& what) {
  return refuse(field + "-supported", fmt::format("{} is not implemented: {}", field, what));
}

Verdict check_away_gradients(const Job& job) {
  const Plan& plan = job.plan;
  if (plan.offload.gradients == Storage::kNone) return std::nullopt;
  if (plan.expert > 1) {
    return missing("offload.gradients", "experts that are spread over ranks keep their own; use none, or expert 1");
  }
  if (job.model.mtp) {
    return missing("offload.gradients",
                   "modules of multi-token prediction add to the output matrix while others are in "
                   "use; use none, or mtp 0");
  }
  if (job.model.tied_embeddings && traits_of(plan.schedule).folds) {
    return missing("offload.gradients", fmt::format("{} has both copies of a tied embedding on one stage; use none, or "
                                                    "schedule {}",
                                                    name_of(plan.schedule), name_of(usual_schedule(1))));
  }
  const StackTraits* stack = find_stack(plan.stack);
  const bool apart = stack == nullptr || stack->separate_tied_gradients || Sharding(job, *stack).gradients;
  if (apart || !job.model.tied_embeddings || plan.pipeline > 1) return std::nullopt;
  return missing("offload.gradients",
                 fmt::format("stack {} adds to the tied embedding of one stage at both ends of a backward; use stack "
                             "trivium, or pipeline 2",
                             plan.stack));
}

Verdict check_supported(const Job& job) {
  const Plan& plan = job.plan;
  if (auto no = check_away_gradients(job)) return no;
  if (plan.offload.activations != Storage::kNone && traits_of(plan.schedule).splits_backward) {
    return missing("offload.activations", fmt::format("{} keeps them for its second halves; use schedule {}",
                                                      name_of(plan.schedule), name_of(usual_schedule(1))));
  }
  if (job.model.mtp && job.training.dropout > 0) {
    return missing("mtp", fmt::format("dropout {} in modules of multi-token prediction; use dropout 0, or mtp 0",
                                      job.training.dropout));
  }
  if (plan.compression == Compression::kTopK && plan.precision == DType::kFp16) {
    return missing("compression", "top_k in fp16: what is not sent would outlive the loss scale; use precision bf16");
  }
  if (plan.compression != Compression::kNone && plan.zero_stage > 0) {
    return missing("compression", "sums that are scattered to shards; use zero_stage 0, or compression none");
  }
  if (!is_half(plan.precision) && is_half(plan.reduce_dtype)) {
    return missing("reduce_dtype", fmt::format("{} for gradients kept in {}; use {}", name_of(plan.reduce_dtype),
                                               name_of(plan.precision), name_of(plan.precision)));
  }
  if (!plan.overlap.pipeline) return missing("overlap.pipeline", "transfers always overlap with compute; use true");
  if (find_stack(plan.stack) == nullptr) return refuse("stack-known", fmt::format("unknown stack \"{}\"", plan.stack));
  return std::nullopt;
}

// Replicas whose micro-batches differ meet where gradients and parameters do: sums over all of them, nothing else.
Verdict check_replicas(const Plan& plan) {
  const std::vector<int>& sizes = plan.replica_micro_batch;
  if (sizes.empty()) return std::nullopt;
  if (static_cast<int>(sizes.size()) != plan.data) {
    return refuse("replica-micro-batch-count",
                  fmt::format("replica_micro_batch has {} entries; data is {}", sizes.size(), plan.data));
  }
  constexpr int kMost = 1 << 24;
  if (std::any_of(sizes.begin(), sizes.end(), [](int size) { return size < 1 || size > kMost; })) {
    return refuse("replica-micro-batch-in-range",
                  fmt::format("every entry of replica_micro_batch must be 1 to {}", kMost));
  }
  if (micro_batch_sizes(plan).size() == 1) return std::nullopt;
  if (plan.expert > 1) {
    return missing("replica_micro_batch", "experts exchange rows of equal micro-batches; use expert 1, or micro_batch");
  }
  if (plan.shard_group > 0 && plan.shard_group < plan.data) {
    return missing("replica_micro_batch", "shard groups hold alike replicas; use shard_group 0, or micro_batch");
  }
  return std::nullopt;
}

Verdict check_sharding(const Plan& plan) {
  if (plan.zero_stage < 0 || plan.zero_stage > 3) {
    return refuse("zero_stage-in-range", fmt::format("zero_stage is {}; it must be 0 to 3", plan.zero_stage));
  }
  if (plan.shard_group == 0 || plan.shard_group == plan.data) return std::nullopt;
  if (plan.zero_stage == 0) {
    return refuse("shard-group-needs-zero",
                  fmt::format("shard_group {} with zero_stage 0: nothing is sharded", plan.shard_group));
  }
  if (plan.shard_group < 2 || plan.shard_group > plan.data || plan.data % plan.shard_group != 0) {
    return refuse("shard-group-divides-data",
                  fmt::format("shard_group {} is not a divisor of data {} from 2 on", plan.shard_group, plan.data));
  }
  return std::nullopt;
}

Verdict check_tensor(const Job& job) {
  const Plan& plan = job.plan;
  const models::Model& model = job.model;
  const auto divides = [&](const char* what, std::int64_t value) -> Verdict {
    if (value % plan.tensor == 0) return std::nullopt;
    return refuse(fmt::format("tensor-divides-{}", what),
                  fmt::format("tensor {} does not divide {} {}", plan.tensor, value, what));
  };
  if (auto no = divides("heads", model.heads)) return no;
  if (model.kv_heads % plan.tensor != 0 && plan.tensor % model.kv_heads != 0) {
    return refuse("tensor-divides-kv_heads",
                  fmt::format("{} kv_heads can be neither split over nor shared by tensor {} ranks", model.kv_heads,
                              plan.tensor));
  }
  if (plan.tensor > model.kv_heads && plan.compression == Compression::kTopK) {
    return refuse("top_k-needs-whole-key-heads",
                  fmt::format("tensor {} ranks share {} kv_heads and would choose other gradients of them to send; use "
                              "compression none or fp16, or tensor {}",
                              plan.tensor, model.kv_heads, model.kv_heads));
  }
  if (auto no = divides("ffn_hidden", folds_experts(plan) ? 0 : model.ffn_hidden)) return no;
  if (auto no = divides("dense_hidden", model.dense_hidden())) return no;
  if (auto no = divides("shared_hidden", model.experts ? model.experts->shared_hidden : 0)) return no;
  if (plan.sequence_parallel) {
    if (plan.tensor == 1)
      return refuse("sequence-parallel-needs-tensor",
                    "sequence_parallel splits tokens over the tensor ranks; tensor is 1");
    const std::int64_t tokens = job.training.sequence / plan.context;
    if (tokens % plan.tensor != 0) {
      return refuse("tensor-divides-sequence",
                    fmt::format("tensor {} does not divide the sequence of {} tokens{}", plan.tensor, tokens,
                                plan.context > 1 ? " of a context rank" : ""));
    }
  }
  return std::nullopt;
}

// All-to-all over heads among `ranks` context ranks.
Verdict check_context_heads(const Job& job, int ranks) {
  if (ranks == 1) return std::nullopt;
  const Plan& plan = job.plan;
  const bool nested = plan.context_heads > 1;
  const char* of_rank = plan.tensor > 1 ? " of a tensor rank" : "";
  const std::int64_t heads = job.model.heads / plan.tensor;
  const std::int64_t keys = std::max<std::int64_t>(1, job.model.kv_heads / plan.tensor);
  if (heads % ranks != 0) {
    return refuse("context-divides-heads", fmt::format("{} splits heads: {} {} does not divide {} heads{}",
                                                       nested ? "context_heads" : "all_to_all",
                                                       nested ? "it" : "context", ranks, heads, of_rank));
  }
  if (keys % ranks != 0 && ranks % keys != 0) {
    return refuse("context-divides-kv_heads",
                  fmt::format("{} kv_heads{} can be neither split over nor shared by {} {} ranks", keys, of_rank,
                              nested ? "context_heads" : "context", ranks));
  }
  return std::nullopt;
}

Verdict check_context(const Job& job) {
  const Plan& plan = job.plan;
  if (plan.context == 1) {
    if (plan.context_heads == 1) return std::nullopt;
    return refuse("context_heads-divides-context",
                  fmt::format("context_heads {} are some of the ranks of a ring; context is 1", plan.context_heads));
  }
  const std::int64_t sequence = job.training.sequence;
  const bool ring = plan.context_method == ContextMethod::kRing;
  const bool alibi = ring && job.model.positions == models::Positions::kAlibi;
  if (alibi) return missing("context_method", "ring with ALiBi: its blocks have no bias of distances; use all_to_all");
  if (plan.context_heads > 1 &&
      (!ring || plan.context_heads >= plan.context || plan.context % plan.context_heads != 0)) {
    return refuse("context_heads-divides-context",
                  fmt::format("context_heads {} are some of the ranks of a ring, which they divide; context is {}, "
                              "context_method {}",
                              plan.context_heads, plan.context, name_of(plan.context_method)));
  }
  if (ring) {
    if (sequence % (2 * plan.context) != 0) {
      return refuse(
          "context-divides-sequence",
          fmt::format("the ring gives every rank two chunks: 2 x context {} does not divide the sequence of {} "
                      "tokens",
                      plan.context, sequence));
    }
    if (plan.attention != Attention::kFlash) {
      return refuse("ring-needs-flash",
                    "ring attention never holds the scores of a whole row: use attention flash, or context_method "
                    "all_to_all");
    }
  } else if (sequence % plan.context != 0) {
    return refuse("context-divides-sequence",
                  fmt::format("context {} does not divide the sequence of {} tokens", plan.context, sequence));
  }
  return check_context_heads(job, ring ? plan.context_heads : plan.context);
}

Verdict check_experts(const Job& job) {
  const Plan& plan = job.plan;
  if (!job.model.experts) {
    if (plan.expert == 1 && plan.expert_tensor == 0) return std::nullopt;
    const bool spread = plan.expert != 1;
    return refuse("expert-needs-experts", fmt::format("{} {} splits the experts of mixture layers; {} has none",
                                                      spread ? "expert" : "expert_tensor",
                                                      spread ? plan.expert : plan.expert_tensor, job.model.name));
  }
  const std::int64_t count = job.model.experts->count;
  const int splitting = expert_tensor_ranks(plan);
  if (plan.expert_tensor < 0 || plan.tensor % splitting != 0) {
    return refuse(
        "expert_tensor-divides-tensor",
        fmt::format("experts are split by neighbouring tensor ranks: expert_tensor {} does not divide tensor {}",
                    plan.expert_tensor, plan.tensor));
  }
  const std::string sharing =
      splitting == 1 ? std::to_string(plan.tensor) : fmt::format("{} / expert_tensor {}", plan.tensor, splitting);
  if (plan.expert % tensor_parts_of_experts(plan) != 0) {
    return refuse("tensor-divides-expert",
                  fmt::format("tensor ranks that do not split experts share them: tensor {} does not divide expert {}",
                              sharing, plan.expert));
  }
  if (folds_experts(plan) && job.model.ffn_hidden % splitting != 0) {
    return refuse("expert_tensor-divides-ffn_hidden",
                  fmt::format("expert_tensor {} does not divide {} ffn_hidden", splitting, job.model.ffn_hidden));
  }
  if (plan.data % expert_replicas(plan) != 0) {
    const std::string ranks = folds_experts(plan) ? fmt::format(", over tensor {},", sharing) : "";
    return refuse("expert-divides-data",
                  fmt::format("experts lie on neighbouring replicas: expert {}{} does not divide data {}", plan.expert,
                              ranks, plan.data));
  }
  if (count % plan.expert != 0) {
    return refuse("expert-divides-experts", fmt::format("expert {} does not divide {} experts", plan.expert, count));
  }
  if (plan.expert > 1 && plan.shard_group > 0 && plan.shard_group < plan.data) {
    return refuse("expert-with-shard-group-supported",
                  "shard_group is not implemented: spread experts are sharded over all their ranks; use shard_group 0");
  }
  return std::nullopt;
}

Verdict check_pipeline(const Job& job) {
  const Plan& plan = job.plan;
  const std::int64_t chunks = std::int64_t{plan.pipeline} * plan.virtual_stages;  // int only once it fits the layers
  if (chunks > job.model.layers + (plan.stage_layers.empty() ? 0 : 2)) {  // embedding and head may be alone in theirs
    const bool ends = plan.stage_layers.empty() && chunks <= job.model.layers + 2;
    const char* hint =
        ends ? "; where embedding and head have chunks to themselves, stage_layers says it: 0,1,…,1,0" : "";
    return refuse("layers-fill-stages",
                  fmt::format("{} layers cannot fill pipeline {} x virtual_stages {} = {} chunks{}", job.model.layers,
                              plan.pipeline, plan.virtual_stages, chunks, hint));
  }
  if (const int exactly = traits_of(plan.schedule).chunks; exactly > 0 && plan.virtual_stages != exactly) {
    return refuse("v-schedule-has-two-chunks", fmt::format("schedule {} has virtual_stages {}; there are {}",
                                                           name_of(plan.schedule), exactly, plan.virtual_stages));
  }
  if (!traits_of(plan.schedule).takes(plan.virtual_stages)) {
    return refuse("interleaved-needs-virtual-stages",
                  fmt::format("virtual_stages {} with schedule {}: virtual stages and the {} schedule need each other",
                              plan.virtual_stages, name_of(plan.schedule), name_of(usual_schedule(2))));
  }
  if (plan.virtual_stages > 1 && plan.pipeline == 1) {
    return refuse("virtual-stages-need-pipeline", "virtual_stages above 1 need pipeline 2 or more");
  }
  if (auto no = check_stage_layers(job)) return no;
  const bool whole = plan.pipeline == 1 || plan.sequence_parallel || plan.scatter_gather != ScatterGather::kOn;
  for (const int size : micro_batch_sizes(plan)) {
    const std::int64_t sent = job.training.sequence * size / plan.context * job.model.hidden;
    if (whole || sent % plan.tensor == 0) continue;
    return refuse("tensor-divides-transfers",
                  fmt::format("scatter_gather on: tensor {} does not divide the {} elements of a transfer; use off",
                              plan.tensor, sent));
  }
  if (!plan.stage_recompute.empty() && static_cast<int>(plan.stage_recompute.size()) != plan.chunks()) {
    return refuse("stage-recompute-count",
                  fmt::format("stage_recompute has {} entries; pipeline x virtual_stages is {}",
                              plan.stage_recompute.size(), plan.chunks()));
  }
  return std::nullopt;
}

// Passes in pairs (Overlap::expert).
Verdict check_pairs(const Job& job) {
  const Plan& plan = job.plan;
  if (!plan.overlap.expert) return std::nullopt;
  if (plan.expert == 1) {
    return refuse("overlap-expert-needs-expert",
                  "overlap.expert with expert 1: nothing goes to experts of other ranks; use expert 2 or more");
  }
  const std::string schedule(name_of(plan.schedule));
  if (!traits_of(plan.schedule).pairs) {
    return missing("overlap.expert", "pairs of passes in schedule " + schedule + "; use interleaved or dualpipev");
  }
  // The bounds take a whole backward for its two halves, which have more, and hide less, of tensor collectives.
  const bool halves = plan.tensor > 1 && traits_of(plan.schedule).splits_backward;
  if (halves) return missing("overlap.expert", "tensor ranks with pairs in schedule " + schedule + "; use tensor 1");
  if (plan.pipeline > 1 && plan.virtual_stages == 1) {
    return refuse("overlap-expert-needs-virtual-stages",
                  fmt::format("overlap.expert with pipeline {} and one chunk a stage: a stage's pair of passes would "
                              "wait for its neighbours' every other time; use virtual_stages 2 or more",
                              plan.pipeline));
  }
  if (plan.zero_stage > 1) {
    return missing("overlap.expert", "zero_stage 2 or 3, which moves state during every pass; use 0 or 1");
  }
  if (recomputes(plan, Recompute::kFull)) {
    return missing("overlap.expert", "full recomputation exchanges rows once more; use recompute none or selective");
  }
  const Offload& away = plan.offload;
  if (away.gradients != Storage::kNone || away.parameters != Storage::kNone || away.activations != Storage::kNone) {
    return missing("overlap.expert", "copies of two passes at once; of offload use optimizer alone");
  }
  return std::nullopt;
}

Verdict check_batch(const Job& job) {
  const Plan& plan = job.plan;
  const std::int64_t per_pass = samples_of_pass(plan);
  if (job.training.global_batch % per_pass != 0 && !plan.replica_micro_batch.empty()) {
    return refuse("batch-divides", fmt::format("global_batch {} is not a multiple of the {} samples of all replicas' "
                                               "micro-batches (replica_micro_batch)",
                                               job.training.global_batch, per_pass));
  }
  if (job.training.global_batch % per_pass != 0) {
    return refuse("batch-divides", fmt::format("global_batch {} is not a multiple of data {} x micro_batch {} = {}",
                                               job.training.global_batch, plan.data, plan.micro_batch, per_pass));
  }
  const std::int64_t count = micro_batches(plan, job.training.global_batch);
  constexpr std::int64_t kMostMicroBatches = std::numeric_limits<decltype(Task::frame)>::max();
  if (count > kMostMicroBatches) {
    return refuse("micro-batches-in-range",
                  fmt::format("{} micro-batches a step and replica are more than {}", count, kMostMicroBatches));
  }
  if (count % traits_of(plan.schedule).round(plan.pipeline) != 0) {
    return refuse("interleaved-rounds",
                  fmt::format("the {} schedule needs micro-batches in multiples of pipeline {}; there are {}",
                              name_of(plan.schedule), plan.pipeline, count));
  }
  if (job.model.positions == models::Positions::kLearned && job.training.sequence > job.model.max_sequence) {
    return refuse("sequence-has-positions", fmt::format("sequence {} is longer than the {} learned positions of {}",
                                                        job.training.sequence, job.model.max_sequence, job.model.name));
  }
  return std::nullopt;
}

Verdict check_placement(const Plan& plan) {
  std::array<std::string_view, 4> words;
  std::size_t count = 0;
  for (std::string_view left = plan.placement; !left.empty(); ++count) {
    const std::size_t end = std::min(left.find('-'), left.size());
    if (count < words.size()) words[count] = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  std::sort(words.begin(), words.end());
  constexpr std::array<std::string_view, 4> kSorted{"context", "data", "pipeline", "tensor"};
  if (count == words.size() && words == kSorted) return std::nullopt;
  return refuse("placement-known",
                fmt::format("placement \"{}\" is not an order of tensor, context, data and pipeline joined by '-'",
                            plan.placement));
}

Verdict check_offload(const Plan& plan) {
  const bool full = recomputes(plan, Recompute::kFull);
  if (plan.offload.parameters != Storage::kNone && plan.zero_stage != 3) {
    return refuse("offload-parameters-sharded",
                  fmt::format("offload.parameters with zero_stage {}: they are whole on the device between passes; use "
                              "zero_stage 3",
                              plan.zero_stage));
  }
  if (plan.offload.activations == Storage::kNone || !full) return std::nullopt;
  return refuse(
      "offload-finds-activations",
      "offload.activations with full recomputation: a layer keeps its input alone, which stays on the device; "
      "use recompute none or selective");
}

Verdict check_stage_nodes(const Plan& plan) {
  if (plan.stage_nodes.empty()) return std::nullopt;
  if (static_cast<int>(plan.stage_nodes.size()) != plan.pipeline) {
    return refuse("stage-nodes-count",
                  fmt::format("stage_nodes has {} entries; pipeline is {}", plan.stage_nodes.size(), plan.pipeline));
  }
  if (!plan.placement.ends_with("pipeline")) {
    return refuse(
        "stage-nodes-need-whole-stages",
        fmt::format("stage_nodes puts whole stages on nodes; placement \"{}\" must end with pipeline", plan.placement));
  }
  return std::nullopt;
}

// Kernels of products in 8 bits take rows of whole 16 bytes (Transformer Engine: "product of all dimensions except last
// divisible by 8, last dimension by 16"; MXFP8 and NVFP4: by 32).
Verdict check_fp8(const Job& job) {
  const Plan& plan = job.plan;
  if (plan.fp8 == Fp8::kNone) return std::nullopt;
  const std::string_view recipe = name_of(plan.fp8);
  if (plan.precision == DType::kFp16) {
    return refuse("fp8-beside-bf16",
                  fmt::format("fp8 {} with precision fp16: its casts know no loss scale; use precision bf16", recipe));
  }
  const ChunkShape shape(job);
  constexpr std::int64_t kRow = 16, kScaledRow = 32, kTokens = 8;
  const bool scaled_rows = plan.fp8 == Fp8::kMxfp8 || plan.fp8 == Fp8::kNvfp4;
  const std::int64_t row = scaled_rows ? kScaledRow : kRow;
  const std::pair<const char*, std::int64_t> widths[] = {
      {"hidden", shape.hidden}, {"attended", shape.attended},           {"qkv", shape.qkv},
      {"ffn", shape.mlp.ffn},   {"experts' ffn", shape.expert_mlp.ffn}, {"shared ffn", shape.shared_mlp.ffn}};
  for (const auto& [name, width] : widths) {
    if (width % row == 0) continue;
    return refuse("fp8-divides-rows", fmt::format("fp8 {}: {} {} columns of a tensor rank are no multiple of {}",
                                                  recipe, width, name, row));
  }
  if (shape.tokens % kTokens == 0) return std::nullopt;
  return refuse("fp8-divides-tokens",
                fmt::format("fp8 {}: {} tokens of a micro-batch are no multiple of {}", recipe, shape.tokens, kTokens));
}

}  // namespace

std::optional<Infeasible> check(const Job& job, int ranks) {
  if (auto no = check_ranges(job)) return *no;
  if (auto no = check_replicas(job.plan)) return *no;
  if (auto no = check_supported(job)) return *no;
  if (auto no = check_adapters(job)) return *no;
  if (auto no = check_documents(job)) return *no;
  if (const std::string why = without_expert_load(job); !why.empty()) return Infeasible{"expert_load", why};
  if (auto no = check_muon(job)) return *no;
  if (auto no = check_sharding(job.plan)) return *no;
  if (auto no = check_tensor(job)) return *no;
  if (auto no = check_context(job)) return *no;
  if (auto no = check_experts(job)) return *no;
  if (auto no = check_pipeline(job)) return *no;
  if (auto no = check_recomputation(job)) return *no;
  if (auto no = check_pairs(job)) return *no;
  if (auto no = check_batch(job)) return *no;
  if (auto no = check_placement(job.plan)) return *no;
  if (auto no = check_stage_nodes(job.plan)) return *no;
  if (auto no = check_offload(job.plan)) return *no;
  if (auto no = check_fp8(job)) return *no;
  if (auto no = check_parameter_gather(job)) return *no;
  if (ranks > 0 && job.plan.ranks() != ranks) {
    return Infeasible{
        "ranks-match",
        fmt::format("tensor {} x context {} x pipeline {} x data {} = {} ranks; there are {} devices", job.plan.tensor,
                    job.plan.context, job.plan.pipeline, job.plan.data, job.plan.ranks(), ranks)};
  }
  return std::nullopt;
}

}  // namespace trivium::program
