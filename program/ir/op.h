// Ops: what a rank does, one kernel or collective at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "program/ir/mesh.h"
#include "program/plan/dtype.h"
#include "program/plan/fp8.h"
#include "program/plan/moments.h"

namespace trivium::program {

/// In-order queues of a rank.
enum class Lane : std::uint8_t { kCompute, kTensor, kPipeline, kData, kCopy, kContext, kExpert };
constexpr int kLanes = 7;
std::string_view name_of(Lane lane);

/// What the work is for; decides where its time goes in a breakdown.
enum class Pass : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };
std::string_view name_of(Pass pass);

/// Every op kind has a row in the table of kinds (op_kinds.cpp: name, work, launches), a CPU kernel and a CUDA kernel
/// (runtime), which add themselves to the tables of their backends.
/// Shapes: T tokens of a micro-batch on this rank (sample-major), row-major. `in` and `out` are listed in order; "+="
/// accumulates.
enum class OpKind : std::uint8_t {
  // Compute.                 m, n, k                        in                                   out
  kEmbedding,  // T, hidden, local vocab rows   ids (T), table (k,n)                 y (T,n); rows of other ranks give 0
  kEmbeddingBackward,  //  "                            ids, dy (T,n)                        dtable (k,n) +=
  kPosition,           // T, hidden, sequence           x (T,n), table (k,n)                 y (T,n), may be x
  kPositionBackward,   //  "                            dy (T,n)                             dtable (k,n) +=
  kNorm,          // T, hidden                     x, weight (n), bias (n or -1)        y, stats (T,2) mean and 1/sigma
  kNormBackward,  //  "                            x, weight, stats, dy, dskip or -1,   dx = dskip + …, dweight += or
                  // -1, dbias += or -1; of a LayerNorm whose bias has no gradient: that bias or -1
  kHeadNorm,      // T, dim                        qkv (T, q|k|v), weight of q (n), of k (n), or -1 both
                  //                                                              y (T, q|k|v): every head
                  // of q and k by its root mean square, v as it is; 1/sigma (T, heads+kv)
  kHeadNormBackward,  //  "                        qkv, weight of q, of k, 1/sigma, dy         dx, may be dy; dweight of
                      // q +=, of k +=
  // Latent attention, `latents` (T, q|k|rope): those of queries (may be absent), of keys and values, and what all keys
  // have in common, whose width is k.
  kLatentNorm,  // T, of keys, k                latents, weight of q (or -1), of k    q (T, its width) or -1, k (T,n)
  kLatentNormBackward,   //  "                       latents, weight of q, of k, dq, dk    dlatents' q and k; dweight of
                         // q += (or -1), of k +=
  kLatentHeads,          // T, latents, k           q (T, heads*dim), k (T, heads*(dim - k + value dim)), latents
                         //                                                              qkv (T, q|k|v), the shared
                         // part of a key first
  kLatentHeadsBackward,  //  "                       dqkv                                  dq, dk, dlatents' rope
  kMatmul,               // T, out, in                    x (m,k), w (k,n), bias (n) or -1     y (m,n)
  kMatmulDgrad,          // T, out, in                    dy (m,n), w (k,n)                    dx (m,k)
  kMatmulWgrad,  // T, out, in                    x (m,k), dy (m,n)                    dw (k,n) +=, dbias (n) += or -1
  kQuantize,     // rows, columns, pitch          x (m,n), history or -1               y in 8 bits with scales along its
  // rows, or -1; along its columns, or -1 (program/ir/fp8_layout.h); dbias (n) += sums of the columns, or
  // -1. Products whose `fp8` is set read such buffers for x, w and dy. With kDelayed: where its site of a history of k
  // sites (AmaxHistory) begins, of which the window's largest is read and that of this step raised
  kRotary,          // T, (heads+kv)*dim             qkv (T, q|k|v)                       qkv in place; with k = 1 by
                    // the frequencies of layers with windows
  kRotaryBackward,  //  "                            dqkv                                 dqkv in place
  kScaleQueries,    // T, heads*dim, run             qkv (T, q|k|v), or dqkv              q in place: times
                    // 1 + score_scale log(1 + floor((position + 1) / run))
  kAttention,       // T, heads*dim                  qkv (T, q|k|v), sinks (heads) or -1  y (T,n), saved: probabilities
                    // (heads,S,S) per sample, or log-sum-exp (T,heads) with flash; their dropout's mask, or -1
  kAttentionBackward,     //  "                            qkv, y, saved, dy, mask or -1,       dqkv, dsinks +=
                          // sinks or -1
  kBiasResidual,          // T, hidden, 1: of the MLP      x, bias or -1, skip, second bias     y = skip + x + biases,
                          // mask (T,n) of the dropout of x + biases, or -1; so k with it
  kBiasResidualBackward,  // T, hidden     dy, mask or -1     dbias +=, second +=, dx or -1 (dx and dskip are dy itself)
  kActivation,            // T, ffn                        x (T,n or 2n gate|up), bias or -1    y (T,n)
  kActivationBackward,    //  "                            x, bias or -1, dy                    dx, dbias += or -1
  kLossMax,   // T, local vocab                logits (m,n)                         max (T): over this rank's valid
              // columns
  kLossSums,  //  "                            logits, max, labels (T)              sums (T,2): sum of exp(logit - max),
              //  own target logit - max or 0
  kLoss,  // T                             max, sums, labels or -1              loss (1) += loss_share times the sum of
          // (log sum - target) / tokens of the step; with labels of tokens whose label is not negative
  kLossBackward,  // T, local vocab                logits, max, sums, labels            dlogits, may be logits: (softmax
                  // - target) loss_share / tokens of the step; 0 where the label is negative
  kAdd,           // elements                      x                                    y +=
  kGradientNorm,  // elements of the bucket part   -                                    norm (2) += sum of squares of
                  // what this rank counts, as a double-double pair
  kAdamW,  // elements of the bucket part   norm (2)                             parameters and moments of the bucket
           // part
  kZeroGradients,  // elements                      -                                    that buffer, or where absent
                   // all gradients of the bucket
  // Context parallel, ring: T are this rank's tokens (two chunks of every sample, see context_position).
  kSplitKv,         // T, kv*(dim + value dim)       qkv (T, q|k|v)                       kv (T, k|v)
  kJoinKv,          //  "                            dkv (T, k|v)                         dqkv's k and v
  kAttentionBlock,  // T, heads*value dim, ring step qkv, kv of the rank k steps back,    y, log-sum-exp (T,heads),
                    // sinks or -1                    merged with what the steps before left there
  kAttentionBlockBackward,  // "                     qkv, y, log-sum-exp, dy, kv,         dqkv's q +=, dkv of that kv,
                            // sinks or -1            dsinks +=
  // Context parallel, all-to-all over heads: `parts` ranks; head h of q goes to part h / (heads / parts).
  kPackHeads,     // T, width                      x (T, q|k|v or y)                    y (parts, T, a part's heads)
  kUnpackHeads,   //  "                            the inverse; shared key heads add up
  kPackTokens,    // parts*T, a part's width       x (sample-major, all tokens)         y (parts, T, width)
  kUnpackTokens,  //  "                            the inverse
  // Mixture of experts: E experts, C rows for one expert and sample, of which this rank has a part (ExpertRows). With
  // context parallelism kRoute and kSpill list the tokens of all context ranks, the other kinds read that list at the
  // places of the rank's own T. `parts`: tensor ranks that send a part of the same tokens' rows; of counts: whose rows
  // are counted; of the products: ranks of the expert group and those of the tensor group that split an expert.
  kRoute,  // listed T, E, top_k         logits (m,n)                         probabilities (m,n), slots (m,k,2):
           // expert, and row of this tensor rank's (of one context rank after the other) or -1; loss (1) += balance
           // loss, or -1. In: after the logits a bias by which experts are chosen, or -1
  kRouteBackward,  //  "                            probabilities, slots, dgate (m,k)    dlogits (m,n)
  kSpill,          // listed T, -, top_k            slots of all context ranks           slots: row of this rank's, or
                   // numbered after them, place among those it sends, or -1; spills: how many rows go to every rank,
                   // how many come from every rank, and the rows of those that come (int32)
  kCountRows,      // listed T, experts of a rank, top_k   slots, in place: rows of a dropless mixture
                   //                                                                     counts (ranks, parts, n): rows
                   // that every tensor rank, or this one alone, sends for every expert (int32)
  // Gates multiply rows where they are combined, or where dispatch is given probabilities, there, and not again.
  kDispatch,          // T, hidden, top_k              x (m,n), slots, probabilities or -1  y (rows,n), spilled or -1
  kDispatchBackward,  //  "                            dy, slots, dspilled or -1, x, probabilities, or -1 both
                      //                                                                    dx (m,n), dgate (m,k) or -1
  kCombine,           //  "                            y of experts, probabilities or -1, slots, spilled or -1
                      //                                                                    y (m,n): sum of gate * row
  kCombineBackward,   //  "                            dy, y of experts, probabilities or -1, slots, spilled or -1
                      //                                                                    dy of experts, dgate (m,k)
                      //                                                                    or -1, dspilled or -1
  kPlaceRows,     // expected rows, hidden         x: those that came, spills           y (rows,n): where they belong
  kPickRows,      //  "                            the inverse
  kExpertMatmul,  // rows, out, in               x (parts, experts, rows / parts, k), w (experts, k, n)   y
  kExpertMatmulDgrad,  //  "                          dy, w                                dx
  kExpertMatmulWgrad,  //  "                          x, dy                                dw (experts, k, n) +=
                       // with counts appended (rank of a part, parts of it, experts) a part's rows lie one expert
                       // after another, as many as the counts say
  kExpertBias,         // rows, out                    y (parts, experts, rows / parts, n), bias (experts, n)   y in
  // place; with k = 1 on the first tensor rank alone, as the ranks' rows are summed; counts as above
  kExpertBiasBackward,  //  "                           dy                                   dbias (experts, n) +=;
                        //  likewise
  kCompress,            // elements of the bucket        gradients                            y, 16 bits each
                        // with k > 0, elements of a parameter: the k largest of gradients + residual, each a value and
                        // its number in the bucket (32 bits), counted from n; what is not sent is the new residual:
                        //                              gradients, residual                  y, residual
  kDecompress,          // elements of the bucket        x, 16 bits each                      gradients, overwritten
                        // with k > 0: sums of the k values that each of `parts` members sent, in their order
  kFetch,               // bytes                         x in the host's memory                y on the device
  kStore,               //  "                            x on the device                       y in the host's memory
  kMuonMomentum,        // elements of the parameter     norm (2), gradient                   momentum, in place
                        // without a gradient: of the rank's shard of the bucket
  kMuonStep,  // rows, columns of a matrix (fewer rows: transposed, if need be), iterations: those of `experts`
              // matrices.
              //                               norm (2), momentum, of all tensor ranks      values of this rank's part,
  //                                                                            their 16-bit copy or -1, room
  // without values: what lies of them in the rank's shard of the bucket; matrices with nothing there are left out
  kRecordLargest,  // sites, -, steps of the window    -                              history, in place (AmaxHistory):
                   // what the step has becomes a row of the window, whose largest is found anew; what is not finite is
                   // left out
  // Communication.           elements                       in                                   out
  kAllReduce,      // of the buffer                 x                                    x in place
  kReduceScatter,  // of the whole                  x (whole)                            y (own part), may lie inside x
  kAllGather,      // of the whole                  x (own part), may lie inside y       y (whole)
  kAllToAll,       // of the buffer                 x (parts of all members)             y: part i came from member i
                   // with kSpill's table after x: as many rows of n as it says, elements where choices are even; with
                   // k = 1 the way back
  kRingShift,      //  "                            x, to the next member                y, from the member before
  kSend,           // of the buffer                 x                                    -
                   // with `parts` above 1 of one of so many: this tensor rank's, where it lies in the buffer
  kRecv,           //  "                            -                                    y
};
constexpr int kOpKinds = static_cast<int>(OpKind::kRecv) + 1;
std::string_view name_of(OpKind kind);  ///< snake_case, as in profiles and records: "matmul_wgrad"
constexpr bool is_communication(OpKind kind) { return kind >= OpKind::kAllReduce; }
constexpr bool is_copy(OpKind kind) { return kind == OpKind::kFetch || kind == OpKind::kStore; }

enum class Reduction : std::uint8_t { kSum, kMax, kPairSum };  ///< kPairSum: double-double pairs (hi, lo)

/// Where in a model dropout sits, as GPT-2 and Megatron-LM have it.
enum class DropoutSite : std::uint8_t {
  kEmbedding,          ///< what enters the first layer
  kAttention,          ///< probabilities
  kAttentionResidual,  ///< what attention's projection, or a parallel block, adds to the residual stream
  kMlpResidual,        ///< what the MLP, or the experts, add
  kNone
};

constexpr int kNoBuffer = -1;
constexpr int kMaxOperands = 6;

struct Op {
  OpKind kind{};
  Lane lane = Lane::kCompute;
  Pass pass = Pass::kForward;
  DType dtype = DType::kFp32;  ///< of the main operand
  Group group = Group::kNone;  ///< communication: among whom
  Reduction reduction = Reduction::kSum;
  bool weight_transposed = false;           ///< matmul kinds: w is stored (n,k)
  bool token_sharded = false;               ///< T covers this tensor rank's part of the tokens only (sequence parallel)
  bool flash = false;                       ///< attention kinds
  bool disk = false;                        ///< copies: the other end is a file, not host memory
  bool chunked = false;                     ///< attention kinds: windows are consecutive instead of sliding
  bool part_of_heads = false;               ///< attention kinds: a part of the tensor rank's heads, a context rank's
  Fp8 fp8 = Fp8::kNone;                     ///< products, kQuantize: how operands in 8 bits are scaled
  Fp8Operand operand = Fp8Operand::kInput;  ///< kQuantize: what it casts
  Moments moments = Moments::kFp32;         ///< kAdamW: how they are kept
  DropoutSite dropout = DropoutSite::kNone;  ///< draws a mask, or needs the one that another drew
  std::int16_t layer = -1;                   ///< layer within the chunk
  std::int16_t bucket = -1;                  ///< optimizer kinds and gradient communication
  std::int32_t heads = 0, kv_heads = 0, head_dim = 0, sequence = 0;  ///< attention, rotary and head norm kinds, local
  std::int32_t alibi_heads = 0;         ///< attention kinds: all heads of a model with ALiBi; 0: scores have no bias
  std::int32_t value_dim = 0;           ///< of the same, where values are of another width than keys
  std::int32_t window = 0;              ///< attention kinds: keys that a query sees at most; 0: all before it
  std::int32_t experts = 0, parts = 1;  ///< expert kinds: matrices on this rank; context kinds: ranks of the group; see
                                        ///< also kSend; kQuantize: runs of rows that share no scale
  std::int64_t m = 0, n = 0, k = 0;
  double document_keys = 0;  ///< attention kinds: that a query sees on average in packed documents; 0: samples are not
  double epsilon = 1e-5;     ///< norm kinds
  double score_scale = 0;  ///< attention kinds: factor on scores; 0: 1 / sqrt(head_dim); embedding kinds: on rows, loss
                           ///< kinds: on logits, before their cap, kMatmul (without a bias), kMatmulDgrad and those
                           ///< of experts: on the product; 0: 1; kScaleQueries: slope
  double soft_cap = 0;     ///< attention and loss kinds: c of x -> c tanh(x / c) on scores or logits; 0: none
  double loss_share = 1;   ///< kLoss, kLossBackward: factor on the loss; kMuonStep: see op_views.h
  std::int64_t elements = 0;  ///< communication and optimizer kinds; kRoute: C; kDispatch and its like: the rank's
                              ///< rows; kPlaceRows, kPickRows: rows that may come at most
  double flops = 0;           ///< multiply and add counted apart
  double bytes = 0;           ///< compute: memory traffic of the kernel · communication: payload (elements * size)
  std::array<std::int32_t, kMaxOperands> in{kNoBuffer, kNoBuffer, kNoBuffer,
                                            kNoBuffer, kNoBuffer, kNoBuffer};  ///< chunk buffers
  std::array<std::int32_t, 3> out{kNoBuffer, kNoBuffer, kNoBuffer};
  std::array<std::int32_t, kLanes - 1> after{-1, -1, -1, -1,
                                             -1, -1};  ///< earlier ops of the body on other lanes that must have ended
};

/// Width of a value head, and of a row (q|k|v).
inline std::int64_t value_dim_of(const Op& op) { return op.value_dim > 0 ? op.value_dim : op.head_dim; }
inline std::int64_t qkv_width_of(const Op& op) {
  return std::int64_t{op.heads + op.kv_heads} * op.head_dim + op.kv_heads * value_dim_of(op);
}

/// The factor on scores of an attention kind.
inline double score_scale_of(const Op& op) {
  return op.score_scale > 0 ? op.score_scale : 1 / std::sqrt(static_cast<double>(op.head_dim));
}

}  // namespace trivium::program
