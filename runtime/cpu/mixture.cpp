// Routing of tokens to experts: who goes where, the gather and scatter of rows, and their gradients
// (program/mixture.cpp has the whole layer). Everything is counted per sample, so results do not depend on how samples
// are split over ranks. Ranks of a context group all list the choices of the whole samples; the tokens that they send,
// receive and differentiate are their own.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "program/context.h"
#include "program/expert_rows.h"
#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"

namespace trivium::runtime::cpu {
namespace {

using Index = std::int64_t;

/// A token's choices: (expert, row of those that this tensor rank dispatches or -1), top_k of them.
struct Choice {
  std::int32_t expert, row;
};

struct Routing {
  explicit Routing(const KernelArguments& a)
      : tokens(a.op->m),
        experts(a.op->experts),
        top_k(a.op->k),
        sequence(a.op->sequence),
        local(sequence / a.context_ranks),
        context_rank(a.context_rank),
        context_ranks(a.context_ranks),
        method(a.context_method) {}

  /// Where this rank's token stands in the list of all tokens of its samples, one sample after the other.
  Index listed(Index token) const {
    return token / local * sequence +
           program::context_position(method, token % local, sequence, context_rank, context_ranks);
  }

  Index tokens, experts, top_k, sequence, local;
  int context_rank, context_ranks;
  program::ContextMethod method;
};

const Choice* choices(const KernelArguments& a, std::size_t operand) {
  return reinterpret_cast<const Choice*>(a.in[operand]);
}

/// Gate of a token's choice: the router's probability (Switch), or with several experts its share among the chosen
/// (Mixtral). A single choice's share would be 1 and teach the router nothing.
template <class T>
T gate_of(const T* probabilities, const Choice* chosen, Index top_k, Index c) {
  const T mine = probabilities[chosen[c].expert];
  if (top_k == 1) return mine;
  T sum = 0;
  for (Index i = 0; i < top_k; ++i) sum += probabilities[chosen[i].expert];
  return mine / sum;
}

/// Share of a sample's choices that fell on each expert, whether it had room or not.
std::vector<double> shares(const Routing& r, const Choice* chosen) {
  std::vector<double> share(static_cast<std::size_t>(r.experts), 0.0);
  const double each = 1.0 / static_cast<double>(r.sequence * r.top_k);
  for (Index i = 0; i < r.sequence * r.top_k; ++i) share[static_cast<std::size_t>(chosen[i].expert)] += each;
  return share;
}

/// What one sample's balance loss E sum_e f_e P_e counts in the loss of the step.
double balance_weight(const KernelArguments& a, const Routing& r) {
  return a.balance_loss * a.values->loss_weight * static_cast<double>(r.sequence * r.experts);
}

template <class T>
void softmax(const T* logits, T* out, Index n) {
  const T most = *std::max_element(logits, logits + n);
  T sum = 0;
  for (Index e = 0; e < n; ++e) sum += out[e] = std::exp(logits[e] - most);
  for (Index e = 0; e < n; ++e) out[e] /= sum;
}

}  // namespace

// Experts take a sample's first choices in the order of the tokens, then second choices (Lepikhin et al. 2020, GShard,
// arXiv 2006.16668, algorithm 1, without random dispatch). Balance loss: Fedus et al. 2021, eq. 4, per sample and mean.
template <class T>
void route(const KernelArguments& a) {
  const Routing r(a);
  const Index samples = r.tokens / r.sequence, capacity = a.op->elements;
  const program::ExpertRows rows{capacity, samples, r.context_ranks, a.tensor_ranks};
  T* probabilities = output<T>(a, 0);
  auto* chosen = reinterpret_cast<Choice*>(a.out[1]);
  std::vector<std::int32_t> order(static_cast<std::size_t>(r.experts));
  for (Index t = 0; t < r.tokens; ++t) {
    const T* p = probabilities + t * r.experts;
    softmax(input<T>(a, 0) + t * r.experts, probabilities + t * r.experts, r.experts);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + r.top_k, order.end(),
                      [&](std::int32_t x, std::int32_t y) { return p[x] != p[y] ? p[x] > p[y] : x < y; });
    for (Index c = 0; c < r.top_k; ++c) chosen[t * r.top_k + c] = {order[static_cast<std::size_t>(c)], -1};
  }
  for (Index sample = 0; sample < samples; ++sample) {
    std::vector<Index> taken(static_cast<std::size_t>(r.experts), 0);
    const Index first = sample * r.sequence;
    for (Index c = 0; c < r.top_k; ++c) {
      for (Index t = first; t < first + r.sequence; ++t) {
        Choice& choice = chosen[t * r.top_k + c];
        Index& count = taken[static_cast<std::size_t>(choice.expert)];
        if (count == capacity) continue;
        const Index part = count / rows.context_part(), i = count++ % rows.context_part();
        if (rows.tensor_rank(sample, i) != a.tensor_rank) continue;  // another tensor rank sends it
        choice.row = static_cast<std::int32_t>((part * r.experts + choice.expert) * rows.part() + rows.row(sample, i));
      }
    }
    if (a.out[2] == nullptr || r.context_rank != 0) continue;  // one of the ranks that share the sample counts it
    const std::vector<double> share = shares(r, chosen + first * r.top_k);
    double balance = 0;
    for (Index e = 0; e < r.experts; ++e) {
      double mean = 0;
      for (Index t = first; t < first + r.sequence; ++t) mean += static_cast<double>(probabilities[t * r.experts + e]);
      balance += share[static_cast<std::size_t>(e)] * mean / static_cast<double>(r.sequence);
    }
    *output<double>(a, 2) += balance_weight(a, r) * balance;
  }
}

// Gates reach the logits through the softmax; the balance loss, whose shares are constants, counts on the first tensor
// rank only: gradients of the router are summed over the tensor group.
template <class T>
void route_backward(const KernelArguments& a) {
  const Routing r(a);
  const double balance =
      a.tensor_rank == 0 ? balance_weight(a, r) * a.values->loss_scale / static_cast<double>(r.sequence) : 0;
  std::vector<T> dp(static_cast<std::size_t>(r.experts));
  std::vector<double> share;
  for (Index t = 0; t < r.tokens; ++t) {
    const T* p = input<T>(a, 0) + r.listed(t) * r.experts;
    const Choice* chosen = choices(a, 1) + r.listed(t) * r.top_k;
    const T* dgate = input<T>(a, 2) + t * r.top_k;
    if (t % r.local == 0) share = shares(r, choices(a, 1) + t / r.local * r.sequence * r.top_k);
    for (std::size_t e = 0; e < dp.size(); ++e) dp[e] = static_cast<T>(balance * share[e]);
    if (r.top_k == 1) {
      dp[static_cast<std::size_t>(chosen[0].expert)] += dgate[0];
    } else {
      T sum = 0, mean = 0;
      for (Index c = 0; c < r.top_k; ++c) sum += p[chosen[c].expert];
      for (Index c = 0; c < r.top_k; ++c) mean += dgate[c] * p[chosen[c].expert] / sum;
      for (Index c = 0; c < r.top_k; ++c) dp[static_cast<std::size_t>(chosen[c].expert)] += (dgate[c] - mean) / sum;
    }
    T inner = 0;
    for (Index e = 0; e < r.experts; ++e) inner += p[e] * dp[static_cast<std::size_t>(e)];
    T* dlogits = output<T>(a, 0) + t * r.experts;
    for (Index e = 0; e < r.experts; ++e) dlogits[e] = p[e] * (dp[static_cast<std::size_t>(e)] - inner);
  }
}

template <class T>
void dispatch(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* y = output<T>(a, 0);
  std::fill_n(y, a.op->elements * n, T(0));
  for (Index i = 0; i < r.tokens * r.top_k; ++i) {
    const Index row = choices(a, 1)[r.listed(i / r.top_k) * r.top_k + i % r.top_k].row;
    if (row >= 0) std::copy_n(input<T>(a, 0) + i / r.top_k * n, n, y + row * n);
  }
}

template <class T>
void dispatch_backward(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* dx = output<T>(a, 0);
  std::fill_n(dx, r.tokens * n, T(0));
  for (Index i = 0; i < r.tokens * r.top_k; ++i) {
    const Index row = choices(a, 1)[r.listed(i / r.top_k) * r.top_k + i % r.top_k].row;
    for (Index j = 0; row >= 0 && j < n; ++j) dx[i / r.top_k * n + j] += input<T>(a, 0)[row * n + j];
  }
}

template <class T>
void combine(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* y = output<T>(a, 0);
  std::fill_n(y, r.tokens * n, T(0));
  for (Index t = 0; t < r.tokens; ++t) {
    const Choice* chosen = choices(a, 2) + r.listed(t) * r.top_k;
    for (Index c = 0; c < r.top_k; ++c) {
      if (chosen[c].row < 0) continue;
      const T gate = gate_of(input<T>(a, 1) + r.listed(t) * r.experts, chosen, r.top_k, c);
      const T* row = input<T>(a, 0) + chosen[c].row * n;
      for (Index j = 0; j < n; ++j) y[t * n + j] += gate * row[j];
    }
  }
}

template <class T>
void combine_backward(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* d_rows = output<T>(a, 0);
  T* d_gate = output<T>(a, 1);
  std::fill_n(d_rows, a.op->elements * n, T(0));
  for (Index t = 0; t < r.tokens; ++t) {
    const T* dy = input<T>(a, 0) + t * n;
    const Choice* chosen = choices(a, 3) + r.listed(t) * r.top_k;
    for (Index c = 0; c < r.top_k; ++c) {
      T& d = d_gate[t * r.top_k + c] = 0;
      if (chosen[c].row < 0) continue;
      const T gate = gate_of(input<T>(a, 2) + r.listed(t) * r.experts, chosen, r.top_k, c);
      const T* row = input<T>(a, 1) + chosen[c].row * n;
      for (Index j = 0; j < n; ++j) {
        d += dy[j] * row[j];
        d_rows[chosen[c].row * n + j] = gate * dy[j];
      }
    }
  }
}

template void route<float>(const KernelArguments&);
template void route<double>(const KernelArguments&);
template void route_backward<float>(const KernelArguments&);
template void route_backward<double>(const KernelArguments&);
template void dispatch<float>(const KernelArguments&);
template void dispatch<double>(const KernelArguments&);
template void dispatch_backward<float>(const KernelArguments&);
template void dispatch_backward<double>(const KernelArguments&);
template void combine<float>(const KernelArguments&);
template void combine<double>(const KernelArguments&);
template void combine_backward<float>(const KernelArguments&);
template void combine_backward<double>(const KernelArguments&);

}  // namespace trivium::runtime::cpu
