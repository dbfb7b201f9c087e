// What differs between the trainers that execute a plan. Their values are in stacks/*.json, each with its source.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "program/plan/dtype.h"
#include "program/plan/expert_dispatch.h"

namespace trivium::program {

/// What differs between trainers that are given the same plan. Each member is a row of program/plan/stack_flags.cpp.
struct StackTraits {
  std::string name;
  std::string family;                    ///< editions of one trainer, whose predictions err alike; empty: its own
  bool fused_kernels = true;             ///< mask-softmax, bias-GeLU, bias-dropout-residual in one kernel each
  bool fused_attention = true;           ///< FlashAttention or its like, where devices have kernels for it
  bool separate_tied_gradients = false;  ///< the two uses of a tied weight accumulate apart (our own runtime)
  bool half_gradients = false;  ///< fp16 gradients stay fp16, with an fp32 copy in the optimizer; bf16 ones are fp32
  bool scatter_gather = false;  ///< pipeline transfers split over the tensor group
  bool overlaps_tensor_collectives = false;  ///< backward tensor collectives overlap weight gradients by default
  double hidden_tensor = 0;                  ///< share of tensor collectives inside their products, where they overlap
  bool peer_buffers = false;  ///< overlapped tensor collectives read and write the memory of peers (user buffers,
                              ///< symmetric memory); else they are NCCL's, on a stream of their own
  bool pairs_passes = false;  ///< can overlap exchanges with the experts with another micro-batch's pass
  bool pairs_in_v = false;    ///< in pairs of a pipeline that leads to and fro (dualpipev), and in no other
  double issue = 1;           ///< of the host's time to issue a kernel: below 1 where graphs or compilers launch fewer
  double expert_issue = 0;    ///< s of the host for every launch for one expert, where experts' products run one by one
  ExpertDispatch expert_dispatch = ExpertDispatch::kAllToAll;  ///< where a plan does not say (never kStack)
  bool fuses_latents = false;  ///< heads are made of latents and turned in one kernel each for queries and keys
  bool gathers_scaled_tensors = false;  ///< sequence parallel: in 8 bits, where a tensor has one scale
  bool fills_half_gradients = false;    ///< autograd fills 16-bit gradients, then adds them to wide ones
  bool tells_first_rank = false;        ///< memory that it prints is that of the first stage, not of the fullest
  bool saves_gathered_inputs = false;   ///< sequence parallel: products keep their gathered inputs for the backward
  double pipelined_issue = 0;       ///< s of the host for every tensor collective and rank of its group, in a pipeline
  bool balances_by_cost = false;    ///< stages hold equal work, the head counted as what its product takes
  int logit_bytes = 0;              ///< held per logit of a micro-batch in addition to the Program's, by the loss
  double flash_rate = 1;            ///< of the device's flash attention, below 1 with kernels of a generation before
  double memory_traffic = 1.0;      ///< of memory-bound kernels, over the reference count
  std::int64_t vocab_multiple = 1;  ///< the vocabulary is padded to a multiple of this times `tensor`
  bool overlaps_gradients_by_default = false;
  bool gathers_ahead_by_default = false;     ///< ZeRO-3: the next unit's parameters during the current one's kernels
  int units_ahead = 1;                       ///< how many units, where gathers run ahead
  bool keeps_end_units = true;               ///< ZeRO-3: embedding and head stay gathered from forward to backward
  int collectives_per_unit = 1;              ///< ZeRO-3: a layer's tensors gathered and reduced together, or in parts
  bool wide_shards_only = false;             ///< ZeRO-3: one fp32 shard is parameter and master copy in one
  bool half_gradient_shards = false;         ///< ZeRO-3: shards of gradients stay in 16 bit until the step
  bool frozen_in_8_bits = false;             ///< LoRA with fp8: frozen matrices are kept in 8 bits alone, one way
  bool parameters_in_8_bits = false;         ///< fp8, but by blocks: as fp8_parameter_gather on, unless a plan says
  bool gradients_as_reduced = false;         ///< gradients are kept in the type in which they are reduced
  int fused_softmax_batch = 1;               ///< mask-softmax is fused only where samples x heads divide by it
  double crowded_above = 0;                  ///< share of the memory above which the allocator thrashes; 0: never
  bool frees_sent_outputs = false;           ///< an output that was sent to the next stage gives its memory back
  bool reduces_in_fp32_by_default = false;   ///< gradients on the wire, where a run does not say
  bool pads_without_tensor = true;           ///< the vocabulary, also where `tensor` is 1
  bool balances_embedding_as_layer = false;  ///< embedding and head count as a layer each when stages are filled
  std::int64_t bucket_elements =
      0;                         ///< Megatron-Core: gradients reduced together without a pipeline, at least; 0: a layer
  bool flat_buckets = false;     ///< DeepSpeed's buffers to reduce and gather with (simulator/memory/memory.cpp)
  double network_reach = 1;      ///< collectives over nodes reach no more than this of the adapters' bandwidth
  bool splits_backward = false;  ///< weight gradients as a pass of their own, as zero_bubble needs
  double usual_dropout = 0;      ///< of runs that do not say
  bool reads_codes_back = false;  ///< fp8 by blocks without such products: they are of the same numbers in 16 bits
  /// Parameters a second that a rank's share of its host's cores updates, where an offloaded optimizer runs there:
  /// gradients go to the host, parameters come back. 0: its state comes to the device instead.
  double host_adam = 0;

  /// Whether gradients are kept and reduced in the parameters' own 16-bit type.
  bool keeps_half_gradients(DType precision) const { return half_gradients && precision == DType::kFp16; }
};

/// The stack of that name, which is a file of stacks/ (program/plan/stack_file.h); null for an unknown name. The first
/// call reads all of them. Errors: Failure where one cannot be read. The span is sorted by name. Both are thread-safe
/// and give the same places at every call.
const StackTraits* find_stack(std::string_view name);
std::span<const StackTraits> all_stacks();

}  // namespace trivium::program
