// The table of op kinds: what each is called, how much it computes and moves, and in how many kernels.
#include "program/ir/op_kinds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/model.h"
#include "program/ir/context.h"
#include "program/ir/fp8_layout.h"
#include "program/ir/op_views.h"

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

// Cross entropy in fp32 with 16-bit parameters: 33 B per logit, the 38 of the joint fit at its traffic of .86. Its ops
// have the statistics' type, so these counts are for fp32 where the others are for 16 bit.
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
// Of the 30 bytes that a step with fp32 copies reads and writes, moments are 16 (r and w of two), 8 in bf16; the fit
// above counts 19 of them.
constexpr double kAdamWHalfMoments = kAdamWHalf * 22 / 30;
constexpr double kBf16Moments = 8;  // r and w of two

// Gradients whose largest values are sent: a value and its number; radix selection looks at 8 of 32 bits a pass (Alabi
// et al. 2012, Fast k-selection algorithms for graphics processing units).
constexpr double kNumber = 4;
constexpr double kSelectionPasses = 4;

// Products of matrices.
constexpr double kAccumulateHalf = 8;  // r and w of an fp32 gradient with 16-bit operands

// Context and expert parallelism: no published run identifies these; what the kernels read and write.
constexpr double kCopy = 4;                  // r x, w y
constexpr double kBlockAccumulator = 8;      // r and w of the running output or dq, fp32, per query element
constexpr double kRouteChoice = 24;          // softmax, top-k and places per (token, expert): six fp32 passes
constexpr double kRouteBackwardChoice = 12;  // r probabilities twice, w dlogits, fp32
constexpr double kSpillChoice = 24;          // r expert and row twice, w both

double scale_of(DType type) { return static_cast<double>(size_of(type)) / 2.0; }

// --- Work: FLOPs and bytes of an op ---

void payload(Op& op) { op.bytes = static_cast<double>(op.elements * size_of(op.dtype)); }

double area(const Op& op) { return static_cast<double>(op.m) * static_cast<double>(op.n); }

/// Rows of m tokens and n columns, each element read and written so often.
void rows(Op& op) { op.bytes = area(op) * traits_of(op.kind).element_bytes * scale_of(op.dtype); }

void logits(Op& op) {
  op.bytes = area(op) * traits_of(op.kind).element_bytes * (scale_of(op.dtype) / scale_of(DType::kFp32));
}

void loss(Op& op) { op.bytes = static_cast<double>(op.m) * kLossToken; }

void embedding_backward(Op& op) {
  rows(op);
  op.bytes += static_cast<double>(op.k) * static_cast<double>(op.n) * kDenseGradient * scale_of(op.dtype);
}

/// Bytes of an element that a product reads.
double operand_size(const Op& op) {
  constexpr double kNvfp4 = 0.5;
  return op.fp8 == Fp8::kNone ? static_cast<double>(size_of(op.dtype)) : op.fp8 == Fp8::kNvfp4 ? kNvfp4 : 1;
}

void product(Op& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  op.flops = 2 * m * n * k;
  if (op.fp8 == Fp8::kNone) {
    op.bytes = static_cast<double>(size_of(op.dtype)) * (m * k + k * n + m * n);
    return;
  }
  const double written = op.kind == OpKind::kMatmul || op.kind == OpKind::kExpertMatmul ? m * n : m * k;
  op.bytes = operand_size(op) * (m * k + k * n + m * n - written) + static_cast<double>(size_of(op.dtype)) * written;
}

/// Read once, and once more to find a tensor's largest number; written along rows, along columns or both ways.
void quantize(Op& op) {
  const double reads = op.fp8 == Fp8::kCurrent ? 2 : 1;
  op.bytes = reads * area(op) * static_cast<double>(size_of(op.dtype));
  for (int way = 0; way < 2; ++way) {
    if (op.out[static_cast<std::size_t>(way)] == kNoBuffer) continue;
    op.bytes += static_cast<double>(cast_layout(op, way == 0).bytes());
  }
}

void weight_gradient(Op& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const double accumulate = is_half(op.dtype) ? kAccumulateHalf : 2 * static_cast<double>(size_of(op.dtype));
  op.flops = 2 * m * n * k;
  op.bytes = operand_size(op) * (m * k + m * n) + accumulate * k * n;
}

/// `experts` products of m rows each.
template <void (*one)(Op&)>
void of_experts(Op& op) {
  const double experts = std::max(1, op.experts);
  one(op);
  op.flops *= experts;
  op.bytes *= experts;
}

/// Norms of two latents: read, and written elsewhere; backward they are read once more, with two gradients.
template <bool backward>
void latent_norm(Op& op) {
  const double width = static_cast<double>(op.n + op.elements);
  op.bytes = static_cast<double>(op.m) * (backward ? kNormBackward : kNormForward) * width * scale_of(op.dtype);
}

/// Queries, plain keys and values are copied; what all keys share is written to each, or summed over them.
void latent_heads(Op& op) {
  const double width = static_cast<double>(qkv_width_of(op));
  op.bytes = static_cast<double>(op.m) * kCopy * width * scale_of(op.dtype);
}

/// QK^T and PV: 4 T S heads dim forward over the full square, which unfused kernels do compute; twice that backward.
/// Flash computes the causal half, or the band of a window, and in its backward the scores once more: 5 products for
/// the forward's 2. Unfused kernels mask what lies outside a window as they mask the other half.
template <bool backward>
void attention(Op& op) {
  const double tokens = static_cast<double>(op.m), heads = op.heads, dim = op.head_dim, span = op.sequence;
  const double values = static_cast<double>(value_dim_of(op));
  const double of_keys = 2 * tokens * heads * (dim + values);
  op.flops = op.flash ? of_keys * keys_of_query(op) * (backward ? 2.5 : 1.0) : of_keys * span * (backward ? 2.0 : 1.0);
  const double kv_heads = op.kv_heads > 0 ? op.kv_heads : op.heads;
  const double row = dim * (heads + kv_heads) + values * kv_heads;
  const double layout = tokens * (kLayoutQkv * row + kLayoutOutput * heads * values);
  const double scores = op.flash ? 0 : tokens * span * heads * (backward ? kScoreBackward : kScoreForward);
  op.bytes = (layout + scores) * scale_of(op.dtype);
}

/// Area of the band of a window between a chunk of `length` queries and one of as many keys that begins `ahead` tokens
/// before it.
double band(double length, double ahead, double window) {
  if (ahead == 0) return window >= length ? length * length / 2 : window * length - window * window / 2;
  const auto below = [&](double x) {  // of the keys, summed over queries up to where x of them are left
    return x <= 0 ? 0 : x < length ? x * x / 2 : length * length / 2 + length * (x - length);
  };
  return below(length + window - ahead) - below(window - ahead);
}

/// The same of chunked windows, chunks beginning at these positions: of every window what lies in both.
double chunked_area(double length, double queries, double keys, double window) {
  double area = 0;
  for (double begin = std::floor(keys / window) * window; begin < keys + length; begin += window) {
    const auto part = [&](double from) {
      return std::max(0.0, std::min(from + length, begin + window) - std::max(from, begin));
    };
    area += queries == keys ? part(keys) * part(keys) / 2 : part(queries) * part(keys);
  }
  return area;
}

/// Scores that the rank with the most of them computes in a ring's step, of one sample and head. Of packed documents
/// every rank has an equal share in every step, as where each document is cut into chunks (Transformer Engine's THD).
double ring_scores(const Op& op) {
  const int ranks = op.parts, step = static_cast<int>(op.k);
  const double chunk = static_cast<double>(op.sequence) / (2 * ranks);
  if (op.document_keys > 0) return op.sequence * op.document_keys / (static_cast<double>(ranks) * ranks);
  if (op.window <= 0) return 2 * chunk * chunk;
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int source = ring_source(rank, step, ranks);
    double scores = 0;
    for (const int mine : {rank, 2 * ranks - 1 - rank}) {
      for (const int theirs : {source, 2 * ranks - 1 - source}) {
        if (theirs > mine) continue;
        scores += op.chunked ? chunked_area(chunk, mine * chunk, theirs * chunk, op.window)
                             : band(chunk, (mine - theirs) * chunk, op.window);
      }
    }
    most = std::max(most, scores);
  }
  return most;
}

/// One step of ring attention. With zig-zag chunks every rank meets half of the T x T/samples square in every step
/// (docs/explanation/cost-model.md), whichever keys came by; with a window the band falls into few steps, unequally by
/// rank, and the slowest counts. Products as flash attention does them.
template <bool backward>
void attention_block(Op& op) {
  const double tokens = static_cast<double>(op.m), heads = op.heads, dim = op.head_dim;
  const double values = static_cast<double>(value_dim_of(op)), span = static_cast<double>(op.sequence) / op.parts;
  op.flops = 2 * tokens / span * ring_scores(op) * heads * (dim + values) * (backward ? 2.5 : 1.0);
  const double query = 2 * heads * (dim + (backward ? 2 * values : 0));  // q; dy and y with it
  const double keys = 2 * op.kv_heads * (dim + values) * (backward ? 2 : 1);
  const double sums = kBlockAccumulator * heads * (backward ? dim : values);
  op.bytes = tokens * (query + keys + sums) * scale_of(op.dtype);
}

/// Norms of every query and key head; values are copied forward and left alone backward.
template <bool backward>
void head_norm(Op& op) {
  const double heads = static_cast<double>(op.heads + op.kv_heads) * static_cast<double>(op.head_dim);
  const double values = static_cast<double>(op.kv_heads) * static_cast<double>(op.head_dim);
  const double row = backward ? kNormBackward * heads : kNormForward * heads + kCopy * values;
  op.bytes = static_cast<double>(op.m) * row * scale_of(op.dtype);
}

void scale_queries(Op& op) {  // r and w of q alone
  op.bytes = area(op) * kCopy * scale_of(op.dtype);
}

/// Gated activations (SwiGLU and its like; `k` is the activation's kind) read gate and up, 2 n wide.
double activation_inputs(const Op& op) { return models::is_gated(static_cast<models::Activation>(op.k)) ? 2 : 1; }

void activation(Op& op) {  // its inputs read, a write
  op.bytes = area(op) * (kActivationForward / 2 * (activation_inputs(op) + 1)) * scale_of(op.dtype);
}

void activation_backward(Op& op) {  // its inputs read and written, and dy
  op.bytes = area(op) * (kActivationBackward / 3 * (2 * activation_inputs(op) + 1)) * scale_of(op.dtype);
}

// Tokens are gathered from or scattered to the rows of all experts, top_k times each; a tensor rank has its part of the
// rows.
double choices(const Op& op) { return static_cast<double>(op.k) / op.parts; }

void route(Op& op) { op.bytes = area(op) * kRouteChoice; }
void route_backward(Op& op) { op.bytes = area(op) * kRouteBackwardChoice; }
void spill(Op& op) { op.bytes = static_cast<double>(op.m) * static_cast<double>(op.k) * kSpillChoice; }

void dispatch(Op& op) {
  const double tokens = static_cast<double>(op.m), width = static_cast<double>(op.n);
  op.bytes = 2 * width * (tokens * choices(op) + static_cast<double>(op.elements)) * scale_of(op.dtype);
}

void combine(Op& op) {  // and the gradient of dispatch
  const double tokens = static_cast<double>(op.m), width = static_cast<double>(op.n);
  op.bytes = 2 * width * (tokens * choices(op) + tokens) * scale_of(op.dtype);
}

void combine_backward(Op& op) {  // dy and the rows read, their gradients written
  const double tokens = static_cast<double>(op.m), width = static_cast<double>(op.n);
  op.bytes = 2 * width * (2 * tokens * choices(op) + static_cast<double>(op.elements)) * scale_of(op.dtype);
}

void compress(Op& op) {
  const double elements = static_cast<double>(op.elements), size = static_cast<double>(size_of(op.dtype));
  op.bytes = (size + 2) * elements;  // r one, w the other
  if (elements_sent(op) > 0) {  // r gradient and residual, w residual; passes that select read the sum; w what is sent
    op.bytes = (3 + kSelectionPasses) * size * elements + (size + kNumber) * static_cast<double>(elements_sent(op));
  }
}

void decompress(Op& op) {
  const double elements = static_cast<double>(op.elements), size = static_cast<double>(size_of(op.dtype));
  op.bytes = (size + 2) * elements;
  if (elements_sent(op) > 0) {  // w zeros; r what came, r and w the gradients it belongs to
    op.bytes = size * elements + (3 * size + kNumber) * static_cast<double>(elements_sent(op)) * op.parts;
  }
}

void add(Op& op) {  // r x y, w y
  op.bytes = 3 * static_cast<double>(size_of(op.dtype)) * static_cast<double>(op.elements);
}

void gradients_once(Op& op) {  // the norm reads them, zeroing writes them
  op.bytes = static_cast<double>(size_of(op.dtype)) * static_cast<double>(op.elements);
}

void adamw(Op& op) {
  const double size = static_cast<double>(size_of(op.dtype));
  const bool narrow = op.moments == Moments::kBf16;
  const double half = narrow ? kAdamWHalfMoments : kAdamWHalf;
  const double whole = narrow ? (kAdamWWhole - 4) * size + kBf16Moments : kAdamWWhole * size;
  op.bytes = (is_half(op.dtype) ? half : whole) * static_cast<double>(op.elements);
}

void muon_momentum(Op& op) {
  constexpr double kMoves = 3;  // r gradient and momentum, w momentum
  op.bytes = kMoves * static_cast<double>(op.elements * size_of(op.dtype));
}

/// Every iteration of an m x n matrix, m <= n: A = X X^T, A A, and their sum times X. Then the update.
void muon_step(Op& op) {
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n),
               size = static_cast<double>(size_of(op.dtype));
  const double times = static_cast<double>(op.k) * std::max(1, op.experts) * share_of_iterations(op);
  op.flops = times * (4 * m * m * n + 2 * m * m * m);
  const double moved = (m * n + m * m) + 3 * m * m + 3 * m * m + (m * m + 2 * m * n);
  op.bytes = times * size * moved + bytes_of_update(op);
}

void record_largest(Op& op) {  // the window is read
  op.bytes = static_cast<double>(op.m * AmaxHistory::rows(op.k) * size_of(DType::kFp32));
}

// --- The table ---

using Class = OpClass;
constexpr bool kSynchronises = true;

/// In the order of OpKind. Launches are those of the fused PyTorch stacks. Identified by published runs are the sums
/// over a layer: forward 2·2 (norms) + 4·2 (matmuls) + 8 (attention) + 2·2 (residuals) + 2 (activation) = 26, backward
/// 2·4 + 4·2 (dgrad) + 4·4 (wgrad) + 10 + 2·2 + 2 = 48, 2 per tensor collective (4 per layer and pass). Embedding and
/// head sum to about 50: the 2 ms per micro-batch of the first and last stage at 41 us per kernel.
const std::array<OpTraits, kOpKinds> kOpTraits{{
    {"embedding", Class::kRows, rows, {6}, kEmbeddingForward},
    {"embedding_backward", Class::kRows, embedding_backward, {6}, kEmbeddingBackward},
    {"position", Class::kRows, rows, {3}, kPosition},
    {"position_backward", Class::kRows, rows, {3}, kPosition},
    {"norm", Class::kRows, rows, {2}, kNormForward},
    {"norm_backward", Class::kRows, rows, {4}, kNormBackward},
    {"head_norm", Class::kRows, head_norm<false>, {2}},  // of q and of k
    {"head_norm_backward", Class::kRows, head_norm<true>, {4}},
    {"latent_norm", Class::kRows, latent_norm<false>, {4}},  // of queries, and of keys and values
    {"latent_norm_backward", Class::kRows, latent_norm<true>, {8}},
    {"latent_heads", Class::kRows, latent_heads, {4}},  // copies of queries, keys, what they share, values
    {"latent_heads_backward", Class::kRows, latent_heads, {4}},
    {"matmul", Class::kProduct, product, {2}},
    {"matmul_dgrad", Class::kProduct, product, {2}},
    {"matmul_wgrad", Class::kProduct, weight_gradient, {4}},  // product, accumulation, bias sum, views
    {"quantize", Class::kQuantize, quantize, {2}},            // the largest number, and the cast
    {"rotary", Class::kRows, rows, {4}, kCopy},               // in place
    {"rotary_backward", Class::kRows, rows, {4}, kCopy},
    {"scale_queries", Class::kRows, scale_queries, {2}},  // the factors, and the product
    {"attention", Class::kAttention, attention<false>, {8, 4, 3}},
    {"attention_backward", Class::kAttention, attention<true>, {10, 6, 3}},
    {"bias_residual", Class::kRows, rows, {2, 2, 1}, kBiasResidualForward},
    {"bias_residual_backward", Class::kRows, rows, {2}, kBiasResidualBackward},
    {"activation", Class::kRows, activation, {2, 2, 1}},
    {"activation_backward", Class::kRows, activation_backward, {2}},
    {"loss_max", Class::kLoss, logits, {4}, kLossMaxLogit, kSynchronises},
    {"loss_sums", Class::kLoss, logits, {12}, kLossSumsLogit, kSynchronises},
    {"loss", Class::kLoss, loss, {6}, 0, kSynchronises},
    {"loss_backward", Class::kLoss, logits, {8}, kLossBackwardLogit},
    {"add", Class::kState, add, {1}},
    {"gradient_norm", Class::kOptimizer, gradients_once, {4}},  // multi-tensor launches of a bucket
    {"adamw", Class::kOptimizer, adamw, {4}},
    {"zero_gradients", Class::kOptimizer, gradients_once, {1}},
    {"split_kv", Class::kRows, rows, {2}, kCopy},  // copies with a permutation
    {"join_kv", Class::kRows, rows, {2}, kCopy},
    {"attention_block", Class::kAttention, attention_block<false>, {4, 4}},  // flash, and three to merge
    {"attention_block_backward", Class::kAttention, attention_block<true>, {4, 4}},
    {"pack_heads", Class::kRows, rows, {2}, kCopy},
    {"unpack_heads", Class::kRows, rows, {2}, kCopy},
    {"pack_tokens", Class::kRows, rows, {2}, kCopy},
    {"unpack_tokens", Class::kRows, rows, {2}, kCopy},
    {"route", Class::kRouting, route, {12}},  // softmax, top-k, one-hot, running counts, fractions
    {"route_backward", Class::kRouting, route_backward, {6}},
    {"spill", Class::kRouting, spill, {3}, 0, kSynchronises},  // the host reads how many rows spill before it posts
                                                               // their exchange
    {"count_rows", Class::kRouting, spill, {3}, 0, kSynchronises},  // the host reads how many rows every expert has
    {"dispatch", Class::kRouting, dispatch, {3}},
    {"dispatch_backward", Class::kRouting, combine, {3}},
    {"combine", Class::kRouting, combine, {3}},
    {"combine_backward", Class::kRouting, combine_backward, {5}},
    {"place_rows", Class::kRows, rows, {1}, kCopy},
    {"pick_rows", Class::kRows, rows, {1}, kCopy},
    {"expert_matmul", Class::kProduct, of_experts<product>, {2}},
    {"expert_matmul_dgrad", Class::kProduct, of_experts<product>, {2}},
    {"expert_matmul_wgrad", Class::kProduct, of_experts<weight_gradient>, {3}},  // no bias
    {"expert_bias", Class::kRows, of_experts<rows>, {1}, kCopy},                 // in place
    {"expert_bias_backward", Class::kRows, of_experts<rows>, {1}, kCopy / 2},
    {"compress", Class::kState, compress, {1}},
    {"decompress", Class::kState, decompress, {1}},
    {"fetch", Class::kCopy, payload, {1}},
    {"store", Class::kCopy, payload, {1}},
    {"muon_momentum", Class::kOptimizer, muon_momentum, {1}},
    {"muon_step", Class::kMuon, muon_step, {20}},  // of five iterations: three products and what adds them, each
    {"record_largest", Class::kOptimizer, record_largest, {1}},
    {"all_reduce", Class::kCommunication, payload, {2}},
    {"reduce_scatter", Class::kCommunication, payload, {2}},
    {"all_gather", Class::kCommunication, payload, {2}},
    {"all_to_all", Class::kCommunication, payload, {2}},
    {"ring_shift", Class::kCommunication, payload, {2}},
    {"send", Class::kCommunication, payload, {1}},
    {"recv", Class::kCommunication, payload, {1}},
}};

}  // namespace

const OpTraits& traits_of(OpKind kind) { return kOpTraits[static_cast<std::size_t>(kind)]; }

std::string_view name_of(OpKind kind) { return traits_of(kind).name; }

void fill_work(Op& op) {
  op.flops = 0;
  traits_of(op.kind).work(op);
}

}  // namespace trivium::program
