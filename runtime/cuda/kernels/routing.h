// Routing of tokens to experts (cpu/mixture.cpp has the rules and the formulas). Router values are fp32.
#pragma once

#include "program/ir/context.h"
#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/positions.h"

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

/// Probabilities of the experts and the top_k of them; among equals the first comes first, and where the probabilities
/// are no numbers the first experts do. A warp a token.
struct Choose {
  static constexpr int kThreads = 256, kTokens = kThreads / kWarp;
  const float* logits;
  float* probabilities;
  Choice* choices;
  std::int64_t tokens, experts, top_k;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const int lane = t.thread() % kWarp;
    const std::int64_t token = t.block() * kTokens + t.thread() / kWarp;
    if (token >= tokens) return;
    const float* from = logits + token * experts;
    float* p = probabilities + token * experts;
    float most = kLowest, sum = 0;
    for (std::int64_t e = lane; e < experts; e += kWarp) most = Largest()(most, from[e]);
    most = over_warp(t, most, Largest());
    for (std::int64_t e = lane; e < experts; e += kWarp) sum += p[e] = exp_of(from[e] - most);
    sum = over_warp(t, sum, Sum());
    for (std::int64_t e = lane; e < experts; e += kWarp) p[e] /= sum;
    Best last{kBeyond, -1};
    for (std::int64_t c = 0; c < top_k; ++c) {
      last = best_behind(t, last, p);
      if (lane == 0) choices[token * top_k + c] = {last.expert, -1};
    }
  }

 private:
  static constexpr float kBeyond = 2;  ///< above every probability
  struct Best {
    float value;
    std::int32_t expert;
    TRIVIUM_DEVICE bool is_before(const Best& other) const {
      return value > other.value || (value == other.value && expert < other.expert);
    }
  };

  /// The best expert ranked after `last`, the same for all of the warp.
  template <class Thread>
  TRIVIUM_DEVICE Best best_behind(Thread& t, const Best& last, const float* p) const {
    Best best{-kBeyond, static_cast<std::int32_t>(experts)};
    for (std::int64_t e = t.thread() % kWarp; e < experts; e += kWarp) {
      const Best mine{p[e] >= 0 ? p[e] : -1.0F, static_cast<std::int32_t>(e)};
      if (last.is_before(mine) && mine.is_before(best)) best = mine;
    }
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      const Best other{t.shuffle_xor(best.value, mask), t.shuffle_xor(best.expert, mask)};
      if (other.is_before(best)) best = other;
    }
    return best;
  }
};

/// Calls work(i, c, is_one) for every choice of the sample, 32 neighbouring tokens at once, first choices first, where
/// any of the 32 is of the expert. A warp.
template <class Thread, class Work>
TRIVIUM_DEVICE void walk_choices(Thread& t, const Routing& r, const Choice* chosen, std::int64_t expert,
                                 const Work& work) {
  constexpr int kAhead = 4;  // loads under way
  const int lane = t.thread() % kWarp;
  for (std::int64_t c = 0; c < r.top_k; ++c) {
    for (std::int64_t base = 0; base < r.sequence; base += kAhead * kWarp) {
      bool is_one[kAhead];
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const std::int64_t i = base + k * kWarp + lane;
        is_one[k] = i < r.sequence && chosen[i * r.top_k + c].expert == expert;
      }
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const std::uint32_t all = t.ballot(is_one[k]);
        if (all != 0) work(base + k * kWarp + lane, c, is_one[k], all);
      }
    }
  }
}

/// Rows by expert in token order, first choices first, in the part of the token's context rank or where there is room;
/// the share f P of the sample's balance E sum f P goes to `balance`. A warp, which is a block, an expert of a sample:
/// it looks at 32 choices at once and counts by ballot what stands before each.
struct PlaceChoices {
  const float* probabilities;
  Choice* choices;
  double* balance;  ///< (samples, experts), or null
  Routing r;
  Sharers sharers;
  std::int64_t capacity;  ///< of an expert, from a sample
  std::int64_t room;      ///< that of a context rank
  std::int64_t part;      ///< rows of an expert that a tensor rank sends
  std::uint32_t tensor_rank, tensor_ranks;
  int shared_bytes() const { return sharers.ranks * 4; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t sample = t.block() / r.experts, e = t.block() % r.experts;
    Choice* chosen = choices + sample * r.sequence * r.top_k;
    const std::int64_t count = take_rows(t, sample, e, chosen);
    if (balance == nullptr) return;
    double sum = 0;
    for (std::int64_t i = t.thread(); i < r.sequence; i += kWarp)
      sum += static_cast<double>(probabilities[(sample * r.sequence + i) * r.experts + e]);
    sum = over_warp(t, sum, Sum());
    const double share = static_cast<double>(count) / static_cast<double>(r.sequence * r.top_k);
    if (t.thread() == 0) balance[t.block()] = share * sum / static_cast<double>(r.sequence);
  }

 private:
  static constexpr std::int32_t kWaits = -2;

  /// Row `i` of the sample and context part, as program::ExpertRows deals them out.
  TRIVIUM_DEVICE void take(Choice& choice, std::int64_t i, std::int64_t sample, int rank) const {
    const auto among = static_cast<std::uint32_t>(sample * room + i);
    choice.row = -1;
    if (tensor_ranks > 1 && among % tensor_ranks != tensor_rank) return;  // another tensor rank sends it
    const std::uint32_t row = tensor_ranks > 1 ? among / tensor_ranks : among;
    choice.row = static_cast<std::int32_t>((rank * r.experts + choice.expert) * part + row);
  }
  TRIVIUM_DEVICE int owner_of(std::int64_t token) const {
    return sharers.ranks == 1 ? 0 : program::context_owner(sharers.method, token, r.sequence, sharers.ranks);
  }

  /// How many of the sample's choices fell on the expert, whether it had room or not.
  template <class Thread>
  TRIVIUM_DEVICE std::int64_t take_rows(Thread& t, std::int64_t sample, std::int64_t e, Choice* chosen) const {
    auto* taken = reinterpret_cast<std::int32_t*>(t.shared());  // by context rank
    const std::uint32_t before = (std::uint32_t{1} << t.thread()) - 1;
    for (int rank = t.thread(); rank < sharers.ranks; rank += kWarp) taken[rank] = 0;
    t.sync();
    std::int64_t count = 0, waiting = 0;
    walk_choices(t, r, chosen, e, [&](std::int64_t i, std::int64_t c, bool is_one, std::uint32_t all) {
      const bool accepted = is_one && count + count_bits(all & before) < capacity;
      count += count_bits(all);
      waiting += count_bits(take_own(t, sample, accepted ? chosen + i * r.top_k + c : nullptr, i, taken));
    });
    if (waiting == 0) return count;
    std::int64_t served = 0;
    walk_choices(t, r, chosen, e, [&](std::int64_t i, std::int64_t c, bool is_one, std::uint32_t) {
      const bool waits = is_one && chosen[i * r.top_k + c].row == kWaits;
      const std::uint32_t all = t.ballot(waits);
      if (waits) take_elsewhere(sample, chosen[i * r.top_k + c], served + count_bits(all & before), taken);
      served += count_bits(all);
    });
    return count;
  }

  /// The choices that this step's threads have, if any, get their rows of the part of their token's context rank as far
  /// as it has room. Those, as bits, that wait.
  template <class Thread>
  TRIVIUM_DEVICE std::uint32_t take_own(Thread& t, std::int64_t sample, Choice* choice, std::int64_t token,
                                        std::int32_t* taken) const {
    const std::uint32_t before = (std::uint32_t{1} << t.thread()) - 1;
    const int owner = choice == nullptr ? -1 : program::context_owner(sharers.method, token, r.sequence, sharers.ranks);
    bool waits = false;
    for (int rank = 0; rank < sharers.ranks; ++rank) {
      const std::uint32_t all = t.ballot(owner == rank);
      if (all == 0) continue;
      const std::int64_t first = taken[rank], mine = first + count_bits(all & before), behind = first + count_bits(all);
      t.sync();  // all have read
      if (owner == rank && mine < room) take(*choice, mine, sample, rank);
      if (owner == rank && mine >= room) choice->row = kWaits, waits = true;
      if (t.thread() == 0) taken[rank] = static_cast<std::int32_t>(behind < room ? behind : room);
      t.sync();
    }
    return t.ballot(waits);
  }

  /// Of those that wait the one with so many before it.
  TRIVIUM_DEVICE void take_elsewhere(std::int64_t sample, Choice& choice, std::int64_t place,
                                     const std::int32_t* taken) const {
    int rank = 0;
    for (; place >= room - taken[rank]; ++rank) place -= room - taken[rank];
    take(choice, taken[rank] + place, sample, rank);
  }
};

/// loss += weight times the sum of the parts of the balances. One block.
struct BalanceLoss {
  const double* balance;
  double* loss;
  std::int64_t count;
  double weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    double sum = 0;
    for (std::int64_t i = t.thread(); i < count; i += t.threads()) sum += balance[i];
    sum = over_block(t, sum, reinterpret_cast<double*>(t.shared()), Sum());
    if (t.thread() == 0) *loss += weight * sum;
  }
};

/// shares (samples, experts) = weight times the share of a sample's choices that fell on an expert. A warp, which is a
/// block, for each.
struct BalanceShares {
  const Choice* choices;
  float* shares;
  Routing r;
  double weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const Choice* chosen = choices + t.block() / r.experts * r.sequence * r.top_k;
    std::int64_t count = 0;
    walk_choices(t, r, chosen, t.block() % r.experts,
                 [&](std::int64_t, std::int64_t, bool, std::uint32_t all) { count += count_bits(all); });
    const double share = static_cast<double>(count) / static_cast<double>(r.sequence * r.top_k);
    if (t.thread() == 0) shares[t.block()] = static_cast<float>(weight * share);
  }
};

/// Gradients of the router's logits, as gradients of logits of type T at the start of each row of fp32. A warp a token.
template <class T>
struct RouteBackward {
  static constexpr int kThreads = 256, kTokens = kThreads / kWarp;
  const float* probabilities;
  const Choice* choices;
  const float* dgates;
  const float* shares;  ///< (samples, experts), or null where another rank counts them
  float* rows;
  Routing r;
  Listed listed;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const int lane = t.thread() % kWarp;
    const std::int64_t token = t.block() * kTokens + t.thread() / kWarp, local = listed.positions.local;
    if (token >= r.samples * local) return;
    const float* p = probabilities + listed(token) * r.experts;
    const Choice* chosen = choices + listed(token) * r.top_k;
    const float* dgate = dgates + token * r.top_k;
    const float* share = shares == nullptr ? nullptr : shares + token / local * r.experts;
    float sum = 0, mean = 0;  // where a gate is a share of the chosen
    for (std::int64_t c = 0; c < r.top_k; ++c) sum += p[chosen[c].expert];
    for (std::int64_t c = 0; c < r.top_k; ++c) mean += dgate[c] * p[chosen[c].expert] / sum;
    const auto dp = [&](std::int64_t e) {
      float d = share == nullptr ? 0.0F : share[e];
      for (std::int64_t c = 0; c < r.top_k; ++c) {
        if (chosen[c].expert == e) d += r.top_k == 1 ? dgate[c] : (dgate[c] - mean) / sum;
      }
      return d;
    };
    float inner = 0;
    for (std::int64_t e = lane; e < r.experts; e += kWarp) inner += p[e] * dp(e);
    inner = over_warp(t, inner, Sum());
    T* out = reinterpret_cast<T*>(rows + token * r.experts);
    for (std::int64_t e = lane; e < r.experts; e += kWarp) out[e] = narrow<T>(p[e] * (dp(e) - inner));
  }
};

}  // namespace trivium::runtime::cuda
