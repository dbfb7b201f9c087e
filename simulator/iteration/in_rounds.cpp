// A job simulated for as many of its micro-batches as it takes to see that they repeat themselves; the others are
// counted.
#include "simulator/iteration/in_rounds.h"

#include <algorithm>
#include <memory>

#include "base/seconds.h"
#include "simulator/cost/supported.h"
#include "simulator/iteration/trace.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

constexpr std::int64_t kLonger = 4;

/// A simulation of a few micro-batches, and how it repeats itself.
struct FewSimulated {
  std::unique_ptr<program::Program> program;
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
           const SteadyState& rounds, const std::stop_token& stop, Until until = Until::kFigures)
      : job_(job), cluster_(cluster), options_(options), rounds_(rounds), stop_(stop), until_(until) {
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
    auto lowered = program::lower(with_micro_batches(job_, micro_batches));
    if (std::holds_alternative<program::Infeasible>(lowered)) return few;
    few.program = std::make_unique<program::Program>(std::get<program::Program>(std::move(lowered)));
    const CostedProgram costed = cost(*few.program, cluster_);
    const double times = static_cast<double>(rounds_.micro_batches) / static_cast<double>(micro_batches);
    if (too_long(costed, times)) return few;  // which is said of all of them
    base::Result<ListSchedule> ready_first = simulator::list_schedule(costed, Granularity::kSegment, stop_);
    if (!ready_first) return ready_first.error();
    const std::vector<program::Role>& roles = few.program->roles;
    Periods by_readiness(periods, micro_batches, rounds_.depth);
    for (std::size_t r = 0; r < roles.size(); ++r) by_readiness.add(roles[r], ready_first.value().stages[r]);
    if (by_readiness.none() && !periods.empty()) return few;
    if (until_ == Until::kReady) {
      few.simulated.makespan_ps = ready_first.value().makespan_ps;
      by_readiness.note_in(few);
      return few;
    }
    issue_in_order_of(*few.program, ready_first.value());
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
      in_order.add(roles[static_cast<std::size_t>(few.program->role_index(rank.rank))], rank.spans);
    });
    if (!simulated) return simulated.error();
    few.simulated = std::move(simulated).value();
    if (sampled == few.program->mesh.size()) in_order.note_in(few);
    return few;
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
  const std::stop_token& stop_;
  Until until_;
  std::int64_t worthwhile_;
};

std::optional<std::int64_t> makespan_in_rounds(const program::Job& job, const hardware::Cluster& cluster, Until until) {
  const auto rounds = rounds_to_simulate(job, cluster, kWorthwhileOnce);
  if (!rounds) return std::nullopt;
  const auto few = InRounds(job, cluster, {}, *rounds, {}, until).few();
  if (!few || few.value().period == 0) return std::nullopt;
  return few.value().simulated.makespan_ps;
}

}  // namespace

std::optional<SteadyState> rounds_to_simulate(const program::Job& job, const hardware::Cluster& cluster,
                                              std::int64_t worthwhile) {
  if (program::check(job)) return std::nullopt;  // fewer might pass
  return shares_cores(job.plan, cluster) ? std::nullopt : rounds_of(job, worthwhile);
}

std::optional<std::int64_t> list_schedule_makespan_in_rounds(const program::Job& job,
                                                             const hardware::Cluster& cluster) {
  return makespan_in_rounds(job, cluster, Until::kReady);
}

std::optional<std::int64_t> relaxed_makespan_in_rounds(const program::Job& job, const hardware::Cluster& cluster) {
  return makespan_in_rounds(job, cluster, Until::kRelaxed);
}

base::Result<std::optional<std::int64_t>> iteration_in_rounds(const program::Job& job, const hardware::Cluster& cluster,
                                                              const SimulationOptions& options,
                                                              const std::stop_token& stop) {
  const auto rounds = rounds_to_simulate(job, cluster, kWorthwhileOnce);
  if (!rounds) return std::optional<std::int64_t>();
  if (stop.stop_requested()) return cancelled();
  if (const auto no = unsupported_by(job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  const auto few = InRounds(job, cluster, options, *rounds, stop, Until::kReplayed).few();
  if (!few) return few.error();
  if (few.value().period == 0) return std::optional<std::int64_t>();
  return std::optional(few.value().simulated.makespan_ps);
}

base::Result<std::optional<Simulation>> simulate_in_rounds(const program::Job& job, const hardware::Cluster& cluster,
                                                           const SimulationOptions& options,
                                                           const std::stop_token& stop) {
  const auto rounds = rounds_to_simulate(job, cluster);
  const bool all_alike = !options.timeline && !options.every_rank && options.disturbance.none();
  if (!rounds || !all_alike) return std::optional<Simulation>();
  if (stop.stop_requested()) return cancelled();
  if (const auto no = unsupported_by(job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  auto few = InRounds(job, cluster, options, *rounds, stop).few();
  if (!few) return few.error();
  if (few.value().period == 0) return std::optional<Simulation>();
  const bool shared = few.value().simulated.flows > 0;
  const program::Program& shown = *few.value().program;
  std::optional<Simulation> result =
      figures_of(job, shown, memory_of(shown, cluster), cluster, std::move(few.value().simulated));
  if (options.unshared && options.shared_links && shared) {
    SimulationOptions apart = options;
    apart.shared_links = false;
    const auto unshared = InRounds(job, cluster, apart, *rounds, stop).few();
    if (!unshared) return unshared.error();
    if (unshared.value().period == 0) return std::optional<Simulation>();
    const std::int64_t ps = unshared.value().simulated.makespan_ps;
    if (ps < result->iteration_ps) result->unshared_s = static_cast<double>(ps) * base::kSecondsPerPs;
  }
  return result;
}

}  // namespace trivium::simulator
