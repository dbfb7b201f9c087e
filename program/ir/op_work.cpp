#include "program/ir/op_work.h"

#include <cassert>

#include "models/model.h"

namespace trivium::program {
namespace {

// Traffic of the memory-bound kernels in bytes per element at 16 bit, from the joint fit over published runs and the
// V100 operator times of Aceso (EuroSys 2024). Only the sums named are identified; each split is by what the kernels
// read (r) and write (w).

// Two norms and two bias-dropout-residuals: 22 B forward = 2 (4 + 7), 30 B backward = 2 (12 + 3) per token·hidden.
constexpr double kNormForward = 4;           // r x, w y
constexpr double kNormBackward = 12;         // r x dy dskip, w dx; r x dy again for the weight gradient
constexpr double kBiasResidualForward = 7;   // r x skip, w y, and the dropout mask of 1 B
constexpr double kBiasResidualBackward = 3;  // r dy and the mask

// GeLU, biases and transposes: 34 B forward = 4·4 + 18, 42 B backward = 4·6 + 18 per token·hidden (ffn = 4 hidden).
constexpr double kActivationForward = 4;   // r x, w y
constexpr double kActivationBackward = 6;  // r x dy, w dx
constexpr double kLayoutQkv = 4;           // r and w of each of q, k and v (12 of the 18)
constexpr double kLayoutOutput = 6;        // bias and transposes of the output (6 of the 18)

// Scale, mask, softmax and dropout, per score of the full square.
constexpr double kScoreForward = 9;
constexpr double kScoreBackward = 11;

// Cross entropy in fp32 beside 16-bit parameters: 33 B per logit, the 38 of the joint fit at its traffic of .86. Its
// ops carry the statistics' type, so these counts are for fp32 where the others are for 16 bit.
constexpr double kLossMaxLogit = 9;        // cast to fp32, r for the maximum
constexpr double kLossSumsLogit = 10;      // subtract, exponentiate, sum
constexpr double kLossBackwardLogit = 14;  // softmax - target, scale, cast back
constexpr double kLossToken = 12;          // max and two sums, fp32

// Token and position embedding with dropout: 12 B forward = 6 + 6, 16 B backward = 10 + 6 per token·hidden.
constexpr double kEmbeddingForward = 6;
constexpr double kEmbeddingBackward = 10;
constexpr double kPosition = 6;
constexpr double kDenseGradient = 8;  // per element of the table: Aceso, 51,200 x 5,120: 3.2 ms on a V100

// Optimizer step with 16-bit parameters: 23 B per parameter of the shard = norm 4 + AdamW 19; zeroing adds 4 (fp32).
constexpr double kAdamWHalf = 19;
constexpr double kAdamWWhole = 7;  // times the size: r gradient, parameter, two moments; w parameter, two moments

// Gradients of which the largest are sent: a value and its number; radix selection looks at 8 of 32 bits a pass (Alabi
// et al. 2012, Fast k-selection algorithms for graphics processing units).
constexpr double kNumber = 4;
constexpr double kSelectionPasses = 4;

// Products of matrices.
constexpr double kAccumulateHalf = 8;  // r and w of an fp32 gradient beside 16-bit operands

// Context and expert parallelism: no published run identifies these; what the kernels read and write.
constexpr double kCopy = 4;                  // r x, w y
constexpr double kBlockAccumulator = 8;      // r and w of the running output or dq, fp32, per query element
constexpr double kRouteChoice = 24;          // softmax, top-k and places per (token, expert): six fp32 passes
constexpr double kRouteBackwardChoice = 12;  // r probabilities twice, w dlogits, fp32
constexpr double kSpillChoice = 24;          // r expert and row twice, w both

double scale_of(DType type) { return static_cast<double>(size_of(type)) / 2.0; }

void fill_matmul(Op& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const double size = static_cast<double>(size_of(op.dtype));
  op.flops = 2 * m * n * k;
  op.bytes = size * (m * k + k * n + m * n);
  if (op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kExpertMatmulWgrad) {
    const double accumulate = is_half(op.dtype) ? kAccumulateHalf : 2 * size;
    op.bytes = size * (m * k + m * n) + accumulate * k * n;
  }
}

/// QK^T and PV: 4 T S heads dim forward over the full square, which unfused kernels do compute; twice that backward.
/// Flash computes the causal half, and in its backward the scores once more: 5 products for the forward's 2.
void fill_attention(Op& op) {
  const bool backward = op.kind == OpKind::kAttentionBackward;
  const double tokens = static_cast<double>(op.m), heads = op.heads, dim = op.head_dim, span = op.sequence;
  const double square = 4 * tokens * span * heads * dim;
  op.flops = op.flash ? square / 2 * (backward ? 2.5 : 1.0) : square * (backward ? 2.0 : 1.0);
  const double kv_heads = op.kv_heads > 0 ? op.kv_heads : op.heads;
  const double layout = tokens * dim * (kLayoutQkv * (heads + 2 * kv_heads) + kLayoutOutput * heads);
  const double scores = op.flash ? 0 : tokens * span * heads * (backward ? kScoreBackward : kScoreForward);
  op.bytes = (layout + scores) * scale_of(op.dtype);
}

/// One step of ring attention. With zig-zag chunks every rank meets half of the T x T/samples square in every step
/// (docs/cost-model.md), whichever keys have come by; products as flash attention does them.
void fill_attention_block(Op& op) {
  const bool backward = op.kind == OpKind::kAttentionBlockBackward;
  const double tokens = static_cast<double>(op.m), heads = op.heads, dim = op.head_dim;
  const double span = static_cast<double>(op.sequence) / op.parts;
  op.flops = 4 * tokens * span * heads * dim / 2 * (backward ? 2.5 : 1.0);
  const double reads = backward ? 3 : 1;  // q; dy and y with it
  const double query = 2 * reads * heads, keys = 2.0 * 2 * op.kv_heads * (backward ? 2 : 1);
  op.bytes = tokens * dim * (query + keys + kBlockAccumulator * heads) * scale_of(op.dtype);
}

/// `experts` products of m rows each.
void fill_expert_matmul(Op& op) {
  const double experts = op.experts;
  fill_matmul(op);
  op.flops *= experts;
  op.bytes *= experts;
}

/// Tokens are gathered from or scattered to the rows of all experts, top_k times each; a tensor rank has its part of
/// the rows.
void fill_routing(Op& op) {
  const double tokens = static_cast<double>(op.m), width = static_cast<double>(op.n),
               choices = static_cast<double>(op.k) / op.parts;
  const double rows = static_cast<double>(op.elements);
  switch (op.kind) {
    case OpKind::kRoute:
      op.bytes = tokens * width * kRouteChoice;
      return;
    case OpKind::kRouteBackward:
      op.bytes = tokens * width * kRouteBackwardChoice;
      return;
    case OpKind::kSpill:
      op.bytes = tokens * static_cast<double>(op.k) * kSpillChoice;
      return;
    case OpKind::kDispatch:
      op.bytes = 2 * width * (tokens * choices + rows) * scale_of(op.dtype);
      return;
    case OpKind::kCombineBackward:  // dy and the rows read, their gradients written
      op.bytes = 2 * width * (2 * tokens * choices + rows) * scale_of(op.dtype);
      return;
    default:
      op.bytes = 2 * width * (tokens * choices + tokens) * scale_of(op.dtype);
  }
}

/// Gated activations (SwiGLU, GeGLU; `k` is the activation's kind) read gate and up, 2 n wide.
void fill_activation(Op& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n);
  const auto activation = static_cast<models::Activation>(op.k);
  const bool gated = activation == models::Activation::kSwiglu || activation == models::Activation::kGeglu;
  const double inputs = gated ? 2 : 1;
  // Forward: `inputs` reads and a write; backward: `inputs` reads and writes, and dy.
  const double forward = kActivationForward / 2 * (inputs + 1);
  const double backward = kActivationBackward / 3 * (2 * inputs + 1);
  op.bytes = m * n * (op.kind == OpKind::kActivation ? forward : backward) * scale_of(op.dtype);
}

double pointwise_bytes(const Op& op) {
  switch (op.kind) {
    case OpKind::kEmbedding:
      return kEmbeddingForward;
    case OpKind::kEmbeddingBackward:
      return kEmbeddingBackward;
    case OpKind::kPosition:
    case OpKind::kPositionBackward:
      return kPosition;
    case OpKind::kNorm:
      return kNormForward;
    case OpKind::kNormBackward:
      return kNormBackward;
    case OpKind::kRotary:
    case OpKind::kRotaryBackward:
      return kCopy;  // in place
    case OpKind::kSplitKv:
    case OpKind::kJoinKv:
    case OpKind::kPackHeads:
    case OpKind::kUnpackHeads:
    case OpKind::kPackTokens:
    case OpKind::kUnpackTokens:
    case OpKind::kPlaceRows:
    case OpKind::kPickRows:
      return kCopy;
    case OpKind::kBiasResidual:
      return kBiasResidualForward;
    case OpKind::kBiasResidualBackward:
      return kBiasResidualBackward;
    case OpKind::kLossMax:
      return kLossMaxLogit;
    case OpKind::kLossSums:
      return kLossSumsLogit;
    case OpKind::kLossBackward:
      return kLossBackwardLogit;
    default:
      assert(false);
      return 0;
  }
}

bool is_loss(OpKind kind) {
  return kind == OpKind::kLossMax || kind == OpKind::kLossSums || kind == OpKind::kLossBackward;
}

double optimizer_bytes(const Op& op) {
  const double elements = static_cast<double>(op.elements), size = static_cast<double>(size_of(op.dtype));
  switch (op.kind) {
    case OpKind::kCompress:
      if (op.k > 0) {  // r gradient and residual, w residual; passes that select read the sum; w what is sent
        return (3 + kSelectionPasses) * size * elements + (size + kNumber) * static_cast<double>(op.k);
      }
      return (size + 2) * elements;  // r one, w the other
    case OpKind::kDecompress:
      if (op.k > 0) {  // w zeros; r what came, r and w the gradients it belongs to
        return size * elements + (3 * size + kNumber) * static_cast<double>(op.k) * op.parts;
      }
      return (size + 2) * elements;
    case OpKind::kAdd:
      return 3 * size * elements;  // r x y, w y
    case OpKind::kAdamW:
      return (is_half(op.dtype) ? kAdamWHalf : kAdamWWhole * size) * elements;
    default:
      return size * elements;  // the norm reads the gradients once, zeroing writes them once
  }
}

}  // namespace

void fill_work(Op& op) {
  op.flops = 0;
  if (is_communication(op.kind) || is_copy(op.kind)) {
    op.bytes = static_cast<double>(op.elements * size_of(op.dtype));
    return;
  }
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kMatmulDgrad:
    case OpKind::kMatmulWgrad:
      return fill_matmul(op);
    case OpKind::kAttention:
    case OpKind::kAttentionBackward:
      return fill_attention(op);
    case OpKind::kAttentionBlock:
    case OpKind::kAttentionBlockBackward:
      return fill_attention_block(op);
    case OpKind::kExpertMatmul:
    case OpKind::kExpertMatmulDgrad:
    case OpKind::kExpertMatmulWgrad:
      return fill_expert_matmul(op);
    case OpKind::kRoute:
    case OpKind::kRouteBackward:
    case OpKind::kSpill:
    case OpKind::kDispatch:
    case OpKind::kDispatchBackward:
    case OpKind::kCombine:
    case OpKind::kCombineBackward:
      return fill_routing(op);
    case OpKind::kActivation:
    case OpKind::kActivationBackward:
      return fill_activation(op);
    case OpKind::kCompress:
    case OpKind::kDecompress:
    case OpKind::kAdd:
    case OpKind::kGradientNorm:
    case OpKind::kAdamW:
    case OpKind::kZeroGradients:
      op.bytes = optimizer_bytes(op);
      return;
    case OpKind::kLoss:
      op.bytes = static_cast<double>(op.m) * kLossToken;
      return;
    default:
      break;
  }
  const double scale = is_loss(op.kind) ? scale_of(op.dtype) / scale_of(DType::kFp32) : scale_of(op.dtype);
  op.bytes = static_cast<double>(op.m) * static_cast<double>(op.n) * pointwise_bytes(op) * scale;
  if (op.kind == OpKind::kEmbeddingBackward) {
    op.bytes += static_cast<double>(op.k) * static_cast<double>(op.n) * kDenseGradient * scale_of(op.dtype);
  }
}

}  // namespace trivium::program
