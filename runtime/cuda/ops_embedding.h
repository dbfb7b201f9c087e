// Look-ups of tokens and positions: operands to kernels. T and the forms of operands are those of ops_rows.h.
#pragma once

#include "runtime/cuda/kernels/embedding.h"
#include "runtime/cuda/kernels/rows.h"
#include "runtime/cuda/ops_parts.h"

namespace trivium::runtime::cuda {

template <class T, class Launcher>
void embedding(Launcher& l, const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  with_dropout(a, [&](auto keep) {
    with_width(n, [&](auto w) {
      constexpr int W = decltype(w)::value;
      l.run(Embedding<T, W, decltype(keep)>{input<std::int32_t>(a, 0), input<T>(a, 1), output<T>(a, 0), n,
                                            a.tensor_rank * a.op->k, a.op->k, keep},
            a.op->m, row_threads(n / W));
    });
  });
}

template <class T, class Launcher>
void embedding_backward(Launcher& l, const KernelArguments& a) {
  const std::int64_t m = a.op->m, n = a.op->n;
  const auto rows = static_cast<std::int32_t>(a.op->k), first = static_cast<std::int32_t>(a.tensor_rank * a.op->k);
  with_dropout(a, [&](auto keep) {
    with_width(n, [&](auto w) {
      constexpr int W = decltype(w)::value;
      using Chunk = TokenChunk<W>;
      const std::int64_t partial_bytes = Chunk::chunks(m) * 2 * n * static_cast<std::int64_t>(sizeof(float));
      std::byte* scratch = l.scratch(partial_bytes + TokenOrder::bytes(m));
      auto* partial = reinterpret_cast<float*>(scratch);
      const TokenOrder order = TokenOrder::in(scratch + partial_bytes, m);
      l.run(OrderTiles{input<std::int32_t>(a, 0), order}, blocks_for(m, TokenOrder::kLength), OrderTiles::kThreads,
            OrderTiles::shared_bytes());
      run_elements(l, MergeTiles{order}, m);
      l.run(EmbeddingSums<T, W, decltype(keep)>{order, input<T>(a, 1), output<float>(a, 0), partial, n, first, rows,
                                                keep},
            Chunk::blocks(m, n), Chunk::kThreads);
      l.run(EmbeddingJoin<W>{order, partial, output<float>(a, 0), n, first, rows}, Chunk::blocks(m, n),
            Chunk::kThreads);
    });
  });
}

template <class T, class Launcher>
void position(Launcher& l, const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  with_dropout(a, [&](auto keep) {
    with_width(n, [&](auto w) {
      constexpr int W = decltype(w)::value;
      l.run(Position<T, W, decltype(keep)>{input<T>(a, 0), input<T>(a, 1), output<T>(a, 0), n, positions_of(a, a.op->k),
                                           keep},
            a.op->m, row_threads(n / W));
    });
  });
}

template <class T, class Launcher>
void position_backward(Launcher& l, const KernelArguments& a) {
  const Positions p = positions_of(a, a.op->k);
  with_dropout(a, [&](auto keep) {
    l.run(PositionBackward<T, decltype(keep)>{input<T>(a, 0), output<float>(a, 0), a.op->m, a.op->n, p, keep}, p.local,
          row_threads(a.op->n));
  });
}

}  // namespace trivium::runtime::cuda
