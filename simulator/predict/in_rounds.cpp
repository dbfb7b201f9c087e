// A job simulated for as many of its micro-batches as it takes to see that they repeat themselves; the others are
// counted.
#include "simulator/predict/in_rounds.h"

#include <algorithm>
#include <utility>

#include "base/seconds.h"
#include "simulator/cost/supported.h"
#include "simulator/iteration/trace.h"
#include "simulator/memory/crowding.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

constexpr std::int64_t kLonger = 4;

/// A simulation of a few micro-batches, and how it repeats itself.
struct FewSimulated {
  std::optional<Prepared> prepared;  ///< in order but by readiness, not verified
  SimulationTrace simulated;
  std::int64_t period = 0;  ///< micro-batches; 0: none was found
  std::int64_t period_ps = 0;
};

/// Periods after which all that was sampled of so far came again, and how much later.
class Periods {
 public:
  Periods(const std::vector<std::int64_t>& periods, std::int64_t micro_batches, std::int64_t depth)
      : micro_batches_(micro_batches), depth_(depth) {
    for (const std::int64_t period : periods) left_.push_back({period, std::nullopt});
  }

  void add(const program::Role& role, const std::vector<Span>& spans) {
    std::erase_if(left_, [&](Period& p) {
      const std::int64_t last = micro_batches_ - depth_ - p.micro_batches;  // later ones see the end come
      if (last < 2 * depth_) return true;
      const auto shift = comes_again(role, spans, last - 2 * depth_, last, p.micro_batches);
      if (!shift || (p.ps && *p.ps != *shift)) return true;
      p.ps = shift;
      return false;
    });
  }

  bool none() const { return left_.empty(); }
  std::vector<std::int64_t> lengths() const {
    std::vector<std::int64_t> periods;
    for (const Period& p : left_) periods.push_back(p.micro_batches);
    return periods;
  }
  void note_in(FewSimulated& few) const {
    if (none()) return;
    few.period = left_.front().micro_batches;
    few.period_ps = left_.front().ps.value_or(0);
  }

 private:
  struct Period {
    std::int64_t micro_batches = 0;
    std::optional<std::int64_t> ps;
  };
  std::int64_t micro_batches_, depth_;
  std::vector<Period> left_;
};

/// What is simulated of few micro-batches.
enum class Until {
  kReady,     ///< by segments, each communication with its links to itself, in the order of readiness
  kRelaxed,   ///< and then in that order with relaxed segments
  kReplayed,  ///< and then as simulate() does it, for the time alone
  kFigures    ///< for all figures: what a period adds to them is seen from a second simulation without one
};

class InRounds {
 public:
  InRounds(const program::Job& job, const hardware::Cluster& cluster, const SimulationOptions& options,
           const SteadyState& rounds, bool fits, const std::stop_token& stop, Until until = Until::kFigures)
      : job_(job), cluster_(cluster), options_(options), rounds_(rounds), fits_(fits), stop_(stop), until_(until) {
    options_.most_spans = SimulationOptions::kMostSpans;  // whether all ranks repeat themselves
    worthwhile_ = until == Until::kFigures ? kWorthwhile : kWorthwhileOnce;
  }

  /// SimulationTrace as all of them would be, and the Program of few. Without a period where they do not repeat
  /// themselves, also later on: what runs ahead may take long to be as far ahead as it can be.
  base::Result<FewSimulated> few() {
    base::Result<FewSimulated> found = FewSimulated{};
    for (std::int64_t some = rounds_.enough(); found && found.value().period == 0; some *= kLonger) {
      if (rounds_.micro_batches < worthwhile_ * some) break;
      found = few_of(some);
    }
    return found;
  }

 private:
  base::Result<FewSimulated> few_of(std::int64_t count) {
    const std::int64_t unit = rounds_.unit, all = rounds_.micro_batches;
    count += (all - count) % unit;
    auto few = simulate_few(count, {unit, 2 * unit, 3 * unit, kMostUnits * unit});
    if (!few || few.value().period == 0) return few;
    const std::int64_t period = few.value().period;
    if (const std::int64_t left = (all - count) % period; left > 0) {
      count += left;
      few = simulate_few(count, {period});
      if (!few || few.value().period == 0) return few;
    }
    if (until_ != Until::kFigures) {
      few.value().simulated.makespan_ps += (all - count) / period * few.value().period_ps;
      return few;
    }
    const auto fewer = simulate_few(count - period, {});
    if (!fewer) return fewer.error();
    return lengthened(std::move(few).value(), fewer.value().simulated, (all - count) / period);
  }

  base::Result<FewSimulated> simulate_few(std::int64_t micro_batches, const std::vector<std::int64_t>& periods) {
    FewSimulated few;
    auto begun = prepare(with_micro_batches(job_, micro_batches), cluster_,
                         {.fits = fits_, .ordered = false, .verified = false}, stop_);
    if (!begun && is_of_few_only(begun.error())) return few;
    if (!begun) return begun.error();
    few.prepared = std::move(begun).value();
    const CostedProgram& costed = few.prepared->costed();
    const double times = static_cast<double>(rounds_.micro_batches) / static_cast<double>(micro_batches);
    if (too_long(costed, times)) return few;  // which is said of all of them
    base::Result<ListSchedule> ready_first = simulator::list_schedule(costed, Granularity::kSegment, stop_);
    if (!ready_first) return ready_first.error();
    const std::vector<program::Role>& roles = few.prepared->program().roles;
    Periods by_readiness(periods, micro_batches, rounds_.depth);
    for (std::size_t r = 0; r < roles.size(); ++r) by_readiness.add(roles[r], ready_first.value().stages[r]);
    if (by_readiness.none() && !periods.empty()) return few;
    if (until_ == Until::kReady) {
      few.simulated.makespan_ps = ready_first.value().makespan_ps;
      by_readiness.note_in(few);
      return few;
    }
    few.prepared = in_order_of(*std::exchange(few.prepared, std::nullopt), ready_first.value());
    Periods in_order(by_readiness.lengths(), micro_batches, rounds_.depth);
    if (until_ == Until::kRelaxed) {
      const base::Result<ListSchedule> relaxed = simulator::list_schedule(costed, Granularity::kRelaxedSegment, stop_);
      if (!relaxed) return relaxed.error();
      few.simulated.makespan_ps = relaxed.value().makespan_ps;
      for (std::size_t r = 0; r < roles.size(); ++r) in_order.add(roles[r], relaxed.value().stages[r]);
      in_order.note_in(few);
      return few;
    }
    std::int64_t sampled = 0;
    base::Result<SimulationTrace> simulated = trace_of(costed, options_, stop_, [&](const RankSpans& rank) {
      sampled += rank.stands_for;
      in_order.add(roles[static_cast<std::size_t>(few.prepared->program().role_index(rank.rank))], rank.spans);
    });
    if (!simulated) return simulated.error();
    few.simulated = std::move(simulated).value();
    if (sampled == few.prepared->program().mesh.size()) in_order.note_in(few);
    return few;
  }

  // A rule may refuse few micro-batches and accept all of them; their memory is the same.
  static bool is_of_few_only(const base::Error& why) {
    return why.kind == base::ErrorKind::kNoPlan && why.rule != kMemoryRule && why.rule != kHostMemoryRule;
  }

  // One more period takes as much more of everything as the last one did.
  static FewSimulated lengthened(FewSimulated few, const SimulationTrace& fewer, std::int64_t periods) {
    SimulationTrace& all = few.simulated;
    if (all.makespan_ps - fewer.makespan_ps != few.period_ps || all.sampled != fewer.sampled) {
      few.period = 0;
      return few;
    }
    all.makespan_ps += periods * few.period_ps;
    all.flows += periods * (all.flows - fewer.flows);
    for (std::size_t r = 0; r < all.sums.size(); ++r) {
      for (std::size_t p = 0; p < kParts; ++p) {
        all.sums[r][p] += static_cast<long double>(periods) * (all.sums[r][p] - fewer.sums[r][p]);
      }
    }
    return few;
  }

  const program::Job& job_;
  const hardware::Cluster& cluster_;
  SimulationOptions options_;
  const SteadyState& rounds_;
  bool fits_;
  const std::stop_token& stop_;
  Until until_;
  std::int64_t worthwhile_;
};

base::Result<std::optional<FewSimulated>> simulate_few(const program::Job& job, const hardware::Cluster& cluster,
                                                       const SimulationOptions& options, const SteadyState& rounds,
                                                       bool fits, const std::stop_token& stop, Until until) {
  auto few = InRounds(job, cluster, options, rounds, fits, stop, until).few();
  if (!few) return few.error();
  if (few.value().period == 0) return std::optional<FewSimulated>();
  return std::optional(std::move(few).value());
}

base::Result<std::optional<std::int64_t>> makespan_in_rounds(const program::Job& job, const hardware::Cluster& cluster,
                                                             bool fits, Until until) {
  const auto rounds = rounds_to_simulate(job, cluster, kWorthwhileOnce);
  if (!rounds) return std::optional<std::int64_t>();
  const auto few = simulate_few(job, cluster, {}, *rounds, fits, {}, until);
  if (!few) return few.error();
  if (!few.value()) return std::optional<std::int64_t>();
  return std::optional(few.value()->simulated.makespan_ps);
}

}  // namespace

std::optional<SteadyState> rounds_to_simulate(const program::Job& job, const hardware::Cluster& cluster,
                                              std::int64_t worthwhile) {
  if (program::check(job)) return std::nullopt;  // fewer might pass
  return shares_cores(job.plan, cluster) ? std::nullopt : rounds_of(job, worthwhile);
}

base::Result<std::optional<std::int64_t>> list_schedule_makespan_in_rounds(const program::Job& job,
                                                                           const hardware::Cluster& cluster,
                                                                           bool fits) {
  return makespan_in_rounds(job, cluster, fits, Until::kReady);
}

base::Result<std::optional<std::int64_t>> relaxed_makespan_in_rounds(const program::Job& job,
                                                                     const hardware::Cluster& cluster, bool fits) {
  return makespan_in_rounds(job, cluster, fits, Until::kRelaxed);
}

base::Result<std::optional<std::int64_t>> iteration_in_rounds(const program::Job& job, const hardware::Cluster& cluster,
                                                              const SimulationOptions& options, bool fits,
                                                              const std::stop_token& stop) {
  const auto rounds = rounds_to_simulate(job, cluster, kWorthwhileOnce);
  if (!rounds) return std::optional<std::int64_t>();
  const auto few = simulate_few(job, cluster, options, *rounds, fits, stop, Until::kReplayed);
  if (!few) return few.error();
  if (!few.value()) return std::optional<std::int64_t>();
  const Prepared& simulated = *few.value()->prepared;
  return std::optional(
      iteration_of_makespan(few.value()->simulated.makespan_ps, simulated.program(), simulated.memory()));
}

base::Result<std::optional<SimulatedInRounds>> simulate_in_rounds(const program::Job& job,
                                                                  const hardware::Cluster& cluster,
                                                                  const SimulationOptions& options, bool fits,
                                                                  const std::stop_token& stop) {
  using Nothing = std::optional<SimulatedInRounds>;
  const auto rounds = rounds_to_simulate(job, cluster);
  const bool all_alike = !options.timeline && !options.every_rank && options.disturbance.none();
  if (!rounds || !all_alike) return Nothing();
  auto few = simulate_few(job, cluster, options, *rounds, fits, stop, Until::kFigures);
  if (!few) return few.error();
  if (!few.value()) return Nothing();
  SimulationTrace& trace = few.value()->simulated;
  Prepared prepared = *std::move(few.value()->prepared);
  const bool shared = trace.flows > 0;
  Simulation result = figures_of(job, prepared.program(), prepared.memory(), cluster, std::move(trace));
  if (options.unshared && options.shared_links && shared) {
    SimulationOptions apart = options;
    apart.shared_links = false;
    const auto unshared = simulate_few(job, cluster, apart, *rounds, fits, stop, Until::kReplayed);
    if (!unshared) return unshared.error();
    if (!unshared.value()) return Nothing();
    const std::int64_t ps =
        iteration_of_makespan(unshared.value()->simulated.makespan_ps, prepared.program(), prepared.memory());
    if (ps < result.iteration_ps) result.unshared_s = static_cast<double>(ps) * base::kSecondsPerPs;
  }
  return Nothing(SimulatedInRounds{std::move(result), std::move(prepared)});
}

}  // namespace trivium::simulator
