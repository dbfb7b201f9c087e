// Routing of tokens to experts (cpu/mixture.cpp has the rules and the formulas). Router values are fp32.
#pragma once

#include "program/ir/context.h"
#include "program/ir/expert_rows.h"
#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/rows.h"

namespace trivium::runtime::cuda {

/// A token's choice: expert, and row of those that this tensor rank dispatches or -1.
struct Choice {
  std::int32_t expert, row;
};

struct Routing {
  std::int64_t experts, top_k, sequence, samples;
};

/// The ranks that share a sample, of which this is one.
struct Sharers {
  program::ContextMethod method;
  int rank, ranks;
};

/// A choice's row: this rank's, or behind its `own` rows one of those that other context ranks have room for.
template <class T>
struct RowsOf {
  T* rows;
  T* spilled;  ///< may be null where no row is
  std::int64_t own, n;
  TRIVIUM_DEVICE T* operator()(std::int64_t row) const {
    return row < own ? rows + row * n : spilled + (row - own) * n;
  }
};

/// Where a rank's token stands in the list of all tokens of its samples, one sample after the other: ranks of a context
/// group list the choices of all.
struct Listed {
  Positions positions;
  TRIVIUM_DEVICE std::int64_t operator()(std::int64_t token) const {
    return token / positions.local * positions.sequence + positions.of_row(token);
  }
};

TRIVIUM_DEVICE float gate_of(const float* probabilities, const Choice* chosen, std::int64_t top_k, std::int64_t c) {
  const float mine = probabilities[chosen[c].expert];
  if (top_k == 1) return mine;
  float sum = 0;
  for (std::int64_t i = 0; i < top_k; ++i) sum += probabilities[chosen[i].expert];
  return mine / sum;
}

/// Share of a sample's choices that fell on an expert.
TRIVIUM_DEVICE double share_of(const Routing& r, const Choice* chosen, std::int64_t expert) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < r.sequence * r.top_k; ++i) count += chosen[i].expert == expert ? 1 : 0;
  return static_cast<double>(count) / static_cast<double>(r.sequence * r.top_k);
}

/// A block a sample: probabilities and choices by token, then rows by expert in token order, first choices first, in
/// the part of the token's context rank or where there is room; the balance E sum f P of the sample goes to `balance`.
struct Route {
  const float* logits;
  float* probabilities;
  Choice* choices;
  double* balance;     ///< (samples), or null
  std::int32_t* used;  ///< scratch (samples, experts, context ranks): rows that are taken
  Routing r;
  Sharers sharers;
  program::ExpertRows rows;
  std::int64_t tensor_rank;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t first = t.block() * r.sequence;
    for (std::int64_t i = t.thread(); i < r.sequence; i += t.threads()) choose(first + i);
    t.sync();
    double sum = 0;
    Choice* chosen = choices + first * r.top_k;
    for (std::int64_t e = t.thread(); e < r.experts; e += t.threads()) {
      take_rows(t.block(), e, chosen);
      if (balance == nullptr) continue;
      double mean = 0;
      for (std::int64_t i = 0; i < r.sequence; ++i) {
        mean += static_cast<double>(probabilities[(first + i) * r.experts + e]);
      }
      sum += share_of(r, chosen, e) * mean / static_cast<double>(r.sequence);
    }
    if (balance == nullptr) return;
    sum = over_block(t, sum, reinterpret_cast<double*>(t.shared()), Sum());
    if (t.thread() == 0) balance[t.block()] = sum;
  }

 private:
  static constexpr std::int32_t kWaits = -2;

  TRIVIUM_DEVICE void take(Choice& choice, std::int32_t* taken, std::int64_t sample, int rank) const {
    const std::int64_t i = taken[rank]++;
    choice.row = -1;
    if (rows.tensor_rank(sample, i) != tensor_rank) return;  // another tensor rank sends it
    choice.row = static_cast<std::int32_t>((rank * r.experts + choice.expert) * rows.part() + rows.row(sample, i));
  }

  TRIVIUM_DEVICE void take_rows(std::int64_t sample, std::int64_t e, Choice* chosen) const {
    std::int32_t* taken = used + (sample * r.experts + e) * sharers.ranks;
    for (int rank = 0; rank < sharers.ranks; ++rank) taken[rank] = 0;
    std::int64_t accepted = 0, waiting = 0;
    for (std::int64_t c = 0; c < r.top_k; ++c) {
      for (std::int64_t i = 0; i < r.sequence; ++i) {
        Choice& choice = chosen[i * r.top_k + c];
        if (choice.expert != e || accepted == rows.capacity) continue;
        ++accepted;
        const int owner = program::context_owner(sharers.method, i, r.sequence, sharers.ranks);
        if (taken[owner] < rows.context_part()) {
          take(choice, taken, sample, owner);
        } else {
          choice.row = kWaits;
          ++waiting;
        }
      }
    }
    int rank = 0;
    for (std::int64_t c = 0; c < r.top_k && waiting > 0; ++c) {
      for (std::int64_t i = 0; i < r.sequence; ++i) {
        Choice& choice = chosen[i * r.top_k + c];
        if (choice.expert != e || choice.row != kWaits) continue;
        while (taken[rank] == rows.context_part()) ++rank;
        take(choice, taken, sample, rank);
      }
    }
  }

  TRIVIUM_DEVICE void choose(std::int64_t token) const {
    const float* from = logits + token * r.experts;
    float* p = probabilities + token * r.experts;
    Choice* chosen = choices + token * r.top_k;
    float most = from[0], sum = 0;
    for (std::int64_t e = 1; e < r.experts; ++e) most = Largest()(most, from[e]);
    for (std::int64_t e = 0; e < r.experts; ++e) sum += p[e] = exp_of(from[e] - most);
    for (std::int64_t e = 0; e < r.experts; ++e) p[e] /= sum;
    for (std::int64_t c = 0; c < r.top_k; ++c) {
      std::int32_t best = -1;
      for (std::int32_t e = 0; e < r.experts; ++e) {
        bool is_free = true;
        for (std::int64_t before = 0; before < c; ++before) is_free = is_free && chosen[before].expert != e;
        if (is_free && (best < 0 || p[e] > p[best])) best = e;
      }
      chosen[c] = {best, -1};
    }
  }
};

/// loss += weight times the sum of the samples' balances, in their order. One thread.
struct BalanceLoss {
  const double* balance;
  double* loss;
  std::int64_t samples;
  double weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    if (t.thread() != 0) return;
    double sum = 0;
    for (std::int64_t i = 0; i < samples; ++i) sum += balance[i];
    *loss += weight * sum;
  }
};

/// A block a sample: shares by expert, then gradients by token. As gradients of logits they are of type T, at the start
/// of each row of fp32.
template <class T>
struct RouteBackward {
  const float* probabilities;
  const Choice* choices;
  const float* dgates;
  float* rows;
  Routing r;
  Listed listed;
  double balance;  ///< weight of a share; 0 where another rank counts it
  int shared_bytes() const { return static_cast<int>(r.experts) * 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* shares = reinterpret_cast<float*>(t.shared());
    const std::int64_t local = listed.positions.local, first = t.block() * local;
    for (std::int64_t e = t.thread(); e < r.experts; e += t.threads()) {
      shares[e] = static_cast<float>(balance * share_of(r, choices + t.block() * r.sequence * r.top_k, e));
    }
    t.sync();
    for (std::int64_t i = t.thread(); i < local; i += t.threads()) {
      const float* p = probabilities + listed(first + i) * r.experts;
      const Choice* chosen = choices + listed(first + i) * r.top_k;
      const float* dgate = dgates + (first + i) * r.top_k;
      float* dp = rows + (first + i) * r.experts;  // of this thread alone, read before it is overwritten
      for (std::int64_t e = 0; e < r.experts; ++e) dp[e] = shares[e];
      if (r.top_k == 1) {
        dp[chosen[0].expert] += dgate[0];
      } else {
        float sum = 0, mean = 0;
        for (std::int64_t c = 0; c < r.top_k; ++c) sum += p[chosen[c].expert];
        for (std::int64_t c = 0; c < r.top_k; ++c) mean += dgate[c] * p[chosen[c].expert] / sum;
        for (std::int64_t c = 0; c < r.top_k; ++c) dp[chosen[c].expert] += (dgate[c] - mean) / sum;
      }
      float inner = 0;
      for (std::int64_t e = 0; e < r.experts; ++e) inner += p[e] * dp[e];
      T* out = reinterpret_cast<T*>(dp);
      for (std::int64_t e = 0; e < r.experts; ++e) {
        const float value = p[e] * (dp[e] - inner);
        out[e] = narrow<T>(value);
      }
    }
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

  /// Counts become the sums of those before them; behind them, and returned, is the sum of all.
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
