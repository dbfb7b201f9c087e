// Ops over rows of tokens, and products of matrices: operands to kernels (program/ir/op.h lists them).
// T is the type of activations and parameters; statistics, logits and gradients of parameters are fp32.
#pragma once

#include <algorithm>

#include "program/ir/op_views.h"
#include "runtime/cuda/kernels/activation.h"
#include "runtime/cuda/kernels/head_norm.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/kernels/loss.h"
#include "runtime/cuda/kernels/norm.h"
#include "runtime/cuda/kernels/rotary.h"
#include "runtime/cuda/kernels/rows.h"
#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_embedding.h"
#include "runtime/cuda/ops_parts.h"

namespace trivium::runtime::cuda {

template <class T, class Launcher>
void add(Launcher& l, const KernelArguments& a) {
  with_width(a.op->elements, [&](auto w) {
    constexpr int W = decltype(w)::value;
    run_elements(l, Add<T, W>{input<T>(a, 0), output<T>(a, 0), a.op->elements}, a.op->elements, W);
  });
}

/// Fetches and stores: `elements` bytes.
template <class Launcher>
void copy(Launcher& l, const KernelArguments& a) {
  l.copy(a.out[0], a.in[0], a.op->elements);
}

/// Of an H100 or H200. Grids are made for these on every GPU, so that sums have the same bits.
constexpr std::int64_t kMultiprocessors = 132;

/// Chunks of rows for so many columns in packs of W, of which `blocks` run at once.
inline std::int64_t column_chunks(std::int64_t m, std::int64_t across, std::int64_t blocks) {
  constexpr std::int64_t kFewestRows = 64;  // that a block should sum
  return std::clamp<std::int64_t>(blocks / across, 1, std::max<std::int64_t>(1, (m + kFewestRows - 1) / kFewestRows));
}

/// W columns at once: total (n) += sum over the m rows of `source`; the same to `second`, if any.
template <int W, class Source, class Launcher>
void column_sums_of(Launcher& l, const Source& source, std::int64_t m, std::int64_t n, float* total, float* second) {
  using Partials = ColumnPartials<Source, W>;
  const std::int64_t across = (n + kWarp * W - 1) / (kWarp * W),
                     chunks = column_chunks(m, across, Source::kBlocks * kMultiprocessors);
  auto* partial = reinterpret_cast<float*>(l.scratch(chunks * n * static_cast<std::int64_t>(sizeof(float))));
  l.run(Partials{source, partial, m, n, chunks}, across * chunks, Partials::kThreads, Partials::shared_bytes());
  l.run(ColumnTotals{partial, total, second, n, chunks, false}, blocks_for(n, ColumnTotals::kColumns),
        ColumnTotals::kThreads, ColumnTotals::shared_bytes());
}

template <class Source, class Launcher>
void column_sums(Launcher& l, const Source& source, std::int64_t m, std::int64_t n, float* total,
                 float* second = nullptr) {
  if (total == nullptr && second == nullptr) return;
  with_width(n, [&](auto w) { column_sums_of<decltype(w)::value>(l, source, m, n, total, second); });
}

/// Likewise of x itself, whose rows of n begin `row` elements apart, a multiple of n.
template <class T, class Launcher>
void value_sums(Launcher& l, const T* x, std::int64_t row, std::int64_t m, std::int64_t n, float* total,
                float* second = nullptr) {
  if (total == nullptr && second == nullptr) return;
  with_widest<T>(n, {x}, [&](auto w) {
    column_sums_of<decltype(w)::value>(l, Values<T>{x, row}, m, n, total, second);
  });
}

/// total (n) and second (n) += sums of a source that gives both.
template <class Source, class Launcher>
void column_pair_sums(Launcher& l, const Source& source, std::int64_t m, std::int64_t n, float* total, float* second) {
  if (total == nullptr && second == nullptr) return;
  with_width(n, [&](auto w) {
    constexpr int W = decltype(w)::value;
    using Partials = ColumnPairPartials<Source, W>;
    const std::int64_t across = (n + kWarp * W - 1) / (kWarp * W),
                       chunks = column_chunks(m, across, 8 * kMultiprocessors);
    auto* partial = reinterpret_cast<float*>(l.scratch(2 * chunks * n * static_cast<std::int64_t>(sizeof(float))));
    l.run(Partials{source, partial, m, n, chunks}, across * chunks, Partials::kThreads, Partials::shared_bytes());
    l.run(ColumnTotals{partial, total, second, n, chunks, true}, blocks_for(2 * n, ColumnTotals::kColumns),
          ColumnTotals::kThreads, ColumnTotals::shared_bytes());
  });
}

template <class T, class Launcher>
void bias_residual(Launcher& l, const KernelArguments& a) {
  if (a.dropout.drops()) {
    const DropTokens drop{a.dropout, positions_of(a, a.dropout.sequence)};
    return with_width(a.op->n, [&](auto w) {
      constexpr int W = decltype(w)::value;
      run_elements(l,
                   DroppedResidual<T, W>{input<T>(a, 0), input<T>(a, 1), input<T>(a, 2), input<T>(a, 3),
                                         output<T>(a, 0), output<std::uint8_t>(a, 1), a.op->m, a.op->n, drop},
                   a.op->m * a.op->n, W);
    });
  }
  with_widest<T>(a.op->n, {a.in[0], a.in[1], a.in[2], a.in[3], a.out[0]}, [&](auto w) {
    constexpr int W = decltype(w)::value;
    run_elements(l,
                 BiasResidual<T, W>{input<T>(a, 0), input<T>(a, 1), input<T>(a, 2), input<T>(a, 3), output<T>(a, 0),
                                    a.op->m, a.op->n},
                 a.op->m * a.op->n, W);
  });
}

template <class T, class Launcher>
void bias_residual_backward(Launcher& l, const KernelArguments& a) {
  if (a.dropout.drops()) {
    const KeptValues<T> kept{input<T>(a, 0), input<std::uint8_t>(a, 1), a.op->n, static_cast<float>(a.dropout.scale)};
    column_sums(l, kept, a.op->m, a.op->n, output<float>(a, 0), output<float>(a, 1));
    return with_width(a.op->n, [&](auto w) {
      constexpr int W = decltype(w)::value;
      run_elements(l, StoreKept<T, W>{kept, output<T>(a, 2), a.op->m}, a.op->m * a.op->n, W);
    });
  }
  value_sums(l, input<T>(a, 0), a.op->n, a.op->m, a.op->n, output<float>(a, 0), output<float>(a, 1));
}

/// Calls work(P, whether a block shares a row, as constants) where threads can hold rows of so many packs, with as many
/// packs as a thread then holds; false where they cannot.
template <class Work>
bool with_held_rows(std::int64_t packs, const Work& work) {
  const std::int64_t of_warp = (packs + kWarp - 1) / kWarp, of_block = (packs + kMostRowThreads - 1) / kMostRowThreads;
  const auto held = [&](auto p, auto shared) { return work(p, shared), true; };
  if (of_warp <= 1) return held(std::integral_constant<int, 1>(), std::false_type());
  if (of_warp <= 2) return held(std::integral_constant<int, 2>(), std::false_type());
  if (of_warp <= 3) return held(std::integral_constant<int, 3>(), std::false_type());
  if (of_warp <= 4) return held(std::integral_constant<int, 4>(), std::false_type());
  if (of_warp <= 6) return held(std::integral_constant<int, 6>(), std::false_type());
  if (of_warp <= 8) return held(std::integral_constant<int, 8>(), std::false_type());
  if (of_block <= 4) return held(std::integral_constant<int, 4>(), std::true_type());
  if (of_block <= 8) return held(std::integral_constant<int, 8>(), std::true_type());
  return false;
}

template <class T, class Launcher>
void norm(Launcher& l, const KernelArguments& a) {
  const std::int64_t m = a.op->m, n = a.op->n;
  with_widest<T>(n, {a.in[0], a.in[1], a.in[2], a.out[0]}, [&](auto w) {
    constexpr int W = decltype(w)::value;
    const Norm<T, W> norm{input<T>(a, 0),
                          input<T>(a, 1),
                          input<T>(a, 2),
                          output<T>(a, 0),
                          output<float>(a, 1),
                          n,
                          static_cast<float>(a.op->epsilon)};
    if constexpr (W * sizeof(T) == kWidestBytes) {
      const auto run = [&](auto p, auto shared) {
        constexpr int P = decltype(p)::value;
        using Kernel = NormRows<T, W, P, decltype(shared)::value>;
        const Kernel kernel{norm, m, 1.0F / static_cast<float>(n)};
        if (Kernel::kShares) return l.run(kernel, m, row_threads((n / W + P - 1) / P), kReduceBytes);
        l.run(kernel, blocks_for(m, Kernel::kWarps), Kernel::kWarps * kWarp);
      };
      if (with_held_rows(n / W, run)) return;
    }
    l.run(norm, m, row_threads(n / W), kReduceBytes);
  });
}

/// Calls work(P as a constant) with as many packs of W, a power of two and at most 32 elements or eight packs, as each
/// of a block's threads takes of a row of so many; false where that is not enough.
template <int W, class Work>
bool with_packs(std::int64_t packs, const Work& work) {
  const std::int64_t each = (packs + kMostRowThreads - 1) / kMostRowThreads;
  if (each <= 1) return work(std::integral_constant<int, 1>()), true;
  if (each <= 2) return work(std::integral_constant<int, 2>()), true;
  if (each <= 4) return work(std::integral_constant<int, 4>()), true;
  if constexpr (W <= 4) {
    if (each <= 8) return work(std::integral_constant<int, 8>()), true;
  }
  return false;
}

/// dx, and the gradients of weight and bias in the same pass. False, with nothing done, where rows are too long for
/// that.
template <class T, int W, class Launcher>
bool norm_gradients(Launcher& l, const KernelArguments& a, const NormBackward<T, W>& backward) {
  constexpr std::int64_t kFewest = 2;  // groups of rows of a block
  const std::int64_t m = a.op->m, n = a.op->n;
  return with_packs<W>(n / W, [&](auto p) {
    constexpr int P = decltype(p)::value;
    using Kernel = NormGradients<T, W, P>;
    const int threads = row_threads((n / W + P - 1) / P);
    const std::int64_t at_once = kMultiprocessors * (Kernel::kBlocksAtOnce * kMostRowThreads / threads);
    const std::int64_t blocks = std::min(at_once, blocks_for(m, kFewest * Kernel::kRows));
    auto* partial = reinterpret_cast<float*>(l.scratch(2 * blocks * n * static_cast<std::int64_t>(sizeof(float))));
    l.run(Kernel{backward, partial, m, 1.0F / static_cast<float>(n)}, blocks, threads, Kernel::shared_bytes());
    l.run(ColumnTotals{partial, output<float>(a, 1), output<float>(a, 2), n, blocks, true},
          blocks_for(2 * n, ColumnTotals::kColumns), ColumnTotals::kThreads, ColumnTotals::shared_bytes());
  });
}

// Where they are apart, column sums come first: dx may lie where x, dy or dskip do.
template <class T, class Launcher>
void norm_backward(Launcher& l, const KernelArguments& a) {
  const std::int64_t m = a.op->m, n = a.op->n;
  with_widest<T>(n, {a.in[0], a.in[1], a.in[3], a.in[4], a.out[0]}, [&](auto w) {
    constexpr int W = decltype(w)::value;
    const NormBackward<T, W> backward{
        input<T>(a, 0),     input<T>(a, 1), input<float>(a, 2), input<T>(a, 3), input<T>(a, 4), output<T>(a, 0), n,
        a.out[2] != nullptr};
    const bool has_sums = a.out[1] != nullptr || a.out[2] != nullptr;
    if (has_sums && norm_gradients<T, W>(l, a, backward)) return;
    column_pair_sums(l, NormedProducts<T>{backward.x, backward.dy, backward.stats, n}, m, n, output<float>(a, 1),
                     output<float>(a, 2));
    l.run(backward, m, row_threads(n / W), kReduceBytes);
  });
}

inline HeadRows head_rows(const program::Op& op) { return {op.heads, op.kv_heads, op.head_dim}; }

template <class T, class Launcher>
void head_norm(Launcher& l, const KernelArguments& a) {
  const HeadRows rows = head_rows(*a.op);
  with_width(rows.dim, [&](auto w) {
    constexpr int W = decltype(w)::value;
    l.run(HeadNorm<T, W>{input<T>(a, 0), input<T>(a, 1), input<T>(a, 2), output<T>(a, 0), output<float>(a, 1), rows,
                         static_cast<float>(a.op->epsilon)},
          a.op->m * (rows.heads + 2 * rows.kv_heads), row_threads(rows.dim / W), kReduceBytes);
  });
}

// Column sums first: dx may lie where dy does.
template <class T, class Launcher>
void head_norm_backward(Launcher& l, const KernelArguments& a) {
  const HeadRows rows = head_rows(*a.op);
  const T* x = input<T>(a, 0);
  const T* dy = input<T>(a, 4);
  const float* sigma = input<float>(a, 3);
  const std::int64_t m = a.op->m;
  column_sums(l, NormedHeadProducts<T>{x, dy, sigma, rows, 0, rows.heads}, m * rows.heads, rows.dim,
              output<float>(a, 1));
  column_sums(l, NormedHeadProducts<T>{x, dy, sigma, rows, rows.heads, rows.kv_heads}, m * rows.kv_heads, rows.dim,
              output<float>(a, 2));
  with_width(rows.dim, [&](auto w) {
    constexpr int W = decltype(w)::value;
    l.run(HeadNormBackward<T, W>{x, input<T>(a, 1), input<T>(a, 2), sigma, dy, output<T>(a, 0), rows},
          m * (rows.heads + 2 * rows.kv_heads), row_threads(rows.dim / W), kReduceBytes);
  });
}

/// Calls work(the curve as a constant).
template <class Work>
void with_curve(const KernelArguments& a, const Work& work) {
  switch (static_cast<Curve>(program::activation_of(*a.op))) {
    case Curve::kGelu:
      return work(std::integral_constant<Curve, Curve::kGelu>());
    case Curve::kRelu:
      return work(std::integral_constant<Curve, Curve::kRelu>());
    case Curve::kSwiglu:
      return work(std::integral_constant<Curve, Curve::kSwiglu>());
    case Curve::kGeglu:
      return work(std::integral_constant<Curve, Curve::kGeglu>());
    case Curve::kGeluErf:
      return work(std::integral_constant<Curve, Curve::kGeluErf>());
    case Curve::kSquaredRelu:
      return work(std::integral_constant<Curve, Curve::kSquaredRelu>());
  }
}

template <class T, class Launcher>
void activation(Launcher& l, const KernelArguments& a) {
  const std::int64_t m = a.op->m, n = a.op->n;
  with_curve(a, [&](auto curve) {
    with_widest<T>(n, {a.in[0], a.in[1], a.out[0]}, [&](auto w) {
      constexpr int W = decltype(w)::value;
      const Activate<T, W, decltype(curve)::value> kernel{input<T>(a, 0), input<T>(a, 1), output<T>(a, 0), m, n};
      l.run(kernel, kernel.blocks(), kernel.kThreads);
    });
  });
}

template <class T, class Launcher>
void activation_backward(Launcher& l, const KernelArguments& a) {
  const std::int64_t m = a.op->m, n = a.op->n;
  T* const dx = output<T>(a, 0);
  with_curve(a, [&](auto with) {
    constexpr Curve curve = decltype(with)::value;
    with_widest<T>(n, {a.in[0], a.in[1], a.in[2], a.out[0]}, [&](auto w) {
      constexpr int W = decltype(w)::value;
      if constexpr (is_gated(curve)) {
        run_elements(l, ActivateGatedBackward<T, W, curve>{input<T>(a, 0), input<T>(a, 1), input<T>(a, 2), dx, m, n},
                     m * n, W);
        value_sums<T>(l, dx, 2 * n, m, 2 * n, output<float>(a, 1));
      } else {
        const ActivationGradients<T, curve> gradients{input<T>(a, 0), input<T>(a, 1), input<T>(a, 2), dx, n};
        if (a.out[1] == nullptr) return run_elements(l, ActivateBackward<T, W, curve>{gradients, m}, m * n, W);
        column_sums_of<W>(l, gradients, m, n, output<float>(a, 1), nullptr);
      }
    });
  });
}

template <class T, class Launcher>
void rotary(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const bool forward = op.kind == program::OpKind::kRotary;
  Rotary<T> work{a.in[0] != nullptr ? input<T>(a, 0) : output<T>(a, 0),
                 output<T>(a, 0),
                 op.m,
                 op.heads + op.kv_heads,
                 op.heads + 2 * op.kv_heads,
                 op.head_dim,
                 forward ? 1.0F : -1.0F,
                 positions_of(a, op.sequence),
                 static_cast<int>(a.rotary->frequencies.size()),
                 a.rotary->amplitude,
                 {}};
  std::copy(a.rotary->frequencies.begin(), a.rotary->frequencies.end(), work.frequencies);
  run_elements(l, work, op.m * ((op.head_dim + 1) / 2));
}

/// Columns of this rank that are not padding.
inline std::int64_t valid_columns(const KernelArguments& a) {
  const std::int64_t left = a.vocabulary - a.tensor_rank * a.op->n;
  return left < 0 ? 0 : left < a.op->n ? left : a.op->n;
}

/// Nothing where the rank has whole rows: their sums take one pass for both.
template <class Launcher>
void loss_max(Launcher& l, const KernelArguments& a) {
  if (a.tensor_ranks == 1) return;
  with_width(a.op->n, [&](auto w) {
    l.run(LossMax<decltype(w)::value>{input<float>(a, 0), output<float>(a, 0), a.op->n, valid_columns(a)}, a.op->m,
          row_threads(a.op->n), kReduceBytes);
  });
}

template <class Launcher>
void loss_sums(Launcher& l, const KernelArguments& a) {
  with_width(a.op->n, [&](auto w) {
    l.run(LossSums<decltype(w)::value>{input<float>(a, 0), reinterpret_cast<float*>(a.in[1]), input<std::int32_t>(a, 2),
                                       output<float>(a, 0), a.op->n, valid_columns(a), a.tensor_rank * a.op->n,
                                       a.tensor_ranks == 1},
          a.op->m, row_threads(a.op->n), kReduceBytes);
  });
}

template <class Launcher>
void loss(Launcher& l, const KernelArguments& a) {
  l.run(Loss{input<float>(a, 1), input<std::int32_t>(a, 2), output<double>(a, 0), a.op->m,
             a.values->loss_weight * a.op->loss_share},
        1, kElementThreads, kReduceBytes);
}

template <class T, class Launcher>
void loss_backward(Launcher& l, const KernelArguments& a) {
  with_width(a.op->n, [&](auto w) {
    l.run(
        LossBackward<T, decltype(w)::value>{
            input<float>(a, 0), input<float>(a, 1), input<float>(a, 2), input<std::int32_t>(a, 3), output<float>(a, 0),
            a.op->n, valid_columns(a), a.tensor_rank * a.op->n,
            static_cast<float>(a.values->loss_weight * a.op->loss_share * a.values->loss_scale)},
        a.op->m, row_threads(a.op->n));
  });
}

// ---- products ----

/// Row length of an operand of type T: gradients of logits lie at the start of rows of fp32.
template <class T>
std::int64_t row_of(const KernelArguments& a, int operand, std::int64_t n) {
  const int buffer = a.op->in[static_cast<std::size_t>(operand)];
  if (a.kind == nullptr || buffer == program::kNoBuffer) return n;
  return n * size_of(a.kind->buffers[static_cast<std::size_t>(buffer)].dtype) / static_cast<std::int64_t>(sizeof(T));
}

inline program::DType out_type(const KernelArguments& a, program::DType type) {
  const int buffer = a.op->out[0];
  return a.kind == nullptr || buffer == program::kNoBuffer ? type
                                                           : a.kind->buffers[static_cast<std::size_t>(buffer)].dtype;
}

template <class T>
Gemm matmul_of(const KernelArguments& a) {
  const program::Op& op = *a.op;
  Gemm g{.m = op.m, .n = op.n, .k = op.k, .type = kTypeOf<T>, .out = out_type(a, kTypeOf<T>)};
  g.a = a.in[0], g.b = a.in[1], g.c = a.out[0], g.bias = a.in[2];
  g.b_transposed = op.weight_transposed;
  g.lda = op.k, g.ldb = op.weight_transposed ? op.k : op.n, g.ldc = op.n;
  return g;
}

template <class T, class Launcher>
void matmul(Launcher& l, const KernelArguments& a) {
  l.gemm(matmul_of<T>(a));
}

template <class T>
Gemm matmul_dgrad_of(const KernelArguments& a) {
  const program::Op& op = *a.op;
  Gemm g{.m = op.m, .n = op.k, .k = op.n, .type = kTypeOf<T>, .out = kTypeOf<T>};
  g.a = a.in[0], g.b = a.in[1], g.c = a.out[0];
  g.b_transposed = !op.weight_transposed;
  g.lda = row_of<T>(a, 0, op.n), g.ldb = op.weight_transposed ? op.k : op.n, g.ldc = op.k;
  return g;
}

template <class T, class Launcher>
void matmul_dgrad(Launcher& l, const KernelArguments& a) {
  l.gemm(matmul_dgrad_of<T>(a));
}

template <class T, class Launcher>
void matmul_wgrad(Launcher& l, const KernelArguments& a) {
  const program::Op& op = *a.op;
  const std::int64_t dy_row = row_of<T>(a, 1, op.n);
  Gemm g{.k = op.m, .type = kTypeOf<T>, .out = program::DType::kFp32};
  g.a_transposed = true, g.beta = 1, g.c = a.out[0];
  g.m = op.weight_transposed ? op.n : op.k, g.n = op.weight_transposed ? op.k : op.n;
  g.a = a.in[op.weight_transposed ? 1 : 0], g.b = a.in[op.weight_transposed ? 0 : 1];
  g.lda = op.weight_transposed ? dy_row : op.k, g.ldb = op.weight_transposed ? op.k : dy_row, g.ldc = g.n;
  l.gemm(g);
  if (a.out[1] != nullptr) value_sums(l, input<T>(a, 1), dy_row, op.m, op.n, output<float>(a, 1));
}

/// The function for an op kind of this file, for operands of type T; null for another kind.
template <class T, class Launcher>
Operation<Launcher> row_operation(const program::Op& op) {
  using program::OpKind;
  switch (op.kind) {
    case OpKind::kEmbedding:
      return embedding<T, Launcher>;
    case OpKind::kEmbeddingBackward:
      return embedding_backward<T, Launcher>;
    case OpKind::kPosition:
      return position<T, Launcher>;
    case OpKind::kPositionBackward:
      return position_backward<T, Launcher>;
    case OpKind::kNorm:
      return norm<T, Launcher>;
    case OpKind::kNormBackward:
      return norm_backward<T, Launcher>;
    case OpKind::kHeadNorm:
      return head_norm<T, Launcher>;
    case OpKind::kHeadNormBackward:
      return head_norm_backward<T, Launcher>;
    case OpKind::kMatmul:
      return matmul<T, Launcher>;
    case OpKind::kMatmulDgrad:
      return matmul_dgrad<T, Launcher>;
    case OpKind::kMatmulWgrad:
      return matmul_wgrad<T, Launcher>;
    case OpKind::kRotary:
    case OpKind::kRotaryBackward:
      return rotary<T, Launcher>;
    case OpKind::kBiasResidual:
      return bias_residual<T, Launcher>;
    case OpKind::kBiasResidualBackward:
      return bias_residual_backward<T, Launcher>;
    case OpKind::kActivation:
      return activation<T, Launcher>;
    case OpKind::kActivationBackward:
      return activation_backward<T, Launcher>;
    case OpKind::kLossMax:
      return loss_max<Launcher>;
    case OpKind::kLossSums:
      return loss_sums<Launcher>;
    case OpKind::kLoss:
      return loss<Launcher>;
    case OpKind::kLossBackward:
      return loss_backward<T, Launcher>;
    case OpKind::kAdd:  // gradients of parameters are added too
      return op.dtype == program::DType::kFp32 ? add<float, Launcher> : add<T, Launcher>;
    case OpKind::kFetch:
    case OpKind::kStore:
      return copy<Launcher>;
    default:
      return nullptr;
  }
}

}  // namespace trivium::runtime::cuda
