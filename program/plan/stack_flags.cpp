#include "program/plan/stack_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <vector>

#include "base/sourced_reader.h"

namespace trivium::program {
namespace {

using Traits = StackTraits;

constexpr double kMostStackRate = 10, kMostMultiple = 1 << 20, kMostZeroUnits = 64, kMostLogitBytes = 64,
                 kMostBucketElements = 1e12, kLongestIssue = 1, kMostUpdates = 1e12, kLeastShare = 1e-3;

constexpr StackFlag kStackFlags[] = {
    // Kernels
    {"fused_kernels", &Traits::fused_kernels,
     "Mask and softmax, bias and GeLU, and bias, dropout and residual are one kernel each"},
    {"fused_attention", &Traits::fused_attention,
     "Attention is FlashAttention or its like where the devices have kernels for it"},
    {"fused_softmax_batch", &Traits::fused_softmax_batch,
     "Mask and softmax are one kernel only where samples x heads are a multiple of this", 1, kMostMultiple},
    {"fuses_latents", &Traits::fuses_latents,
     "Latent attention makes and rotates heads in one kernel for queries and one for keys"},
    {"memory_traffic", &Traits::memory_traffic, "Bytes of memory-bound kernels, as a multiple of the reference count",
     kLeastShare, kMostStackRate},
    {"flash_rate", &Traits::flash_rate, "Rate of flash attention, as a share of the device's best kernels", kLeastShare,
     1},
    {"reads_codes_back", &Traits::reads_codes_back,
     "fp8 by blocks runs in 16 bits, with the same numbers, where the device has no such products"},
    // The host
    {"issue", &Traits::issue, "Host time to issue a kernel, as a multiple of the device's", 0, kMostStackRate},
    {"expert_issue", &Traits::expert_issue,
     "Host seconds for each launch for one expert, where experts' products run one by one", 0, kLongestIssue},
    {"pipelined_issue", &Traits::pipelined_issue,
     "Host seconds for each tensor collective and rank of its group, in a pipeline", 0, kLongestIssue},
    {"host_adam", &Traits::host_adam,
     "Parameters that a rank's share of the host's cores updates in a second; 0: an offloaded optimizer's state comes "
     "to the device",
     0, kMostUpdates},
    // Tensor groups and pipelines
    {"scatter_gather", &Traits::scatter_gather, "Pipeline transfers are split over the tensor group"},
    {"overlaps_tensor_collectives", &Traits::overlaps_tensor_collectives,
     "Backward tensor collectives overlap weight gradients unless a run says otherwise"},
    {"hidden_tensor", &Traits::hidden_tensor,
     "Share of an overlapped tensor collective that is hidden inside its product", 0, 1},
    {"peer_buffers", &Traits::peer_buffers,
     "Overlapped tensor collectives read and write the memory of peers; else they are NCCL's"},
    {"saves_gathered_inputs", &Traits::saves_gathered_inputs,
     "With sequence parallelism, gathered inputs are saved for the backward"},
    {"gathers_scaled_tensors", &Traits::gathers_scaled_tensors,
     "With sequence parallelism, tensors that have one scale are gathered in 8 bits"},
    {"splits_backward", &Traits::splits_backward, "Weight gradients can be a pass of their own, as zero_bubble needs"},
    {"balances_by_cost", &Traits::balances_by_cost, "Stages hold equal work, with the head counted as its product"},
    {"balances_embedding_as_layer", &Traits::balances_embedding_as_layer,
     "Embedding and head count as a layer each when stages are filled"},
    {"frees_sent_outputs", &Traits::frees_sent_outputs, "A stage frees an output after sending it to the next stage"},
    // Experts
    {"expert_dispatch", &Traits::expert_dispatch, "How tokens travel to experts of other ranks, unless a plan says"},
    {"pairs_passes", &Traits::pairs_passes, "Exchanges with experts can overlap with the pass of another micro-batch"},
    {"pairs_in_v", &Traits::pairs_in_v, "Such pairs are those of a pipeline in a V (dualpipev), and of no other"},
    // Gradients and optimizer
    {"half_gradients", &Traits::half_gradients,
     "fp16 gradients stay in fp16, with an fp32 copy in the optimizer; bf16 gradients are fp32"},
    {"fills_half_gradients", &Traits::fills_half_gradients,
     "Autograd fills 16-bit gradients, which a kernel adds to fp32 gradients"},
    {"gradients_as_reduced", &Traits::gradients_as_reduced,
     "Gradients are stored in the type in which they are reduced"},
    {"reduces_in_fp32_by_default", &Traits::reduces_in_fp32_by_default,
     "Gradients are reduced in fp32 unless a run says otherwise"},
    {"separate_tied_gradients", &Traits::separate_tied_gradients,
     "The two uses of a tied weight accumulate gradients separately"},
    {"overlaps_gradients_by_default", &Traits::overlaps_gradients_by_default,
     "Gradient reductions overlap the last backward unless a run says otherwise"},
    {"bucket_elements", &Traits::bucket_elements,
     "Least number of gradients reduced together without a pipeline; 0: those of a layer", 0, kMostBucketElements},
    {"flat_buckets", &Traits::flat_buckets, "DeepSpeed's buffers for reducing and gathering take memory"},
    // ZeRO 3
    {"gathers_ahead_by_default", &Traits::gathers_ahead_by_default,
     "ZeRO 3: parameters are gathered ahead of their use unless a run says otherwise"},
    {"units_ahead", &Traits::units_ahead, "ZeRO 3: units gathered ahead, where gathers run ahead", 1, kMostZeroUnits},
    {"keeps_end_units", &Traits::keeps_end_units, "ZeRO 3: embedding and head stay gathered from forward to backward"},
    {"collectives_per_unit", &Traits::collectives_per_unit,
     "ZeRO 3: collectives in which a layer's tensors are gathered or reduced", 1, kMostZeroUnits},
    {"wide_shards_only", &Traits::wide_shards_only, "ZeRO 3: one fp32 shard is both parameter and master copy"},
    {"half_gradient_shards", &Traits::half_gradient_shards,
     "ZeRO 3: shards of gradients stay in 16 bits until the step"},
    // Memory
    {"frozen_in_8_bits", &Traits::frozen_in_8_bits,
     "LoRA with fp8: frozen matrices are stored only in 8 bits, one way"},
    {"parameters_in_8_bits", &Traits::parameters_in_8_bits,
     "fp8_parameter_gather is on, except with fp8 by blocks, unless a plan says"},
    {"logit_bytes", &Traits::logit_bytes, "Bytes per logit of a micro-batch that the loss holds above the Program's", 0,
     kMostLogitBytes},
    {"crowded_above", &Traits::crowded_above, "Share of the memory above which the allocator thrashes; 0: never", 0, 1},
    {"tells_first_rank", &Traits::tells_first_rank,
     "The memory that runs report is that of the first stage, not of the fullest"},
    // The rest
    {"vocab_multiple", &Traits::vocab_multiple, "The vocabulary is padded to a multiple of this times `tensor`", 1,
     kMostMultiple},
    {"pads_without_tensor", &Traits::pads_without_tensor, "The vocabulary is padded also where `tensor` is 1"},
    {"network_reach", &Traits::network_reach, "Most of the adapters' bandwidth that collectives over nodes reach",
     kLeastShare, 1},
    {"usual_dropout", &Traits::usual_dropout, "Dropout of runs that do not report it", 0, 1},
};

std::vector<std::string> dispatches() {
  std::vector<std::string> names;
  for (int i = 1; i <= static_cast<int>(ExpertDispatch::kHybrid); ++i) {  // all but "stack"
    names.emplace_back(name_of(static_cast<ExpertDispatch>(i)));
  }
  return names;
}

template <class Value>
constexpr bool kIsNumber = !std::is_same_v<Value, bool> && !std::is_enum_v<Value>;

}  // namespace

std::span<const StackFlag> stack_flags() { return kStackFlags; }

bool StackFlag::is_number() const {
  return std::visit([]<class Value>(Value StackTraits::*) { return kIsNumber<Value>; }, member);
}

std::string StackFlag::values() const {
  if (is_number()) return fmt::format("{} to {}", low, high);
  if (!std::holds_alternative<ExpertDispatch StackTraits::*>(member)) return "true, false";
  return fmt::format("{}", fmt::join(dispatches(), ", "));
}

std::string StackFlag::text(const StackTraits& traits) const {
  const nlohmann::ordered_json value = json(traits);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

nlohmann::ordered_json StackFlag::json(const StackTraits& traits) const {
  return std::visit(
      [&]<class Value>(Value StackTraits::*at) -> nlohmann::ordered_json {
        if constexpr (std::is_enum_v<Value>) {
          return name_of(traits.*at);
        } else {
          return traits.*at;
        }
      },
      member);
}

void StackFlag::read(const base::JsonReader& value, StackTraits& traits) const {
  std::visit(
      [&]<class Value>(Value StackTraits::*at) {
        if constexpr (std::is_same_v<Value, bool>) {
          traits.*at = value.boolean();
        } else if constexpr (std::is_same_v<Value, double>) {
          traits.*at = base::number_within(value, low, high);
        } else if constexpr (std::is_enum_v<Value>) {
          const std::vector<std::string> names = dispatches();
          const auto found = std::ranges::find(names, value.one_of(names));
          traits.*at = static_cast<Value>(1 + (found - names.begin()));
        } else {
          traits.*at =
              static_cast<Value>(value.integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
        }
      },
      member);
}

}  // namespace trivium::program
