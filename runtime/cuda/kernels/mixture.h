// Rows of tokens to and from experts (cpu/mixture.cpp has the rules and the formulas).
#pragma once

#include "program/ir/context.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/routing.h"

namespace trivium::runtime::cuda {

/// A choice's row: this rank's, or after its `own` rows one of those that other context ranks have room for.
template <class T>
struct RowsOf {
  T* rows;
  T* spilled;  ///< may be null where no row is
  std::int64_t own, n;
  TRIVIUM_DEVICE T* operator()(std::int64_t row) const {
    return row < own ? rows + row * n : spilled + (row - own) * n;
  }
};

/// Of the rows of all context ranks those that this one sends or gets, in the order of the list (program/ir/op.h). One
/// block, whose threads share the list in runs; for each other rank they count, add up and place.
struct Spill {
  const Choice* routed;
  Choice* choices;
  std::int32_t* table;
  Routing r;
  Sharers sharers;
  std::int64_t own;  ///< rows of a rank
  static int shared_bytes(int threads) { return 2 * (threads + 1) * 4; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* sent = reinterpret_cast<std::int32_t*>(t.shared());
    std::int32_t* received = sent + t.threads() + 1;
    const std::int64_t count = r.samples * r.sequence * r.top_k, run = (count + t.threads() - 1) / t.threads();
    const std::int64_t begin = t.thread() * run, end = begin + run < count ? begin + run : count;
    for (std::int64_t i = begin; i < end; ++i) {
      const bool stays = meets(i, sharers.rank, sharers.rank);
      choices[i] = {routed[i].expert, stays ? static_cast<std::int32_t>(routed[i].row % own) : -1};
    }
    auto next_sent = static_cast<std::int32_t>(own);
    std::int32_t next_received = 0;
    for (int other = 0; other < sharers.ranks; ++other) {
      t.sync();
      std::int32_t mine_sent = 0, mine_received = 0;
      for (std::int64_t i = begin; i < end && other != sharers.rank; ++i) {
        mine_sent += meets(i, sharers.rank, other) ? 1 : 0;
        mine_received += meets(i, other, sharers.rank) ? 1 : 0;
      }
      sent[t.thread()] = mine_sent, received[t.thread()] = mine_received;
      t.sync();
      if (t.thread() == 0) {
        table[other] = add_up(sent, t.threads());
        table[sharers.ranks + other] = add_up(received, t.threads());
      }
      t.sync();
      std::int32_t to = next_sent + sent[t.thread()], from = next_received + received[t.thread()];
      for (std::int64_t i = begin; i < end && other != sharers.rank; ++i) {
        if (meets(i, sharers.rank, other)) choices[i].row = to++;
        if (meets(i, other, sharers.rank)) {
          table[2 * sharers.ranks + from++] = static_cast<std::int32_t>(routed[i].row % own);
        }
      }
      next_sent += sent[t.threads()], next_received += received[t.threads()];
    }
  }

 private:
  /// Whether the i-th choice is of a token of the first rank and has its row on the second.
  TRIVIUM_DEVICE bool meets(std::int64_t i, int token_rank, int row_rank) const {
    if (routed[i].row < 0 || routed[i].row / own != row_rank) return false;
    const std::int64_t position = i / r.top_k % r.sequence;
    return program::context_owner(sharers.method, position, r.sequence, sharers.ranks) == token_rank;
  }

  /// Counts become the sums of those before them; the sum of all is stored after them and returned.
  static TRIVIUM_DEVICE std::int32_t add_up(std::int32_t* counts, std::int64_t threads) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < threads; ++i) {
      const std::int32_t count = counts[i];
      counts[i] = sum;
      sum += count;
    }
    return counts[threads] = sum;
  }
};

/// Rows that came from other context ranks to where they belong, or back. A block for every row that may come.
template <class T>
struct MoveSpilled {
  const T* x;
  const std::int32_t* table;
  T* y;
  std::int64_t n;
  int ranks;
  bool places;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    std::int64_t count = 0;
    for (int rank = 0; rank < ranks; ++rank) count += table[ranks + rank];
    if (t.block() >= count) return;
    const std::int64_t row = table[2 * ranks + t.block()], from = places ? t.block() : row,
                       to = places ? row : t.block();
    for (std::int64_t j = t.thread(); j < n; j += t.threads()) y[to * n + j] = x[from * n + j];
  }
};

/// Row of a token to the row of each of its choices; the other rows are 0 already. A block a (token, choice).
template <class T>
struct Dispatch {
  const T* x;
  const Choice* choices;
  RowsOf<T> rows;
  std::int64_t n, top_k;
  Listed listed;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t row = choices[listed(t.block() / top_k) * top_k + t.block() % top_k].row;
    if (row < 0) return;
    for (std::int64_t j = t.thread(); j < n; j += t.threads()) rows(row)[j] = x[t.block() / top_k * n + j];
  }
};

/// y = sum over choices of factor times its row; factors are the gates, or 1 without probabilities. A block a token.
template <class T>
struct Combine {
  RowsOf<const T> rows;
  const float* probabilities;  ///< null: 1
  const Choice* choices;
  T* y;
  std::int64_t n, top_k, experts;
  Listed listed;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const Choice* chosen = choices + listed(t.block()) * top_k;
    for (std::int64_t j = t.thread(); j < n; j += t.threads()) {
      float sum = 0;
      for (std::int64_t c = 0; c < top_k; ++c) {
        if (chosen[c].row < 0) continue;
        const float gate =
            probabilities == nullptr ? 1.0F : gate_of(probabilities + listed(t.block()) * experts, chosen, top_k, c);
        sum += gate * widen(rows(chosen[c].row)[j]);
      }
      y[t.block() * n + j] = narrow<T>(sum);
    }
  }
};

/// d of every row and gate; rows that no token took are 0 already. A block a (token, choice).
template <class T>
struct CombineBackward {
  const T* dy;
  RowsOf<const T> rows;
  const float* probabilities;
  const Choice* choices;
  RowsOf<T> drows;
  float* dgates;
  std::int64_t n, top_k, experts;
  Listed listed;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t token = t.block() / top_k, c = t.block() % top_k;
    const Choice* chosen = choices + listed(token) * top_k;
    const std::int64_t row = chosen[c].row;
    float sum = 0;
    if (row >= 0) {
      const float gate = gate_of(probabilities + listed(token) * experts, chosen, top_k, c);
      for (std::int64_t j = t.thread(); j < n; j += t.threads()) {
        const float d = widen(dy[token * n + j]);
        sum += d * widen(rows(row)[j]);
        drows(row)[j] = narrow<T>(gate * d);
      }
    }
    sum = over_block(t, sum, reinterpret_cast<float*>(t.shared()), Sum());
    if (t.thread() == 0) dgates[t.block()] = sum;
  }
};

}  // namespace trivium::runtime::cuda
