// Routing of tokens to experts: who goes where, the gather and scatter of rows, and their gradients
// (program/lower/mixture.cpp has the whole layer). Everything is counted per sample, so results do not depend on how
// samples are split over ranks. Ranks of a context group all list the choices of the whole samples; the tokens that
// they send, receive and differentiate are their own.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "program/ir/context.h"
#include "program/ir/expert_rows.h"
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

/// A choice's row: this rank's, or one of those that other context ranks have room for.
template <class T>
T* row_of(const KernelArguments& a, T* own, T* spilled, const Choice& choice) {
  const Index beyond = choice.row - a.op->elements;
  return beyond < 0 ? own + choice.row * a.op->n : spilled + beyond * a.op->n;
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

/// Gives one sample's choices their rows. A token's row lies in the part of its own context rank while there is room,
/// else in the first part that has some once all tokens had their turn. A rank counts the rows that it sends itself.
void take_rows(const Routing& r, const program::ExpertRows& rows, int tensor_rank, Index sample, Choice* chosen) {
  constexpr std::int32_t kWaits = -2;
  const Index ranks = r.context_ranks;
  std::vector<Index> taken(static_cast<std::size_t>(r.experts), 0);
  std::vector<Index> used(static_cast<std::size_t>(r.experts * ranks), 0);
  const auto used_of = [&](Index expert, Index rank) -> Index& {
    return used[static_cast<std::size_t>(expert * ranks + rank)];
  };
  const auto take = [&](Choice& choice, Index rank) {
    const Index i = used_of(choice.expert, rank)++;
    choice.row = -1;
    if (rows.tensor_rank(sample, i) != tensor_rank) return;  // another tensor rank sends it
    choice.row = static_cast<std::int32_t>((rank * r.experts + choice.expert) * rows.part() + rows.row(sample, i));
  };
  for (Index c = 0; c < r.top_k; ++c) {
    for (Index t = 0; t < r.sequence; ++t) {
      Choice& choice = chosen[t * r.top_k + c];
      if (taken[static_cast<std::size_t>(choice.expert)]++ >= rows.capacity) continue;
      const Index owner = program::context_owner(r.method, t, r.sequence, r.context_ranks);
      if (used_of(choice.expert, owner) == rows.context_part()) {
        choice.row = kWaits;
      } else {
        take(choice, owner);
      }
    }
  }
  for (Index c = 0; c < r.top_k; ++c) {
    for (Index t = 0; t < r.sequence; ++t) {
      Choice& choice = chosen[t * r.top_k + c];
      if (choice.row != kWaits) continue;
      Index rank = 0;
      while (used_of(choice.expert, rank) == rows.context_part()) ++rank;
      take(choice, rank);
    }
  }
}

/// The rows of other context ranks' tokens that this one has room for.
struct Spilled {
  explicit Spilled(const KernelArguments& a) : bytes(a.op->n * program::size_of(a.op->dtype)) {
    const auto* counts = reinterpret_cast<const std::int32_t*>(a.in[1]);
    count = std::accumulate(counts + a.op->parts, counts + 2 * a.op->parts, Index{0});
    rows = counts + 2 * a.op->parts;
  }
  std::size_t size() const { return static_cast<std::size_t>(bytes); }

  Index bytes, count;  ///< of a row; rows
  const std::int32_t* rows;
};

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
static void route(const KernelArguments& a) {
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
    const Index first = sample * r.sequence;
    take_rows(r, rows, a.tensor_rank, sample, chosen + first * r.top_k);
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
static void route_backward(const KernelArguments& a) {
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

// Of the rows of all context ranks those that this one sends or gets: both ends go through them in the order of the
// list, so they need not tell each other.
template <class T>
static void spill(const KernelArguments& a) {
  const Routing r(a);
  const Index own = a.op->elements, ranks = r.context_ranks, me = r.context_rank;
  const Choice* routed = choices(a, 0);
  auto* chosen = reinterpret_cast<Choice*>(a.out[0]);
  auto* sent = reinterpret_cast<std::int32_t*>(a.out[1]);
  std::int32_t *received = sent + ranks, *arrived = received + ranks;
  const auto for_each = [&](auto visit) {  // choice, context ranks of its token and of its row
    for (Index i = 0; i < r.tokens * r.top_k; ++i) {
      if (routed[i].row < 0) continue;
      const Index position = i / r.top_k % r.sequence;
      visit(i, program::context_owner(r.method, position, r.sequence, r.context_ranks), routed[i].row / own);
    }
  };
  std::fill_n(sent, 2 * ranks, 0);
  for_each([&](Index, Index from, Index to) {
    if (from == me && to != me) ++sent[to];
    if (from != me && to == me) ++received[from];
  });
  std::vector<Index> next_sent(static_cast<std::size_t>(ranks)), next_received(next_sent.size());
  std::exclusive_scan(sent, sent + ranks, next_sent.begin(), own);
  std::exclusive_scan(received, received + ranks, next_received.begin(), Index{0});
  for (Index i = 0; i < r.tokens * r.top_k; ++i) chosen[i] = {routed[i].expert, -1};
  for_each([&](Index i, Index from, Index to) {
    const auto row = static_cast<std::int32_t>(routed[i].row % own);
    if (from == me) {
      chosen[i].row = to == me ? row : static_cast<std::int32_t>(next_sent[static_cast<std::size_t>(to)]++);
    } else if (to == me) {
      arrived[next_received[static_cast<std::size_t>(from)]++] = row;
    }
  });
}

template <class T>
static void dispatch(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  std::fill_n(output<T>(a, 0), a.op->elements * n, T(0));
  for (Index i = 0; i < r.tokens * r.top_k; ++i) {
    const Choice& choice = choices(a, 1)[r.listed(i / r.top_k) * r.top_k + i % r.top_k];
    if (choice.row < 0) continue;
    std::copy_n(input<T>(a, 0) + i / r.top_k * n, n, row_of(a, output<T>(a, 0), output<T>(a, 1), choice));
  }
}

template <class T>
static void dispatch_backward(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* dx = output<T>(a, 0);
  std::fill_n(dx, r.tokens * n, T(0));
  for (Index i = 0; i < r.tokens * r.top_k; ++i) {
    const Choice& choice = choices(a, 1)[r.listed(i / r.top_k) * r.top_k + i % r.top_k];
    if (choice.row < 0) continue;
    const T* row = row_of(a, input<T>(a, 0), input<T>(a, 2), choice);
    for (Index j = 0; j < n; ++j) dx[i / r.top_k * n + j] += row[j];
  }
}

template <class T>
static void combine(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* y = output<T>(a, 0);
  std::fill_n(y, r.tokens * n, T(0));
  for (Index t = 0; t < r.tokens; ++t) {
    const Choice* chosen = choices(a, 2) + r.listed(t) * r.top_k;
    for (Index c = 0; c < r.top_k; ++c) {
      if (chosen[c].row < 0) continue;
      const T gate = gate_of(input<T>(a, 1) + r.listed(t) * r.experts, chosen, r.top_k, c);
      const T* row = row_of(a, input<T>(a, 0), input<T>(a, 3), chosen[c]);
      for (Index j = 0; j < n; ++j) y[t * n + j] += gate * row[j];
    }
  }
}

template <class T>
static void combine_backward(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* d_gate = output<T>(a, 1);
  std::fill_n(output<T>(a, 0), a.op->elements * n, T(0));
  for (Index t = 0; t < r.tokens; ++t) {
    const T* dy = input<T>(a, 0) + t * n;
    const Choice* chosen = choices(a, 3) + r.listed(t) * r.top_k;
    for (Index c = 0; c < r.top_k; ++c) {
      T& d = d_gate[t * r.top_k + c] = 0;
      if (chosen[c].row < 0) continue;
      const T gate = gate_of(input<T>(a, 2) + r.listed(t) * r.experts, chosen, r.top_k, c);
      const T* row = row_of(a, input<T>(a, 1), input<T>(a, 4), chosen[c]);
      T* d_row = row_of(a, output<T>(a, 0), output<T>(a, 2), chosen[c]);
      for (Index j = 0; j < n; ++j) {
        d += dy[j] * row[j];
        d_row[j] = gate * dy[j];
      }
    }
  }
}

// With kSpill's table: what came from the ranks lies one behind the other.
static void place_rows(const KernelArguments& a) {
  const Spilled s(a);
  for (Index i = 0; i < s.count; ++i) std::memcpy(a.out[0] + s.rows[i] * s.bytes, a.in[0] + i * s.bytes, s.size());
}

static void pick_rows(const KernelArguments& a) {
  const Spilled s(a);
  for (Index i = 0; i < s.count; ++i) std::memcpy(a.out[0] + i * s.bytes, a.in[0] + s.rows[i] * s.bytes, s.size());
}

void add_mixtures(KernelTable& table) {
  table.add(program::OpKind::kRoute, route<float>, route<double>);
  table.add(program::OpKind::kRouteBackward, route_backward<float>, route_backward<double>);
  table.add(program::OpKind::kSpill, spill<float>, spill<double>);
  table.add(program::OpKind::kDispatch, dispatch<float>, dispatch<double>);
  table.add(program::OpKind::kDispatchBackward, dispatch_backward<float>, dispatch_backward<double>);
  table.add(program::OpKind::kCombine, combine<float>, combine<double>);
  table.add(program::OpKind::kCombineBackward, combine_backward<float>, combine_backward<double>);
  table.add_any(program::OpKind::kPlaceRows, place_rows);
  table.add_any(program::OpKind::kPickRows, pick_rows);
}

}  // namespace trivium::runtime::cpu
