// Routing of tokens to experts: who goes where, the gather and scatter of rows, and their gradients
// (program/lower/mixture.cpp has the whole layer). Everything is counted per sample, so results do not depend on how
// samples are split over ranks. Ranks of a context group all list the choices of the whole samples; the tokens that
// they send, receive and differentiate are their own.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "program/ir/context.h"
#include "program/ir/expert_rows.h"
#include "program/ir/op_views.h"
#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

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
        top_k(program::experts_of_a_token(*a.op)),
        sequence(a.op->sequence),
        local(sequence / a.context_ranks),
        first(a.op->token_sharded ? a.tensor_rank * tokens : 0),
        context_rank(a.context_rank),
        context_ranks(a.context_ranks),
        method(a.context_method) {}

  /// The sample of this rank's token, and where it stands in the list of all tokens of the samples, one after the
  /// other.
  Index sample(Index token) const { return (first + token) / local; }
  Index listed(Index token) const {
    return sample(token) * sequence +
           program::context_position(method, (first + token) % local, sequence, context_rank, context_ranks);
  }

  Index tokens, experts, top_k, sequence, local;
  Index first;  ///< of this tensor rank's tokens among those of its group, where ops have its own alone
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

template <class T>
T sum_of(const T* scores, const Choice* chosen, Index top_k) {
  T sum = 0;
  for (Index i = 0; i < top_k; ++i) sum += scores[chosen[i].expert];
  return sum;
}

/// Gate of a token's choice: its score, or its share among the chosen (Mixtral), times a factor.
template <class T>
T gate_of(const KernelArguments& a, const T* scores, const Choice* chosen, Index c) {
  const T mine = scores[chosen[c].expert] * static_cast<T>(a.routing->scale);
  return a.routing->normalised ? mine / sum_of(scores, chosen, program::experts_of_a_token(*a.op)) : mine;
}

/// Gate number `c` of the token that is listed there, by its scores in an input; 1 where that is none.
template <class T>
T gate_at(const KernelArguments& a, std::size_t scores, Index listed, const Choice* chosen, Index c) {
  if (a.in[scores] == nullptr) return T(1);
  return gate_of(a, input<T>(a, scores) + listed * a.op->experts, chosen + listed * a.op->k, c);
}

/// Share of a sample's choices that fell on each expert, whether it had room or not.
std::vector<double> shares(const Routing& r, const Choice* chosen) {
  std::vector<double> share(static_cast<std::size_t>(r.experts), 0.0);
  const double each = 1.0 / static_cast<double>(r.sequence * r.top_k);
  for (Index i = 0; i < r.sequence * r.top_k; ++i) share[static_cast<std::size_t>(chosen[i].expert)] += each;
  return share;
}

/// Element of a parameter, which may have 16 bits where the router has 32.
template <class T>
T parameter_of(const KernelArguments& a, std::size_t operand, Index i) {
  if (a.in[operand] == nullptr) return 0;
  const program::DType type =
      a.kind == nullptr ? a.op->dtype : a.kind->buffers[static_cast<std::size_t>(a.op->in[operand])].dtype;
  if (!program::is_half(type)) return input<T>(a, operand)[i];
  const std::uint16_t half = input<std::uint16_t>(a, operand)[i];
  return static_cast<T>(type == program::DType::kBf16 ? reduction::float_of_bf16(half)
                                                      : reduction::float_of_fp16(half));
}

/// The first `count` of `order` become the numbers of the largest values; among equals the smaller number is first.
template <class T>
void best_first(const std::vector<T>& values, std::vector<std::int32_t>& order, Index count) {
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t x, std::int32_t y) {
    const T vx = values[static_cast<std::size_t>(x)], vy = values[static_cast<std::size_t>(y)];
    return vx != vy ? vx > vy : x < y;
  });
}

/// Takes experts of all but the best groups out of the choice.
template <class T>
void leave_best_groups(const program::Routing& routing, std::vector<T>& values) {
  const auto groups = static_cast<std::size_t>(routing.groups);
  const std::size_t size = values.size() / groups;
  std::vector<T> worth(groups), best;
  std::vector<std::int32_t> order(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(g * size);
    best.assign(first, first + static_cast<std::ptrdiff_t>(size));
    std::partial_sort(best.begin(), best.begin() + routing.group_best, best.end(), std::greater<T>());
    worth[g] = std::accumulate(best.begin(), best.begin() + routing.group_best, T(0));
  }
  best_first(worth, order, routing.top_groups);
  std::vector<bool> taken(groups);
  for (Index i = 0; i < routing.top_groups; ++i)
    taken[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (!taken[e / size]) values[e] = -std::numeric_limits<T>::infinity();
  }
}

/// What one sample's balance loss E sum_e f_e P_e counts in the loss of the step.
double balance_weight(const KernelArguments& a, const Routing& r) {
  return a.routing->balance_loss * a.values->loss_weight * static_cast<double>(r.sequence * r.experts);
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
void scores_of(const KernelArguments& a, const T* logits, T* out, Index n) {
  if (a.routing->sigmoid) {
    for (Index e = 0; e < n; ++e) out[e] = T(1) / (T(1) + std::exp(-logits[e]));
    return;
  }
  const T most = *std::max_element(logits, logits + n);
  T sum = 0;
  for (Index e = 0; e < n; ++e) sum += out[e] = std::exp(logits[e] - most);
  for (Index e = 0; e < n; ++e) out[e] /= sum;
}

/// By which the balance loss divides a token's scores: they add up to 1 in a softmax (DeepSeek-V3: arXiv 2412.19437,
/// eq. 19, divides sigmoids likewise).
template <class T>
T total_of(const KernelArguments& a, const T* scores, Index n) {
  return a.routing->sigmoid ? std::accumulate(scores, scores + n, T(0)) : T(1);
}

/// From gradients of shares to those of what was divided by its sum.
template <class T>
void share_backward(const T* scores, std::vector<T>& d) {
  T total = 0, mean = 0;
  for (std::size_t e = 0; e < d.size(); ++e) total += scores[e], mean += d[e] * scores[e];
  for (T& each : d) each = (each - mean / total) / total;
}

}  // namespace

// Experts take a sample's first choices in the order of the tokens, then second choices (Lepikhin et al. 2020, GShard,
// arXiv 2006.16668, algorithm 1, without random dispatch). Balance loss: Fedus et al. 2021, eq. 4, per sample and mean.
template <class T>
static void route(const KernelArguments& a) {
  const Routing r(a);
  const Index samples = r.tokens / r.sequence, capacity = a.op->elements;
  const program::ExpertRows rows{capacity, samples, r.context_ranks, a.tensor_ranks};
  T* scores = output<T>(a, 0);
  auto* chosen = reinterpret_cast<Choice*>(a.out[1]);
  std::vector<std::int32_t> order(static_cast<std::size_t>(r.experts));
  std::vector<T> values(order.size());
  for (Index t = 0; t < r.tokens; ++t) {
    T* own = scores + t * r.experts;
    scores_of(a, input<T>(a, 0) + t * r.experts, own, r.experts);
    for (Index e = 0; e < r.experts; ++e) values[static_cast<std::size_t>(e)] = own[e] + parameter_of<T>(a, 1, e);
    if (a.routing->groups > 1) leave_best_groups(*a.routing, values);
    best_first(values, order, r.top_k);
    for (Index c = 0; c < r.top_k; ++c) chosen[t * r.top_k + c] = {order[static_cast<std::size_t>(c)], -1};
  }
  for (Index sample = 0; sample < samples; ++sample) {
    const Index first = sample * r.sequence;
    if (!a.routing->dropless) take_rows(r, rows, a.tensor_rank, sample, chosen + first * r.top_k);
    if (a.out[2] == nullptr || r.context_rank != 0) continue;  // one of the ranks that share the sample counts it
    const std::vector<double> share = shares(r, chosen + first * r.top_k);
    double balance = 0;
    for (Index e = 0; e < r.experts; ++e) {
      double mean = 0;
      for (Index t = first; t < first + r.sequence; ++t) {
        const T* own = scores + t * r.experts;
        mean += static_cast<double>(own[e] / total_of(a, own, r.experts));
      }
      balance += share[static_cast<std::size_t>(e)] * mean / static_cast<double>(r.sequence);
    }
    *output<double>(a, 2) += balance_weight(a, r) * balance;
  }
}

// Gates reach the logits through the softmax or the sigmoids; the balance loss, whose shares are constants, counts once
// for a token: gradients of the router are summed over the tensor group, whose ranks may have the same tokens.
template <class T>
static void route_backward(const KernelArguments& a) {
  const Routing r(a);
  const bool counts = a.op->token_sharded || a.tensor_rank == 0;
  const double balance = counts ? balance_weight(a, r) * a.values->loss_scale / static_cast<double>(r.sequence) : 0;
  const bool sigmoid = a.routing->sigmoid;
  const T scale = static_cast<T>(a.routing->scale);
  std::vector<T> ds(static_cast<std::size_t>(r.experts));
  std::vector<double> share;
  for (Index t = 0; t < r.tokens; ++t) {
    const T* s = input<T>(a, 0) + r.listed(t) * r.experts;
    const Choice* chosen = choices(a, 1) + r.listed(t) * r.top_k;
    const T* dgate = input<T>(a, 2) + t * r.top_k;
    if (t == 0 || r.sample(t) != r.sample(t - 1)) share = shares(r, choices(a, 1) + r.sample(t) * r.sequence * r.top_k);
    for (std::size_t e = 0; e < ds.size(); ++e) ds[e] = static_cast<T>(balance * share[e]);
    if (sigmoid) share_backward(s, ds);
    T sum = 1, mean = 0;
    if (a.routing->normalised) {
      sum = sum_of(s, chosen, r.top_k);
      for (Index c = 0; c < r.top_k; ++c) mean += dgate[c] * s[chosen[c].expert] / sum;
    }
    for (Index c = 0; c < r.top_k; ++c)
      ds[static_cast<std::size_t>(chosen[c].expert)] += scale * (dgate[c] - mean) / sum;
    T inner = 0;
    for (Index e = 0; e < r.experts; ++e) inner += s[e] * ds[static_cast<std::size_t>(e)];
    T* dlogits = output<T>(a, 0) + t * r.experts;
    for (Index e = 0; e < r.experts; ++e) {
      const T d = ds[static_cast<std::size_t>(e)];
      dlogits[e] = sigmoid ? d * s[e] * (1 - s[e]) : s[e] * (d - inner);
    }
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

// Rows to one rank of the expert group are dealt out over the tensor ranks, so that each sends as many but for one, or
// where these have tokens of their own alone they send those of theirs; what one sends there lies by expert.
static void count_rows(const KernelArguments& a) {
  Routing r(a);
  const bool own_alone = a.op->token_sharded;
  const Index local = a.op->n, ranks = r.experts / local, parts = a.op->parts, room = a.op->elements / ranks;
  const Index me = a.tensor_rank, first = me / parts * parts;  // counts are those of `parts` senders, from this one on
  auto* chosen = reinterpret_cast<Choice*>(a.out[0]);
  auto* counts = output<std::int32_t>(a, 1);
  const Index own_tokens = r.tokens / r.context_ranks / (own_alone ? a.tensor_ranks : 1);
  const auto for_each = [&](auto visit) {  // choice, rank of the expert group, tensor rank that sends
    std::vector<Index> dealt(static_cast<std::size_t>(ranks), 0);
    for (Index sender = first; sender < first + (own_alone ? parts : 1); ++sender) {
      r.first = own_alone ? sender * own_tokens : 0;
      for (Index i = 0; i < own_tokens * r.top_k; ++i) {
        Choice& choice = chosen[r.listed(i / r.top_k) * r.top_k + i % r.top_k];
        const Index to = choice.expert / local;
        visit(choice, to, own_alone ? sender : dealt[static_cast<std::size_t>(to)]++ % a.tensor_ranks);
      }
    }
  };
  std::fill_n(counts, r.experts * parts, 0);
  for_each([&](const Choice& choice, Index to, Index from) {
    if (from < first || from >= first + parts) return;
    ++counts[(to * parts + from - first) * local + choice.expert % local];
  });
  std::vector<Index> next(static_cast<std::size_t>(r.experts));
  for (Index to = 0; to < ranks; ++to) {
    const std::int32_t* own = counts + (to * parts + me - first) * local;
    std::exclusive_scan(own, own + local, next.begin() + to * local, to * room);
    const Index rows = std::accumulate(own, own + local, Index{0});
    if (rows <= room) continue;
    throw base::Failure(
        base::ErrorKind::kRuntime,
        fmt::format("{} rows for the experts of one rank, which has room for {}: choices lean more than "
                    "the model's experts.imbalance says; give it more, or keep experts on one rank "
                    "(--expert 1), which needs none",
                    rows, room));
  }
  for_each([&](Choice& choice, Index, Index from) {
    choice.row = -1;
    if (from == me) choice.row = static_cast<std::int32_t>(next[static_cast<std::size_t>(choice.expert)]++);
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
    const T* x = input<T>(a, 0) + i / r.top_k * n;
    T* row = row_of(a, output<T>(a, 0), output<T>(a, 1), choice);
    const T gate = gate_at<T>(a, 2, r.listed(i / r.top_k), choices(a, 1), i % r.top_k);
    for (Index j = 0; j < n; ++j) row[j] = gate * x[j];
  }
}

template <class T>
static void dispatch_backward(const KernelArguments& a) {
  const Routing r(a);
  const Index n = a.op->n;
  T* dx = output<T>(a, 0);
  T* d_gate = output<T>(a, 1);
  std::fill_n(dx, r.tokens * n, T(0));
  if (d_gate != nullptr) std::fill_n(d_gate, r.tokens * r.top_k, T(0));
  for (Index i = 0; i < r.tokens * r.top_k; ++i) {
    const Choice& choice = choices(a, 1)[r.listed(i / r.top_k) * r.top_k + i % r.top_k];
    if (choice.row < 0) continue;
    const T* row = row_of(a, input<T>(a, 0), input<T>(a, 2), choice);
    const T gate = gate_at<T>(a, 4, r.listed(i / r.top_k), choices(a, 1), i % r.top_k);
    for (Index j = 0; j < n; ++j) dx[i / r.top_k * n + j] += gate * row[j];
    if (d_gate == nullptr) continue;
    for (Index j = 0; j < n; ++j) d_gate[i] += input<T>(a, 3)[i / r.top_k * n + j] * row[j];
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
      const T gate = gate_at<T>(a, 1, r.listed(t), choices(a, 2), c);
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
      if (d_gate != nullptr) d_gate[t * r.top_k + c] = 0;
      if (chosen[c].row < 0) continue;
      const T gate = gate_at<T>(a, 2, r.listed(t), choices(a, 3), c);
      const T* row = row_of(a, input<T>(a, 1), input<T>(a, 4), chosen[c]);
      T* d_row = row_of(a, output<T>(a, 0), output<T>(a, 2), chosen[c]);
      T d = 0;
      for (Index j = 0; j < n; ++j) {
        d += dy[j] * row[j];
        d_row[j] = gate * dy[j];
      }
      if (d_gate != nullptr) d_gate[t * r.top_k + c] = d;
    }
  }
}

// With kSpill's table: rows from the ranks are stored one rank after another.
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
  table.add(program::OpKind::kCountRows, count_rows, count_rows);
  table.add(program::OpKind::kDispatch, dispatch<float>, dispatch<double>);
  table.add(program::OpKind::kDispatchBackward, dispatch_backward<float>, dispatch_backward<double>);
  table.add(program::OpKind::kCombine, combine<float>, combine<double>);
  table.add(program::OpKind::kCombineBackward, combine_backward<float>, combine_backward<double>);
  table.add_any(program::OpKind::kPlaceRows, place_rows);
  table.add_any(program::OpKind::kPickRows, pick_rows);
}

}  // namespace trivium::runtime::cpu
