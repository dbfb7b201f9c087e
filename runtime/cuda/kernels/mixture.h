// Routing of tokens to experts (cpu/mixture.cpp has the rules and the formulas). Router values are fp32.
#pragma once

#include "program/expert_rows.h"
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

/// A block a sample: probabilities and choices by token, then rows by expert in token order, first choices first; the
/// balance E sum f P of the sample goes to `balance`.
struct Route {
  const float* logits;
  float* probabilities;
  Choice* choices;
  double* balance;  ///< (samples), or null
  Routing r;
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
      std::int64_t taken = 0;
      for (std::int64_t c = 0; c < r.top_k; ++c) {
        for (std::int64_t i = 0; i < r.sequence; ++i) {
          Choice& choice = chosen[i * r.top_k + c];
          if (choice.expert != e || taken == rows.capacity) continue;
          const std::int64_t part = taken / rows.context_part(), place = taken++ % rows.context_part();
          if (rows.tensor_rank(t.block(), place) != tensor_rank) continue;  // another tensor rank sends it
          choice.row = static_cast<std::int32_t>((part * r.experts + e) * rows.part() + rows.row(t.block(), place));
        }
      }
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

/// Row of a token to the row of each of its choices; the other rows are 0 already. A block a (token, choice).
template <class T>
struct Dispatch {
  const T* x;
  const Choice* choices;
  T* rows;
  std::int64_t n, top_k;
  Listed listed;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t row = choices[listed(t.block() / top_k) * top_k + t.block() % top_k].row;
    if (row < 0) return;
    for (std::int64_t j = t.thread(); j < n; j += t.threads()) rows[row * n + j] = x[t.block() / top_k * n + j];
  }
};

/// y = sum over choices of factor times its row; factors are the gates, or 1 without probabilities. A block a token.
template <class T>
struct Combine {
  const T* rows;
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
        sum += gate * widen(rows[chosen[c].row * n + j]);
      }
      y[t.block() * n + j] = narrow<T>(sum);
    }
  }
};

/// d of every row and gate; rows that no token took are 0 already. A block a (token, choice).
template <class T>
struct CombineBackward {
  const T* dy;
  const T* rows;
  const float* probabilities;
  const Choice* choices;
  T* drows;
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
        sum += d * widen(rows[row * n + j]);
        drows[row * n + j] = narrow<T>(gate * d);
      }
    }
    sum = over_block(t, sum, reinterpret_cast<float*>(t.shared()), Sum());
    if (t.thread() == 0) dgates[t.block()] = sum;
  }
};

}  // namespace trivium::runtime::cuda
