#include "runtime/cuda/refusal.h"

#include <fmt/format.h>

#include <iterator>

#include "models/model.h"
#include "program/ir/fp8_layout.h"
#include "program/ir/op_views.h"
#include "runtime/cuda/kernels/attention_rows.h"
#include "runtime/cuda/kernels/rotary.h"
#include "runtime/cuda/scaling.h"

namespace trivium::runtime::cuda {

using program::DType;
using program::OpKind;

namespace {

bool is_ring_step(const program::Op& op) {
  return op.kind == OpKind::kAttentionBlock || op.kind == OpKind::kAttentionBlockBackward;
}

/// Why the op, which asks for a fused kernel, has none; or empty.
std::string unfused_reason(const program::Settings& settings, const program::Op& op, bool has_tiles) {
  const bool drops = op.dropout != program::DropoutSite::kNone;
  if (!is_half(settings.precision)) return fmt::format("in {}", name_of(settings.precision));
  if (!has_tiles) return "on a GPU older than sm_80";
  if (!has_fused_dim(op.head_dim)) return fmt::format("with heads of {}", op.head_dim);
  if (is_ring_step(op) && drops) return "with dropout around a ring";
  return "";
}

/// Whether it then goes row by row. Without dropout and a ring it is products of matrices all the same.
bool goes_by_rows(const program::Op& op) {
  const bool attends = op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward;
  return is_ring_step(op) || (attends && op.flash && op.dropout != program::DropoutSite::kNone);
}

/// Why the op, where it is of attention, has no kernel for what it sees; or empty.
std::string attention_refusal(const program::Op& op) {
  const bool attends = op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward ||
                       op.kind == OpKind::kAttentionBlock || op.kind == OpKind::kAttentionBlockBackward;
  if (!attends) return "";
  if (op.document_keys > 0) {
    return "the CUDA backend has no attention to packed documents yet; use --backend cpu, or leave document_lengths "
           "out";
  }
  if (op.window > 0) {
    return fmt::format("the CUDA backend has no attention with windows yet (of {} keys); use --backend cpu", op.window);
  }
  const int sinks = op.kind == OpKind::kAttention ? op.in[1] : op.kind == OpKind::kAttentionBlock ? op.in[2] : op.in[5];
  if (sinks != program::kNoBuffer) {
    return "the CUDA backend has no attention with sinks yet; use --backend cpu";
  }
  if (op.flash && op.head_dim > kMostRowDim) {
    return fmt::format("the CUDA backend's flash attention takes heads of up to {}, not {}; use --attention unfused",
                       kMostRowDim, op.head_dim);
  }
  return "";
}

/// Why not: how gradients and the optimizer's state are kept or sent.
std::string refusal_of_state(const program::Program& program, const program::Op& op) {
  const program::Settings& settings = program.settings;
  if (program.stack.keeps_half_gradients(settings.precision)) {
    return fmt::format("the CUDA backend keeps gradients in fp32, the {} stack in fp16; use --stack trivium",
                       program.stack.name);
  }
  if (!settings.compresses && settings.reduce_dtype != DType::kFp32 && is_half(settings.reduce_dtype)) {
    return fmt::format("the CUDA backend reduces fp32 gradients in fp32, not {}; use --reduce-dtype fp32",
                       name_of(settings.reduce_dtype));
  }
  // What a stack does by itself is a matter of its prices alone.
  const bool by_stack = program.stack.parameters_in_8_bits && op.fp8 != program::Fp8::kBlock;
  if (op.fp8 != program::Fp8::kNone && settings.spared_of_cast > 0 && !settings.frozen && !by_stack) {
    return "the CUDA backend gathers parameters in 16 bits, and casts them then; use --fp8-parameter-gather off, or "
           "--backend cpu";
  }
  if (settings.optimizer.kind == program::Update::kMuon) {
    return "the CUDA backend has no Muon yet; use --optimizer adamw, or --backend cpu";
  }
  if (op.moments != program::Moments::kFp32) {
    return fmt::format("the CUDA backend keeps moments in fp32, not {} yet; use --moment-dtype fp32, or --backend cpu",
                       name_of(op.moments));
  }
  return "";
}

/// Why not, where rows travel to experts otherwise than the plan's stack sends them by itself.
std::string refusal_of_exchange(const program::Program& program, const program::Op& op) {
  const program::ExpertDispatch how = program.stack.expert_dispatch;
  if (op.kind != OpKind::kAllToAll || op.group != program::Group::kExpert || !sends_once(how)) return "";
  if (how == program::find_stack(program.stack.name)->expert_dispatch) return "";
  return fmt::format(
      "the CUDA backend exchanges rows with experts by NCCL's all-to-all, not by {}; use "
      "--expert-dispatch all_to_all, or --backend cpu",
      name_of(how));
}

/// Why not, where it is of operands in 8 bits: cuBLASLt reads codes along what a product sums over, in whole 16 bytes,
/// so that those of columns are as many rows.
std::string refusal_of_codes(const program::Settings& settings, const program::Op& op) {
  constexpr std::int64_t kRows = 16;
  if (op.fp8 == program::Fp8::kNone) return "";
  if (op.fp8 == program::Fp8::kNvfp4) {
    return fmt::format("the CUDA backend supports fp8 delayed, current, block and mxfp8, not {}; use --fp8 current",
                       name_of(op.fp8));
  }
  if (settings.precision != DType::kBf16) {
    return fmt::format("the CUDA backend's fp8 needs precision bf16, not {}; use --precision bf16",
                       name_of(settings.precision));
  }
  if (op.kind == OpKind::kQuantize && op.out[1] != program::kNoBuffer && op.m / op.parts % kRows != 0) {
    return fmt::format("the CUDA backend's fp8 takes tokens{} in multiples of {}, not {}; use another micro-batch{}",
                       op.parts > 1 ? " of an expert" : "", kRows, op.m / op.parts,
                       op.parts > 1 ? " or capacity_factor" : "");
  }
  return "";
}

}  // namespace

std::string slow_path_of(const program::Program& program, bool has_tiles) {
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      const std::string why = goes_by_rows(op) ? unfused_reason(program.settings, op, has_tiles) : "";
      if (why.empty()) continue;
      return fmt::format(
          "attention {} has no fused kernel here and goes row by row, about a hundred times slower (an estimate); {}",
          why, is_ring_step(op) ? "a ring has no other" : "--attention unfused runs it as products of matrices");
    }
  }
  return "";
}

std::string read_back_of(const program::Program& program, ScaledProducts scaled) {
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      if (op.fp8 == program::Fp8::kNone || op.kind == OpKind::kQuantize) continue;
      if (scaling_of(scaled, op.fp8, program::operand_of(op, 0)) &&
          scaling_of(scaled, op.fp8, program::operand_of(op, 1)))
        continue;
      return fmt::format(
          "this GPU has no products in 8 bits by the scales of fp8 {}: they are of the same numbers in bf16, without "
          "the "
          "speed of 8 bits",
          name_of(op.fp8));
    }
  }
  return "";
}

std::string refusal_of(const program::Program& program, const program::Op& op) {
  const program::Settings& settings = program.settings;
  if (settings.precision != DType::kFp32 && !is_half(settings.precision)) {
    return fmt::format("the CUDA backend runs fp32, bf16 and fp16, not {}; use --precision bf16",
                       name_of(settings.precision));
  }
  if (op.lane == program::Lane::kExpert) {
    return "the CUDA backend has no lane for exchanges with experts yet (overlap.expert); use --backend cpu, or leave "
           "the field off";
  }
  if (std::string no = refusal_of_exchange(program, op); !no.empty()) return no;
  if (std::string no = refusal_of_codes(settings, op); !no.empty()) return no;
  if (std::string no = refusal_of_state(program, op); !no.empty()) return no;
  const bool product = op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulDgrad ||
                       op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad;
  const bool frozen_norm = op.kind == OpKind::kNormBackward && op.out[1] == program::kNoBuffer;
  if ((product && op.score_scale > 0) || frozen_norm) {
    return "the CUDA backend has no adapters next to frozen weights yet (LoRA); use --backend cpu, or --lora-rank 0";
  }
  const program::Routing& routing = settings.routing;
  const bool routes = op.kind == OpKind::kRoute || op.kind == OpKind::kRouteBackward || op.kind == OpKind::kCombine ||
                      op.kind == OpKind::kCombineBackward;
  if (routes && (routing.sigmoid || routing.dropless || routing.groups > 1 || routing.scale != 1 ||
                 routing.normalised != (program::experts_of_a_token(op) > 1) ||
                 (op.kind == OpKind::kRoute && op.in[1] != program::kNoBuffer))) {
    return "the CUDA backend routes by a softmax to experts of a capacity: no sigmoids, correction biases, groups, "
           "scaling "
           "factors or dropless experts yet; use --backend cpu";
  }
  if (op.kind == OpKind::kLatentNorm || op.kind == OpKind::kLatentHeads || op.value_dim > 0) {
    return "the CUDA backend has no latent attention yet; use --backend cpu";
  }
  if (op.kind == OpKind::kAttentionBlock && op.part_of_heads) {
    return "the CUDA backend has no rings whose ranks exchange heads yet; use --context-heads 1, or --backend cpu";
  }
  if (op.kind == OpKind::kScaleQueries) {
    return "the CUDA backend has no queries that grow with their position yet; use --backend cpu";
  }
  if (op.kind == OpKind::kHeadNorm && op.in[1] == program::kNoBuffer) {
    return "the CUDA backend has no norms of heads without weights yet; use --backend cpu";
  }
  if (op.kind == OpKind::kDispatch && op.in[2] != program::kNoBuffer) {
    return "the CUDA backend has no gates on what experts read yet; use --backend cpu";
  }
  const bool of_loss = op.kind == OpKind::kLossMax || op.kind == OpKind::kLossSums || op.kind == OpKind::kLossBackward;
  if (of_loss && op.score_scale > 0) return "the CUDA backend has no factors on logits yet; use --backend cpu";
  if (const std::string why = attention_refusal(op); !why.empty()) return why;
  if (op.alibi_heads > 0) return "the CUDA backend has no ALiBi yet; use --backend cpu";
  if (op.soft_cap > 0) return "the CUDA backend has no soft caps yet; use --backend cpu";
  const bool looks_up = op.kind == OpKind::kEmbedding || op.kind == OpKind::kEmbeddingBackward;
  if (looks_up && op.score_scale > 0) return "the CUDA backend has no scaled embeddings yet; use --backend cpu";
  const bool activates = op.kind == OpKind::kActivation || op.kind == OpKind::kActivationBackward;
  if (activates && program::activation_of(op) == models::Activation::kClampedSwiglu) {
    return "the CUDA backend has no clamped SwiGLU yet; use --backend cpu";
  }
  if (op.kind == OpKind::kExpertBias || op.kind == OpKind::kExpertBiasBackward) {
    return "the CUDA backend has no biases of experts yet; use --backend cpu";
  }
  if (std::ssize(settings.rotary.frequencies) > kMostRotaryPairs) {
    return fmt::format("the CUDA backend turns up to {} pairs of a head with its position, not {}; use --backend cpu",
                       kMostRotaryPairs, settings.rotary.frequencies.size());
  }
  return "";
}

}  // namespace trivium::runtime::cuda
