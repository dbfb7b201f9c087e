#include "planner/space/trainers.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

namespace trivium::planner {
namespace {

using program::Attention;
using program::Compression;
using program::ContextMethod;
using program::Fp8;
using program::Job;
using program::Moments;
using program::Plan;
using program::Recompute;
using program::Storage;

int extent_of(const Plan& plan, const std::string& dimension) {
  if (dimension == "tensor") return plan.tensor;
  if (dimension == "context") return plan.context;
  if (dimension == "data") return plan.data;
  return plan.pipeline;
}

std::vector<std::string> dimensions(const Plan& plan, std::string_view order) {
  std::vector<std::string> names;
  std::istringstream words{std::string(order)};
  for (std::string word; std::getline(words, word, '-');) {
    if (extent_of(plan, word) > 1) names.push_back(word);
  }
  return names;
}

bool has_usual_schedule(const Plan& plan) {
  return plan.pipeline == 1 || plan.schedule == program::usual_schedule(plan.virtual_stages);
}

bool recomputes_alike(const Plan& plan) {
  const auto& chunks = plan.stage_recompute;
  return std::adjacent_find(chunks.begin(), chunks.end(), std::not_equal_to<>()) == chunks.end();
}

bool has_even_layers(const Plan& plan) {
  const auto& layers = plan.stage_layers;
  return std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end();
}

// What no trainer has.
constexpr TrainerRule kOneRecompute{"stage_recompute", "one choice holds for all stages", recomputes_alike, true};
constexpr TrainerRule kAllLayers{"recompute_layers", "all layers of a stage are recomputed alike",
                                 [](const Plan& plan) { return plan.recompute_layers == 0; }, true};
constexpr TrainerRule kEachLayer{"recompute_group", "every layer is recomputed by itself",
                                 [](const Plan& plan) { return plan.recompute_group == 1; }, true};
constexpr TrainerRule kUncompressed{"compression", "gradients go uncompressed",
                                    [](const Plan& plan) { return plan.compression == Compression::kNone; }, true};
constexpr TrainerRule kWideMoments{"moment_dtype", "moments stay in fp32",
                                   [](const Plan& plan) { return plan.moment_dtype == Moments::kFp32; }, true};
constexpr TrainerRule kActivationsStay{
    "offload.activations", "activations stay on the device, or leave it module by module, which is not modelled",
    [](const Plan& plan) { return plan.offload.activations == Storage::kNone; }, true};
constexpr TrainerRule kOneReplicaSize{"replica_micro_batch", "micro-batches of one size",
                                      [](const Plan& plan) { return plan.replica_micro_batch.empty(); }, true};
constexpr TrainerRule kNoNodesByStage{"stage_nodes", "stages come in the order of the nodes",
                                      [](const Plan& plan) { return plan.stage_nodes.empty(); }, true};
constexpr TrainerRule kContextAlike{"context_heads", "all context ranks do the same",
                                    [](const Plan& plan) { return plan.context_heads == 1; }, true};
constexpr TrainerRule kRowsAllToAll{"expert_dispatch", "rows travel to experts by an all-to-all",
                                    [](const Plan& plan) { return !sends_once(plan.expert_dispatch); }, true};
constexpr TrainerRule kWideGathers{
    "fp8_parameter_gather", "parameters are gathered in 16 bits",
    [](const Plan& plan) { return plan.fp8_parameter_gather != program::Fp8Gather::kOn; }, true};
// Megatron-DeepSpeed's pipelines have layers of their own, without Transformer Engine (megatron/model/transformer.py,
// ParallelTransformerLayerPipe); the script of fully_shard does not convert its layers.
constexpr TrainerRule kSixteenBits{"fp8", "its files run products in 16 bits",
                                   [](const Plan& plan) { return plan.fp8 == program::Fp8::kNone; }, true};
constexpr TrainerRule kUsualSchedule{"schedule", "1f1b, interleaved with virtual stages", has_usual_schedule, false};
constexpr TrainerRule kDataInside{"placement", "ranks come in the order tensor, context, data, pipeline",
                                  [](const Plan& plan) { return has_order(plan, kDataInsidePipeline); }, false};
constexpr TrainerRule kFlash{"attention", "fused attention",
                             [](const Plan& plan) { return plan.attention == Attention::kFlash; }, true};
constexpr TrainerRule kWholeRecompute{"recompute", "none or full; selective keeps a list of its own",
                                      [](const Plan& plan) {
                                        return plan.recompute != Recompute::kSelective &&
                                               std::ranges::find(plan.stage_recompute, Recompute::kSelective) ==
                                                   plan.stage_recompute.end();
                                      },
                                      true};
constexpr TrainerRule kExchangesAlone{"overlap.expert", "exchanges with the experts run alone",
                                      [](const Plan& plan) { return !plan.overlap.expert; }, true};
constexpr TrainerRule kStateStays{"offload.optimizer",
                                  "the optimizer's state stays on the device, or goes with parameters and gradients",
                                  [](const Plan& plan) { return plan.offload.optimizer == Storage::kNone; }, true};

// Megatron-Core (arguments.py at the version in planner/launch/launch.cpp): the optimizer runs on the host only when it
// is distributed; Megatron-FSDP is taken without a pipeline, as its published recipes are.
constexpr std::array<TrainerRule, 16> kMegatron{
    {kOneReplicaSize,
     kNoNodesByStage,
     kUsualSchedule,
     kOneRecompute,
     kUncompressed,
     kActivationsStay,
     // Transformer Engine, dot_product_attention/utils.py, get_attention_backend: no unfused one with context ranks.
     {"attention", "context ranks need fused attention",
      [](const Plan& plan) { return plan.context == 1 || plan.attention == Attention::kFlash; }, false},
     // Its context_parallel.py, AttnFuncWithCPAndQKVOA2A: "the number of attention heads is divisible by cp_size" holds
     // for those of keys and values, too, of which a tensor rank has one at least.
     {"context", "context ranks that exchange heads divide the heads of keys of a tensor rank",
      [](const Plan& plan, const Job& job) {
        const int ranks = plan.context_method == ContextMethod::kAllToAll ? plan.context : plan.context_heads;
        return ranks == 1 || std::max<std::int64_t>(1, job.model.kv_heads / plan.tensor) % ranks == 0;
      },
      false},
     {"placement", "ranks come in the order tensor, context, data, pipeline, or with pipeline before data",
      [](const Plan& plan) { return has_order(plan, kDataInsidePipeline) || has_order(plan, kPipelineInsideData); },
      false},
     {"sequence_parallel", "experts with tensor parallelism need sequence parallelism",
      [](const Plan& plan) { return plan.expert == 1 || plan.tensor == 1 || plan.sequence_parallel; }, false},
     {"overlap.tensor", "user buffers need sequence parallelism",
      [](const Plan& plan) { return !plan.overlap.tensor || plan.sequence_parallel; }, false},
     {"zero_stage", "ZeRO 2 and 3 (Megatron-FSDP) without a pipeline",
      [](const Plan& plan) { return plan.zero_stage <= 1 || plan.pipeline == 1; }, false},
     {"overlap.parameter_gather", "gathers overlap only with ZeRO and overlapped reductions",
      [](const Plan& plan) {
        return !plan.overlap.parameter_gather || (plan.zero_stage > 0 && plan.overlap.gradient_reduction);
      },
      false},
     {"offload.optimizer", "the host's cores run the optimizer where it is distributed (ZeRO 1)",
      [](const Plan& plan) { return plan.offload.optimizer == Storage::kNone || plan.zero_stage == 1; }, false},
     {"moment_dtype", "moments in bf16 beside 16-bit parameters alone",
      [](const Plan& plan) { return plan.moment_dtype == Moments::kFp32 || is_half(plan.precision); }, true},
     {"zero_stage", "moments in bf16 with the distributed optimizer (ZeRO 1) and its state on the device",
      [](const Plan& plan) { return plan.moment_dtype == Moments::kFp32 || widens_moments_in_megatron(plan).empty(); },
      false}}};

// PyTorch FSDP2 overlaps gathers and reductions with the passes, DDP reductions.
constexpr TrainerRule kReducesBeside{
    "overlap.gradient_reduction", "reductions overlap with the backward",
    [](const Plan& plan) { return plan.overlap.gradient_reduction || plan.data * plan.context == 1; }, false};
constexpr TrainerRule kGathersBeside{
    "overlap.parameter_gather", "gathers overlap with the passes, with ZeRO only",
    [](const Plan& plan) { return plan.overlap.parameter_gather == (plan.zero_stage > 0); }, false};
constexpr TrainerRule kShardsBoth{"zero_stage", "fully_shard splits gradients with the state: ZeRO 2 or 3",
                                  [](const Plan& plan) { return plan.zero_stage != 1; }, true};

// torchtitan v0.2.2's converters. torchtitan/components/quantization/float8.py: tensors of one scale, worked out when
// they are cast; it has neither scales of earlier steps nor blocks. mx.py: MXFP8.
constexpr TrainerRule kConverters{
    "fp8", "products in 16 bits, float8 with one scale a tensor (current) or mxfp8",
    [](const Plan& plan) { return plan.fp8 == Fp8::kNone || plan.fp8 == Fp8::kCurrent || plan.fp8 == Fp8::kMxfp8; },
    true};
// MXLinearConverter.__init__: "TP not yet supported with torch.compile for mxfp8".
constexpr TrainerRule kMxWhole{"tensor", "mxfp8 has no tensor ranks in compiled layers",
                               [](const Plan& plan) { return plan.fp8 != Fp8::kMxfp8 || plan.tensor == 1; }, false};
// Float8GroupedMMConverter.__init__: "does not yet support pipeline parallelism", "context parallelism".
constexpr TrainerRule kFloat8Experts{"pipeline", "experts in float8 have neither stages nor context ranks",
                                     [](const Plan& plan, const Job& job) {
                                       return plan.fp8 != Fp8::kCurrent || !job.model.experts ||
                                              plan.pipeline * plan.context == 1;
                                     },
                                     false};
// torch/distributed/pipelining/schedules.py, Schedule1F1B.__init__: "Number of microbatches must be greater than or
// equal to the number of stages". ScheduleInterleaved1F1B takes what ours takes: whole rounds of the stages.
constexpr TrainerRule kStagesFed{"schedule", "1F1B has at least as many micro-batches as stages",
                                 [](const Plan& plan, const Job& job) {
                                   return plan.pipeline == 1 || plan.virtual_stages > 1 ||
                                          program::micro_batches(plan, job.training.global_batch) >= plan.pipeline;
                                 },
                                 false};
// torch/distributed/pipelining/stage.py, backward_maybe_with_nosync: gradients are synchronised, and parameters freed
// after a backward, once a step. What replicas of a stage share is the state: fully_shard there is ZeRO 1.
constexpr TrainerRule kShardsInPipeline{
    "zero_stage", "ZeRO 2 or 3 (fully_shard); stages of a pipeline keep whole gradients and parameters: ZeRO 1",
    [](const Plan& plan) { return plan.pipeline > 1 ? plan.zero_stage <= 1 : plan.zero_stage != 1; }, false};

// Together with other dimensions, replicas shard their state: experts are spread over replicas that do.
constexpr TrainerRule kReplicasShard{"zero_stage", "plain replicas stand alone",
                                     [](const Plan& plan) {
                                       const int others = plan.tensor * plan.pipeline * plan.expert;
                                       return plan.zero_stage > 0 ||
                                              (plan.context == 1 && (plan.data == 1 || others == 1));
                                     },
                                     false};

constexpr std::array<TrainerRule, 30> kTorchtitan{
    {kOneReplicaSize,
     kConverters,
     kMxWhole,
     kFloat8Experts,
     kStagesFed,
     // torchtitan/distributed/utils.py, maybe_enable_amp: without FSDP tensor ranks and stages run in fp32.
     {"data", "mixed precision with tensor ranks or stages needs replicas that shard",
      [](const Plan& plan) { return plan.data * plan.context > 1 || plan.tensor * plan.pipeline == 1; }, false},
     kContextAlike,
     kRowsAllToAll,
     kWideGathers,
     kExchangesAlone,
     kNoNodesByStage,
     kUsualSchedule,
     kDataInside,
     kOneRecompute,
     kAllLayers,
     kEachLayer,
     kUncompressed,
     kWideMoments,
     kActivationsStay,
     kFlash,
     kWholeRecompute,
     kStateStays,
     kShardsInPipeline,
     kReducesBeside,
     kGathersBeside,
     {"context_method", "keys and values go round; heads are not exchanged",
      [](const Plan& plan) { return plan.context == 1 || plan.context_method == ContextMethod::kRing; }, false},
     {"sequence_parallel", "always with tensor ranks",
      [](const Plan& plan) { return plan.sequence_parallel == (plan.tensor > 1); }, false},
     {"expert_tensor", "experts are whole, or split by all tensor ranks",
      [](const Plan& plan) { return plan.expert_tensor <= 1 || plan.expert_tensor == plan.tensor; }, false},
     // Experts are spread over ranks of the fsdp mesh, dp_shard x cp, whose innermost are the context ranks
     // (torchtitan/distributed/parallel_dims.py, sparse_mesh); here they lie along the replicas alone.
     {"context", "context ranks share experts, too, which is not modelled",
      [](const Plan& plan) { return plan.expert == 1 || plan.context == 1; }, false},
     kReplicasShard}};

// The host runs the optimizer; beyond ZeRO 1 gradients follow it there.
constexpr TrainerRule kDeepspeedState{
    "offload.optimizer", "the host's cores run the optimizer with ZeRO; at 2 and 3 gradients go there, too",
    [](const Plan& plan) { return plan.offload.optimizer == Storage::kNone || plan.zero_stage == 1; }, false};
constexpr TrainerRule kGroupsOfThree{
    "shard_group", "shard groups with ZeRO 3 (MiCS)",
    [](const Plan& plan) { return plan.shard_group == 0 || plan.shard_group == plan.data || plan.zero_stage == 3; },
    false};

constexpr std::array<TrainerRule, 27> kDeepspeed{
    {kOneReplicaSize,
     kSixteenBits,
     kContextAlike,
     kRowsAllToAll,
     kWideGathers,
     kExchangesAlone,
     kNoNodesByStage,
     kDataInside,
     kOneRecompute,
     kAllLayers,
     kUncompressed,
     kWideMoments,
     kActivationsStay,
     kWholeRecompute,
     kUsualSchedule,
     {"virtual_stages", "the pipeline engine runs plain 1F1B",
      [](const Plan& plan) { return plan.virtual_stages == 1; }, true},
     {"stage_layers", "the engine balances stages itself", has_even_layers, true},
     {"context_method", "Ulysses: heads all to all",
      [](const Plan& plan) { return plan.context == 1 || plan.context_method == ContextMethod::kAllToAll; }, false},
     {"context", "Ulysses without tensor ranks and pipeline",
      [](const Plan& plan) { return plan.context == 1 || plan.tensor * plan.pipeline == 1; }, false},
     {"overlap.tensor", "tensor collectives run alone", [](const Plan& plan) { return !plan.overlap.tensor; }, true},
     {"zero_stage", "ZeRO 2 and 3 without a pipeline",
      [](const Plan& plan) { return plan.zero_stage <= 1 || plan.pipeline == 1; }, false},
     // deepspeed/runtime/bf16_optimizer.py
     {"zero_stage", "a pipeline in bf16 shards the optimizer's states, which is ZeRO 1",
      [](const Plan& plan) {
        return plan.zero_stage > 0 || plan.pipeline == 1 || plan.precision != program::DType::kBf16;
      },
      false},
     {"overlap.parameter_gather", "parameters are fetched when a module is reached",
      [](const Plan& plan) { return !plan.overlap.parameter_gather; }, true},
     {"expert_tensor", "tensor ranks split every expert",
      [](const Plan& plan) { return !program::folds_experts(plan); }, true},
     // deepspeed/runtime/engine.py: "Native DeepSpeed MoE is not supported with ZeRO Stage 3".
     {"zero_stage", "experts are spread over ranks with ZeRO 0 to 2",
      [](const Plan& plan) { return plan.expert == 1 || plan.zero_stage <= 2; }, false},
     kDeepspeedState,
     kGroupsOfThree}};

// A plain script around fully_shard: what planner/launch/fsdp2_export.cpp writes.
constexpr std::array<TrainerRule, 20> kFsdp2{
    {kOneReplicaSize,
     kSixteenBits,
     kWideGathers,
     kNoNodesByStage,
     kOneRecompute,
     kAllLayers,
     kEachLayer,
     kUncompressed,
     kWideMoments,
     kActivationsStay,
     kFlash,
     kWholeRecompute,
     kStateStays,
     kShardsBoth,
     kReducesBeside,
     kGathersBeside,
     {"tensor", "replicas alone", [](const Plan& plan) { return plan.tensor == 1; }, true},
     {"context", "replicas alone", [](const Plan& plan) { return plan.context == 1; }, true},
     {"pipeline", "replicas alone", [](const Plan& plan) { return plan.pipeline == 1; }, true},
     {"expert", "experts are sharded as all else is", [](const Plan& plan) { return plan.expert == 1; }, true}}};

constexpr std::array<TrainerSpace, 5> kSpaces{
    {{"megatron", "megatron-core", kMegatron, true},
     {"megatron-bridge", "megatron-bridge", kMegatron, true, true},
     // models/qwen3/model/model.py at v0.2.2: heads of keys are viewed whole, tied weights need both in one module.
     {.trainer = "torchtitan",
      .stack = "torchtitan-fsdp2",
      .rules = kTorchtitan,
      .whole_key_heads = true,
      .ties_within_a_stage = true},
     // megatron/model/transformer.py divides the heads of keys.
     {.trainer = "deepspeed",
      .stack = "megatron-deepspeed",
      .rules = kDeepspeed,
      .whole_key_heads = true,
      .gathers_mixtures = false},
     {"fsdp2", "torchtitan-fsdp2-eager", kFsdp2}}};

}  // namespace

std::span<const TrainerSpace> trainer_spaces() { return kSpaces; }

const TrainerSpace* find_trainer_space(std::string_view trainer) {
  const auto found = std::ranges::find(kSpaces, trainer, &TrainerSpace::trainer);
  return found == kSpaces.end() ? nullptr : &*found;
}

const TrainerRule* broken_rule(const TrainerSpace& space, const Plan& plan, const Job& job) {
  const auto broken =
      std::ranges::find_if(space.rules, [&](const TrainerRule& rule) { return !rule.holds(plan, job); });
  return broken == space.rules.end() ? nullptr : &*broken;
}

std::string_view widens_moments_in_megatron(const Plan& plan) {
  if (plan.zero_stage != 1) return "the precision-aware optimizer needs zero_stage 1; moments stay in fp32";
  if (plan.offload.optimizer != Storage::kNone) return "moments on the host stay in fp32";
  return is_half(plan.precision) ? "" : "with 16-bit parameters alone; moments stay in fp32";
}

bool has_order(const Plan& plan, std::string_view order) {
  return dimensions(plan, plan.placement) == dimensions(plan, order);
}

}  // namespace trivium::planner
