// What the shape members of an op mean for kinds that use them for something else than a shape. `Op` is one struct for
// all kinds, as bodies are arrays of it that both interpreters, the verifier and files walk; whoever reads m, n, k,
// elements or parts of one of these kinds asks here (operands by kind: op.h).
#pragma once

#include "models/model.h"
#include "program/ir/op.h"

namespace trivium::program {

/// kActivation and its backward: u = x + bias goes through this.
constexpr models::Activation activation_of(const Op& op) { return static_cast<models::Activation>(op.k); }

/// kRotary and its backward: by the frequencies of layers with windows, not by those of the others.
constexpr bool turns_by_window_frequencies(const Op& op) { return op.k == 1; }

/// Attention kinds: keys that a query sees on average, half of a causal square.
inline double keys_of_query(const Op& op) {
  return op.document_keys > 0 ? op.document_keys : models::keys_seen(op.sequence, op.window, op.chunked);
}

/// Queries of a head that the cores' attention kernels handle together.
constexpr std::int64_t kQueryBlock = 64;

/// kAttention and its backward: such blocks of all heads and samples, the last of a sample's as one; of other kinds 0.
constexpr double query_blocks(const Op& op) {
  if ((op.kind != OpKind::kAttention && op.kind != OpKind::kAttentionBackward) || op.sequence <= 0) return 0;
  const std::int64_t of_a_head = (op.sequence + kQueryBlock - 1) / kQueryBlock;
  return static_cast<double>(op.m) / op.sequence * static_cast<double>(op.heads * of_a_head);
}

/// kAttentionBlock and its backward: which step of the ring it is; its keys come from the rank so many before.
constexpr int ring_step(const Op& op) { return static_cast<int>(op.k); }

/// kExpertBias and its backward: the first of the tensor ranks that split an expert alone has the bias, as their rows
/// are summed.
constexpr bool bias_on_one_tensor_rank(const Op& op) { return op.k == 1; }

/// kAllToAll with a table of rows: the rows go back to where they came from.
constexpr bool returns_rows(const Op& op) { return op.k == 1; }

/// kCompress, kDecompress: elements of a parameter that are sent, the largest ones, with their numbers in the bucket,
/// which begin at `first_number`; 0: all are sent, in 16 bits.
constexpr std::int64_t elements_sent(const Op& op) { return op.k; }
constexpr std::int64_t first_number(const Op& op) { return op.n; }

/// kMuonStep: how often it iterates, and which of the parameter's sections the matrix is.
constexpr std::int64_t iterations_of(const Op& op) { return op.k; }
constexpr int section_of(const Op& op) { return op.parts; }
/// Where ranks share the optimizer's state: the parameter's place among those of its kind, and how much of the bucket's
/// iterations the rank with the most of them makes.
constexpr int parameter_of(const Op& op) { return op.sequence; }
constexpr double share_of_iterations(const Op& op) { return op.loss_share; }
/// What its update moves beside the iterations: r momentum, r and w values in fp32 at least, w a 16-bit copy.
constexpr double bytes_of_update(const Op& op) {
  const double size = static_cast<double>(size_of(op.dtype));
  return (is_half(op.dtype) ? 3 * 4 + size : 3 * size) * static_cast<double>(op.elements);
}

/// kRoute, kDispatch, kCombine and theirs: experts that a token goes to.
constexpr std::int64_t experts_of_a_token(const Op& op) { return op.k; }

}  // namespace trivium::program
