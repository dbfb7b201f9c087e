#include "program/plan/stack.h"

#include <algorithm>
#include <array>

#include "program/plan/plan.h"

namespace trivium::program {
namespace {

// A rank's share of a host with eight. Megatron-Core's optimizer on the host took 15.5 s for 35 billion parameters on
// two hosts (github.com/ISEEKYAN/Megatron-LM, issue 188), DeepSpeed's 10 s for 72.7 billion on four (DeepSpeed issue
// 6834).
constexpr double kMegatronHostAdam = 35e9 / 2 / 8 / 15.5, kDeepspeedHostAdam = 72.7e9 / 4 / 8 / 10;

constexpr double kCaptured = 0.1;  // assumption: what a host still issues where CUDA graphs launch most kernels

constexpr std::int64_t kMegatronVocabMultiple = 128;  // --make-vocab-size-divisible-by, times the tensor group

/// Our own runtime: its reductions run on a lane of their own, so the engine itself sees what they hide.
StackTraits trivium() {
  StackTraits h;
  h.name = "trivium";
  h.reads_codes_back = true;
  h.splits_backward = true;
  h.separate_tied_gradients = true;  // DESIGN "Numerics": the two uses accumulate apart and are added once
  return h;
}

/// Megatron-LM of 2020-21 (arXiv 2104.04473): fused mask-softmax and bias kernels, scatter-gather on pipeline
/// transfers.
StackTraits megatron() {
  StackTraits h;
  h.name = "megatron";
  h.family = "megatron";
  h.half_gradients = true;    // Megatron-LM README: fp16 parameters with fp16 gradients hold 20 B per parameter
  h.scatter_gather = true;    // 2104.04473, section 4.1
  h.memory_traffic = 0.86;    // joint fit over published runs: fewer bytes than the reference count
  h.fused_softmax_batch = 4;  // megatron/model/fused_softmax.py: attn_batch_size % 4 == 0, one warp a row, four a block
  h.vocab_multiple = kMegatronVocabMultiple;
  h.usual_dropout = 0.1;  // --attention-dropout, --hidden-dropout
  return h;
}

/// Megatron-LM of 2022 (Korthikanti et al., arXiv 2205.05198).
StackTraits megatron_2022() {
  StackTraits h = megatron();
  h.name = "megatron-2022";
  h.fused_attention = false;             // its published runs hold all scores in memory
  h.overlaps_tensor_collectives = true;  // during the weight gradient; worth 3 points on the 2205.05198 rows
  h.frees_sent_outputs = true;           // 2205.05198, appendix B: the output tensor of a stage is deallocated
  return h;
}

/// Megatron-DeepSpeed as BigScience ran it (BLOOM, 104B): DeepSpeed's 1F1B, ZeRO-1.
StackTraits megatron_deepspeed() {
  StackTraits h = megatron();
  h.name = "megatron-deepspeed";
  h.family.clear();  // a fork of 2021 with DeepSpeed's pipeline
  h.flat_buckets = true;
  h.host_adam = kDeepspeedHostAdam;
  h.half_gradient_shards = true;  // as deepspeed_zero3 below, where parameters are sharded
  h.keeps_end_units = false;
  h.collectives_per_unit = 4;
  h.balances_embedding_as_layer =
      true;  // BLOOM: 70 layers + 2 over 12 stages (pipe partition "type:transformer|embedding")
  return h;
}

/// Megatron-DeepSpeed on one node of vTrain's authors: the logits of 50,257 words are slow where nothing is split
/// (80-105 of 140 TFLOP/s at tensor 2 and more), which is what an unpadded vocabulary does.
StackTraits megatron_deepspeed_vtrain() {
  StackTraits h = megatron_deepspeed();
  h.name = "megatron-deepspeed-vtrain";
  h.fused_attention = false;  // its published runs hold all scores in memory
  h.pads_without_tensor = false;
  return h;
}

/// PyTorch FSDP as LLM Foundry ran it in 2023: unfused pointwise kernels, gathers and reductions prefetched.
StackTraits fsdp() {
  StackTraits h;
  h.name = "fsdp";
  h.family = "fsdp";
  h.host_adam = kMegatronHostAdam;  // assumption: PyTorch's AdamW on the host, as under Megatron-Core
  h.fused_kernels = false;
  h.memory_traffic = 1.2;  // joint fit over published runs
  h.overlaps_gradients_by_default = true;
  h.gathers_ahead_by_default = true;    // BACKWARD_PRE and forward prefetch, two units in flight (limit_all_gathers)
  h.crowded_above = 0.923;              // simulator/memory/crowding.h
  h.wide_shards_only = true;            // FullyShardedDataParallel, MixedPrecision: shards stay in fp32, 16 B in all
  h.reduces_in_fp32_by_default = true;  // Composer's mixed_precision DEFAULT: 2 + 2 + 4 B per parameter and pass pair
  return h;
}

/// The same from late 2023 on: FlashAttention-2, which on an H100 reaches two thirds of its successors' rates.
StackTraits fsdp_flash2() {
  StackTraits h = fsdp();
  h.name = "fsdp-flash2";
  h.flash_rate = 0.5;
  return h;
}

/// DeepSpeed ZeRO-3 (Azure, 2022): stage 3 turns overlap_comm on, which hides little in practice: modules are fetched
/// when they are reached, each of a layer's four products by itself. (Fetched a layer ahead, the runs of 175B with one
/// sample come out 27 % too fast.)
StackTraits deepspeed_zero3() {
  StackTraits h;
  h.name = "deepspeed-zero3";
  h.family = "deepspeed";
  h.host_adam = kDeepspeedHostAdam;
  h.memory_traffic = 1.4;  // joint fit over published runs
  h.overlaps_gradients_by_default = true;
  h.half_gradient_shards = true;  // Rajbhandari et al. 2020: 2 + 2 + 12 B a parameter
  h.keeps_end_units = false;
  h.collectives_per_unit = 4;
  return h;
}

/// DeepSpeed ZeRO-3 of the 2021 papers: as above, but its collectives reached a quarter of the later network bandwidth.
StackTraits deepspeed_zero3_2021() {
  StackTraits h = deepspeed_zero3();
  h.name = "deepspeed-zero3-2021";
  h.fused_attention = false;  // its published runs hold all scores in memory
  h.network_reach = 0.20;     // the three ZeRO-3 runs of 2104.04473; the same code of 2022 is not held back
  h.overlaps_gradients_by_default = false;  // additive: the three ZeRO-3 runs of 2104.04473 come out within 10 %
  return h;
}

/// Alpa's XLA runtime (arXiv 2201.12023): reported, never fitted to.
StackTraits alpa_xla() {
  StackTraits h;
  h.name = "alpa-xla";
  h.fused_attention = false;  // its published runs hold all scores in memory
  return h;
}

/// Megatron-Core as NeMo drives it: distributed optimizer with gradients reduced in backward and parameters gathered
/// in forward (overlap_grad_reduce, overlap_param_gather), gradients sent in bf16 (grad_reduce_in_fp32 off),
/// fused kernels of Transformer Engine, attention of cuDNN, no dropout in the published benchmarks, tensor collectives
/// in user buffers overlapping their products piece by piece (ub_tp_comm_overlap).
StackTraits megatron_core(std::string_view name) {
  StackTraits h;
  h.name = name;
  h.family = "megatron";
  h.scatter_gather = true;
  h.memory_traffic = 0.86;  // as fitted for Megatron-LM
  h.vocab_multiple = kMegatronVocabMultiple;
  h.overlaps_gradients_by_default = true;
  h.gathers_ahead_by_default = true;
  h.frees_sent_outputs = true;     // deallocate_pipeline_outputs
  h.frozen_in_8_bits = true;       // fp8_params, disable_parameter_transpose_cache in its recipes of LoRA
  h.gradients_as_reduced = true;   // core/distributed/param_and_grad_buffer.py: grad_reduce_in_fp32
  h.bucket_elements = 40'000'000;  // DistributedDataParallel: the larger of this and a million for every rank
  h.expert_issue = 30e-6;          // docs/explanation/cost-model.md, "The host"
  h.host_adam = kMegatronHostAdam;
  h.hidden_tensor = 0.7;  // assumption: what is left of collectives that overlap with products piece by piece
  h.peer_buffers = true;
  return h;
}

/// The same by Megatron-Bridge, whose recipes have user buffers on without a word of it in its tables.
StackTraits megatron_bridge() {
  StackTraits h = megatron_core("megatron-bridge");
  h.overlaps_tensor_collectives = true;
  h.pairs_passes = true;          // overlap_moe_expert_parallel_comm
  h.parameters_in_8_bits = true;  // training/mixed_precision.py: fp8_param_gather, off by blocks, refused in 4 bits
  h.fuses_latents = true;         // scripts/performance/utils/overrides.py: apply_rope_fusion
  return h;
}

/// The same with Megatron-Core's flex dispatcher, whose backend is HybridEP in its recipes.
StackTraits megatron_bridge_flex() {
  StackTraits h = megatron_bridge();
  h.name = "megatron-bridge-flex";
  h.expert_dispatch = ExpertDispatch::kHybrid;
  return h;
}

/// The same with whole iterations captured in CUDA graphs (cuda_graph_impl "full_iteration"), and the MLPs of all
/// experts in one kernel, as a capture needs (cutedsl_fused_grouped_mlp).
StackTraits megatron_bridge_graphs() {
  StackTraits h = megatron_bridge_flex();
  h.name = "megatron-bridge-graphs";
  h.issue = kCaptured;
  h.expert_issue *= kCaptured;
  return h;
}

/// The same as NVIDIA submits it to MLPerf: layers, or whole steps, are captured in CUDA graphs (MCORE_CUDA_GRAPH,
/// FULL_CUDA_GRAPH of the submissions' configurations), so that the host launches little.
StackTraits megatron_mlperf() {
  StackTraits h = megatron_core("megatron-nemo-mlperf");
  h.issue = kCaptured;
  return h;
}

/// Megatron-Core by its own training script: gradients are kept and reduced in fp32, tensor collectives run alone.
StackTraits megatron_core_plain(std::string_view name, bool pairs_passes = true) {
  StackTraits h = megatron_core(name);
  h.reduces_in_fp32_by_default = true;
  h.pairs_passes = pairs_passes;  // --overlap-moe-expert-parallel-comm, from 0.14 on
  return h;
}

/// HAI-LLM as it trained DeepSeek-V3 (arXiv 2412.19437, sections 3.2 and 3.3): DualPipe, whose two directions on p
/// stages are two pipelines of p / 2 stages in a V (dualpipev) on twice the replicas; exchanges with the experts by
/// kernels that send a token once to a node (DeepEP); products in 8 bits by blocks; ZeRO-1, gradients kept and reduced
/// in fp32. Nothing is fitted: the report has one figure of time.
StackTraits deepseek_hai_llm() {
  StackTraits h;
  h.name = "deepseek-hai-llm";
  h.expert_dispatch = ExpertDispatch::kDeepEp;  // section 3.2.2
  h.pairs_passes = h.pairs_in_v = true;         // section 3.2.1
  h.splits_backward = true;                     // figure 4: backward for input, backward for weights
  h.fuses_latents = true;                       // assumption: kernels of their own, as in Megatron-Bridge
  h.memory_traffic = 0.86;                      // assumption: as Megatron-Core
  h.overlaps_gradients_by_default = true;       // assumption
  h.gathers_ahead_by_default = true;            // assumption
  h.reduces_in_fp32_by_default = true;          // section 3.3.2: gradients in FP32
  return h;
}

/// nanotron (Hugging Face): PyTorch with flash attention and a few fused kernels; bf16 parameters, whose gradients
/// autograd fills in bf16 and which are added to fp32 ones (accumulate_grad_in_fp32); reductions after the last
/// backward; logits in fp32 in the sharded cross entropy.
StackTraits nanotron() {
  StackTraits h;
  h.name = "nanotron";
  h.fills_half_gradients = true;
  h.balances_by_cost = true;             // nanotron/models/base.py, build_model
  h.overlaps_tensor_collectives = true;  // scaling_benchmarks.py: tp_linear_async_communication with REDUCE_SCATTER
  h.tells_first_rank = true;             // measured: one micro-batch over two stages takes what the first holds
  h.saves_gathered_inputs = true;  // tensor_parallel/functional.py: autograd keeps what a column product was given
  h.pipelined_issue = 0.20e-3;     // docs/explanation/cost-model.md, "Stacks"
  h.logit_bytes = 8;  // measured: memory of the Ultra-Scale Playbook's runs by micro-batch: two fp32 copies
  h.issue = 2.2;      // measured there: 4.4 ms of host time a layer where tensor groups make kernels small
  h.flash_rate =
      0.65;  // FlashAttention-2: about 350 TFLOP/s forward on an H100, where cuDNN and FlashAttention-3 have 550
  h.fused_kernels = false;
  h.memory_traffic = 1.2;
  h.reduces_in_fp32_by_default = true;
  h.pads_without_tensor = false;
  h.overlaps_gradients_by_default = true;
  return h;
}

/// torchtitan and its like: PyTorch FSDP2 (fully_shard), layers compiled: pointwise kernels fused, few launches.
StackTraits fsdp2(std::string_view name) {
  StackTraits h = fsdp();
  h.name = name;
  h.family = "fsdp2";
  h.flash_rate = 0.65;  // FlashAttention-2, called by scaled_dot_product_attention
  h.fused_kernels = true;
  h.memory_traffic = 1.0;
  h.crowded_above = 0;
  h.issue = 0.6;
  h.hidden_tensor = 0.25;           // async TP; from three pairs of torchtitan's runs (cost-model.md)
  h.peer_buffers = true;            // symmetric memory
  h.gathers_scaled_tensors = true;  // torchao, Float8ColwiseParallel: inputs and gradients are cast, then gathered
  return h;
}

/// FSDP2 without torch.compile.
StackTraits fsdp2_eager(std::string_view name) {
  StackTraits h = fsdp2(name);
  h.fused_kernels = false;
  h.memory_traffic = 1.2;
  h.issue = 1;
  return h;
}

/// XLA on GPUs (Paxml, MaxText): the compiler fuses pointwise work and schedules collectives ahead of their use.
StackTraits xla(std::string_view name) {
  StackTraits h;
  h.name = name;
  h.overlaps_gradients_by_default = true;
  h.gathers_ahead_by_default = true;
  h.wide_shards_only = true;
  h.issue = 0.3;
  h.hidden_tensor = 0.5;
  return h;
}

/// InternEvo: hybrid ZeRO-1 as in its technical report (arXiv 2401.09149), reductions in bf16 during the backward.
StackTraits internevo() {
  StackTraits h;
  h.name = "internevo";
  h.fused_kernels = false;
  h.memory_traffic = 1.2;
  h.overlaps_gradients_by_default = true;
  return h;
}

/// Colossal-AI's hybrid parallel plugin (Gemini, low-level ZeRO).
StackTraits colossalai() {
  StackTraits h;
  h.name = "colossalai";
  h.fused_kernels = false;
  h.memory_traffic = 1.2;
  h.overlaps_gradients_by_default = true;
  h.gathers_ahead_by_default = true;
  return h;
}

const std::array<StackTraits, 30>& table() {
  static const std::array<StackTraits, 30> kTable = {trivium(),
                                                     megatron(),
                                                     megatron_2022(),
                                                     megatron_deepspeed(),
                                                     megatron_deepspeed_vtrain(),
                                                     fsdp(),
                                                     deepspeed_zero3(),
                                                     deepspeed_zero3_2021(),
                                                     alpa_xla(),
                                                     fsdp_flash2(),
                                                     nanotron(),
                                                     deepseek_hai_llm(),
                                                     megatron_core("megatron-nemo1"),
                                                     megatron_core("megatron-nemo2"),
                                                     megatron_bridge(),
                                                     megatron_bridge_flex(),
                                                     megatron_bridge_graphs(),
                                                     megatron_mlperf(),
                                                     megatron_core_plain("megatron-core"),
                                                     megatron_core_plain("megatron-core-0.8", false),
                                                     megatron_core_plain("megatron-core-moe"),
                                                     megatron_core_plain("megatron-core-dev-23e00ed"),
                                                     fsdp2("torchtitan-fsdp2"),
                                                     fsdp2_eager("torchtitan-fsdp2-eager"),
                                                     fsdp2_eager("automodel-fsdp2"),
                                                     fsdp2("kempnerforge-fsdp2"),
                                                     internevo(),
                                                     xla("paxml"),
                                                     xla("maxtext"),
                                                     colossalai()};
  return kTable;
}

}  // namespace

std::span<const StackTraits> all_stacks() { return table(); }

StackTraits stack_of(const Plan& plan) {
  StackTraits traits = *find_stack(plan.stack);
  if (plan.expert_dispatch != ExpertDispatch::kStack) traits.expert_dispatch = plan.expert_dispatch;
  return traits;
}

const StackTraits* find_stack(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &StackTraits::name);
  return found == table().end() ? nullptr : &*found;
}

}  // namespace trivium::program
