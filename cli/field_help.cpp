#include "cli/field_help.h"

#include <algorithm>
#include <array>

namespace trivium::cli {
namespace {

struct FieldHelp {
  std::string_view field, values, text;
};

constexpr std::array<FieldHelp, 52> kHelp{{
    {"tensor", "N", "Tensor parallel ranks"},
    {"sequence_parallel", "", "Split norms and dropout along the sequence inside the tensor group"},
    {"context", "N", "Context parallel ranks: the sequence itself split"},
    {"context_method", "ring|all_to_all", "How context parallel ranks exchange keys and values"},
    {"pipeline", "N", "Pipeline stages"},
    {"virtual_stages", "N", "Model chunks per pipeline stage"},
    {"schedule", "NAME", "sequential, gpipe, 1f1b, interleaved or zero_bubble"},
    {"stage_layers", "N,N,...", "Layers of every chunk in model order"},
    {"data", "N", "Data parallel replicas"},
    {"zero_stage", "0..3", "What data parallel ranks share: 1 optimizer, 2 gradients, 3 parameters"},
    {"shard_group", "N", "Ranks the ZeRO state is split over; 0: all of data"},
    {"expert", "N", "Expert parallel ranks"},
    {"micro_batch", "N", "Samples of a micro-batch"},
    {"replica_micro_batch", "N,N,...", "Samples of a micro-batch of every replica, where they differ"},
    {"recompute", "none|selective|full", "Activations computed again in the backward pass"},
    {"stage_recompute", "NAME,NAME,...", "Recompute of every chunk in model order"},
    {"precision", "TYPE", "bf16, fp16, fp32 or fp64; default: what the devices do best"},
    {"reduce_dtype", "TYPE", "Type of gradients on the wire"},
    {"attention", "unfused|flash", "Attention kernels"},
    {"overlap.gradient_reduction", "", "Reduce gradients beside the backward pass"},
    {"overlap.parameter_gather", "", "Gather parameters beside the pass before the one that needs them"},
    {"overlap.pipeline", "", "Transfer between stages beside compute"},
    {"overlap.tensor", "", "Tensor collectives beside weight-gradient GEMMs"},
    {"bucket_bytes", "N", "Bytes of gradients reduced together; 0: one bucket per layer"},
    {"offload.optimizer", "none|host|disk", "Where the optimizer state is kept"},
    {"offload.gradients", "none|host|disk", "Where gradients are kept"},
    {"offload.parameters", "none|host|disk", "Where parameters are kept"},
    {"offload.activations", "none|host|disk", "Where activations are kept"},
    {"scatter_gather", "stack|on|off", "Tensor ranks send a part each to the next stage and gather there"},
    {"compression", "none|fp16|top_k", "Compression of gradients between replicas"},
    {"top_k_share", "SHARE", "Share of the gradients that compression top_k sends"},
    {"placement", "ORDER", "Dimensions, innermost first: tensor-context-data-pipeline"},
    {"stage_nodes", "N,N,...",
     "Group of the cluster that holds each stage, counted from 0; default: ranks fill nodes in order"},
    {"stack", "NAME", "Whose habits: trivium, megatron, fsdp, ..."},
    {"sequence", "TOKENS", "Tokens of a sample; default: the model's longest"},
    {"global_batch", "SAMPLES", "Samples of an optimizer step"},
    {"total_tokens", "N[K|M|B|T]", "The same as --tokens"},
    {"dropout", "P", "Probability of dropout"},
    {"seed", "N", "Seed of parameters and sample order"},
    {"learning_rate", "RATE", "Highest learning rate"},
    {"min_learning_rate", "RATE", "Learning rate after the decay"},
    {"warmup_steps", "N", "Steps of linear warm-up"},
    {"decay_steps", "N", "Steps of cosine decay; 0: the steps of the run"},
    {"beta1", "B", "AdamW: decay of the first moment"},
    {"beta2", "B", "AdamW: decay of the second moment"},
    {"epsilon", "E", "AdamW: added to the root of the second moment"},
    {"weight_decay", "W", "AdamW: decoupled weight decay of matrices"},
    {"clip_norm", "NORM", "Largest gradient norm; 0: no clipping"},
    {"loss_scale", "SCALE", "fp16: what the loss is multiplied by at the start"},
    {"loss_scale_interval", "N", "fp16: steps without overflow after which the scale doubles"},
    {"loss_scale_backoff", "F", "fp16: factor of the scale after an overflow"},
    {"", "VALUE", ""},
}};

const FieldHelp& entry_of(std::string_view field) {
  const auto* found = std::find_if(kHelp.begin(), kHelp.end(), [&](const FieldHelp& h) { return h.field == field; });
  return found == kHelp.end() ? kHelp.back() : *found;
}

}  // namespace

std::string_view help_of(std::string_view field) { return entry_of(field).text; }

std::string_view values_of(std::string_view field) { return entry_of(field).values; }

}  // namespace trivium::cli
