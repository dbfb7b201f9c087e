#include "calibration/foreign/rank_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/wording.h"

namespace trivium::calibration::foreign {
namespace {

constexpr double kWorthNaming = 0.04;  // of the iteration
constexpr double kRepeats = 0.6;       // of the iterations show it
constexpr double kSlowOnCores = 1.3;   // the same work against others': hosts of cores are shared and noisy
constexpr double kSlowOnGpus = 1.07;
constexpr double kFelt = 0.3;  // of what it loses, others wait for it

using PerStep = std::vector<double>;

PerStep gap_seconds(const Side& side, const std::function<bool(const Gap&)>& counts) {
  PerStep seconds(side.times->steps.size());
  for (const Gap& gap : side.times->long_gaps) {
    if (counts(gap)) seconds[static_cast<std::size_t>(gap.step)] += gap.span.seconds();
  }
  return seconds;
}

double longest_within(const Side& side, int step) {
  double longest = 0;
  for (const Gap& gap : side.times->long_gaps) {
    if (gap.step == step && gap.place == Gap::Place::kWithin) longest = std::max(longest, gap.span.seconds());
  }
  return longest;
}

PerStep longest_gaps(const Side& side) {
  PerStep longest;
  for (std::size_t i = 0; i < side.times->steps.size(); ++i)
    longest.push_back(longest_within(side, static_cast<int>(i)));
  return longest;
}

/// The share of iterations that reach `least`.
double share_of_steps(const PerStep& values, double least) {
  if (values.empty()) return 0;
  const auto reached = std::ranges::count_if(values, [&](double value) { return value >= least; });
  return static_cast<double>(reached) / static_cast<double>(values.size());
}

double median_over(const std::vector<const Side*>& sides, const std::function<double(const Side&)>& value) {
  std::vector<double> values;
  for (const Side* side : sides) values.push_back(value(*side));
  return median_of(std::move(values));
}

bool is_loading(const Gap& gap) {
  return gap.place == Gap::Place::kBeforeForward || gap.range.find("DataLoader") != std::string::npos;
}

/// Everything that one rank loses against the others.
class RankCauses {
 public:
  RankCauses(const Sides& sides, const Side& side)
      : sides_(sides), side_(side), others_(sides.others_of(side)), alike_(!sides.peers_of(side).empty()) {}

  std::vector<Finding> findings() {
    if (others_.empty()) return {};
    waited_ = waited_for(sides_, side_);
    compare_pace();
    stalled_loader();
    garbage_collection();
    const bool tokens = alike_ && more_tokens();
    if (!tokens) more_work();
    late_host();
    if (!tokens) slow_pace();
    return std::move(findings_);
  }

 private:
  void more_work() {
    if (sides_.exchanges_experts) {
      more_experts();
    } else if (alike_) {
      more_calls();
    } else {
      untrained_work();
    }
  }

  bool has_more_work() const {
    return std::ranges::any_of(findings_, [](const Finding& finding) {
      return finding.cause == "other_work" || finding.cause == "experts" || finding.cause == "tokens";
    });
  }

  void find(const char* cause, double seconds, const std::string& why, std::string remedy, double repeats,
            std::vector<TimeSpan> spans) {
    if (seconds < kWorthNaming * side_.iteration_s || waited_ < kFelt * seconds) return;
    Finding finding;
    finding.what = fmt::format("rank {} is slow: rank {} waits {} for it at collectives; {}", side_.run->rank,
                               waiting_rank(), time_text(waited_), why);
    finding.rank = side_.run->rank;
    finding.seconds = seconds;
    finding.remedy = std::move(remedy);
    finding.cause = cause;
    finding.confidence = std::clamp(0.4 + 0.6 * repeats * std::min(1.0, waited_ / seconds), 0.0, 0.99);
    finding.spans = seen_at(side_, spans);
    findings_.push_back(std::move(finding));
  }

  int waiting_rank() const {
    const auto waits = [&](const Side& other) {
      const auto wait = other.times->waits_s.find(side_.run->rank);
      return wait == other.times->waits_s.end() ? 0.0 : wait->second;
    };
    const Side* most = nullptr;
    for (const Side& other : sides_.ranks) {
      if (&other != &side_ && (most == nullptr || waits(other) > waits(*most))) most = &other;
    }
    return most->run->rank;
  }

  std::vector<TimeSpan> spans_of(const std::function<bool(const Gap&)>& counts) const {
    std::vector<Gap> gaps;
    for (const Gap& gap : side_.times->long_gaps) {
      if (counts(gap)) gaps.push_back(gap);
    }
    std::ranges::stable_sort(gaps, [](const Gap& a, const Gap& b) { return a.span.seconds() > b.span.seconds(); });
    std::vector<TimeSpan> spans;
    for (const Gap& gap : gaps) spans.push_back(gap.span);
    return spans;
  }

  void stalled_loader() {
    const PerStep own = gap_seconds(side_, is_loading);
    const double typical =
        median_over(others_, [](const Side& other) { return median_of(gap_seconds(other, is_loading)); });
    const double more = median_of(own) - typical, repeats = share_of_steps(own, typical + more / 2);
    if (repeats < kRepeats) return;
    find("loader", more, fmt::format("it has nothing to run for {} longer, before the forward", time_text(more)),
         "load data ahead on that rank: more workers, prefetching, a faster file system", repeats,
         spans_of(is_loading));
  }

  void garbage_collection() {
    const PerStep own = longest_gaps(side_);
    const double typical = median_over(others_, [](const Side& other) { return median_of(longest_gaps(other)); });
    const double more = median_of(own) - typical, repeats = share_of_steps(own, typical + more / 2);
    const auto within = [](const Gap& gap) { return gap.place == Gap::Place::kWithin; };
    const double all = median_of(gap_seconds(side_, within)) -
                       median_over(others_, [&](const Side& other) { return median_of(gap_seconds(other, within)); });
    if (repeats < kRepeats || more < 0.5 * all) return;
    stopped_ = more;
    find("garbage_collection", more,
         fmt::format("it has nothing to run for {} longer, at one stretch between operators: garbage collection or "
                     "other Python code",
                     time_text(more)),
         "collect garbage at one time on all ranks (gc.disable, gc.collect every N steps); see what runs there",
         repeats, spans_of(within));
  }

  static PerStep host_seconds(const Side& side) {
    const PerStep loading = gap_seconds(side, is_loading);
    PerStep seconds;
    for (std::size_t i = 0; i < side.times->steps.size(); ++i) {
      seconds.push_back(side.times->steps[i].host_s + side.times->steps[i].gap_s - loading[i]);
    }
    return seconds;
  }

  void late_host() {
    const PerStep own = host_seconds(side_);
    const double typical = median_over(others_, [](const Side& other) { return median_of(host_seconds(other)); });
    const double more = median_of(own) - typical - stopped_, repeats = share_of_steps(own, typical + more / 2);
    if (repeats < kRepeats || more < typical * (alike_ ? 0.5 : 1.5) || more < 0.06 * side_.iteration_s) return;
    // More operators have more gaps between them, and a process that is slow in all it does is slow there, too.
    if (has_more_work()) return;
    constexpr double kAsSlow = 3;
    if (pace_.is_slow && more < typical * (kAsSlow * pace_.ratio - 1)) {
      pace_.between_s = more;
      return;
    }
    find("host", more, fmt::format("its host takes {} longer between operators, in many gaps", time_text(more)),
         "look at that rank's host: Python hooks, logging, other processes, clocks of its cores", repeats,
         spans_of([](const Gap& gap) { return !is_loading(gap); }));
  }

  bool more_tokens() {
    const double typical = median_over(others_, [](const Side& other) { return other.tokens; });
    if (typical <= 0 || side_.tokens < 1.1 * typical) return false;
    const double seconds = side_.step_median(&StepTimes::compute_s) * (1 - typical / side_.tokens);
    find("tokens", seconds, fmt::format("it has {:.0f} tokens a step, the others {:.0f}", side_.tokens, typical),
         "give all ranks as many tokens: pack sequences, or balance batches by their tokens", 1, {});
    return true;
  }

  static double product_flops(const Side& side) {
    double flops = 0;
    for (const auto& [key, tally] : side.tally) {
      double count = 0;
      for (const double each : tally.counts) count += each;
      flops += 2 * tally.m * tally.n * tally.k * count;
    }
    return flops / static_cast<double>(std::max<std::size_t>(1, side.times->steps.size()));
  }

  void more_experts() {
    double sum = 0;
    for (const Side& other : sides_.ranks) sum += product_flops(other);
    const double mean = sum / static_cast<double>(sides_.ranks.size()), own = product_flops(side_);
    if (mean <= 0 || own < 1.15 * mean) return;
    double varying = 0;  // of operators whose shape no other rank has: they depend on what was sent here
    std::vector<TimeSpan> spans;
    for (const auto& [key, tally] : side_.tally) {
      if (std::ranges::any_of(others_, [&](const Side* other) { return other->tally.contains(key); })) continue;
      varying += median_of(tally.seconds);
      if (tally.m > 0) spans.insert(spans.end(), tally.first.begin(), tally.first.end());
    }
    const double theirs =
        median_over(others_, [](const Side& other) { return other.step_median(&StepTimes::compute_s); });
    const double seconds =
        std::max(0.0, (side_.step_median(&StepTimes::compute_s) - theirs) * static_cast<double>(others_.size()) /
                          static_cast<double>(others_.size() + 1));
    find("experts", seconds,
         fmt::format("its experts do {:.1f} times the work of a rank at the mean, {} in all", own / mean,
                     time_text(varying)),
         "balance experts: a larger balancing loss or bias, a capacity factor, another placement", 1, spans);
  }

  /// Operators that it runs more often than its peers, by count.
  void more_calls() {
    double more = 0;
    std::string what;
    double most = 0;
    std::vector<TimeSpan> spans;
    for (const auto& [key, tally] : side_.tally) {
      const double typical = median_over(others_, [&](const Side& other) {
        const auto found = other.tally.find(key);
        return found == other.tally.end() ? 0 : found->second.count();
      });
      const double count = tally.count();
      if (count <= typical) continue;
      const double seconds = median_of(tally.seconds) * (count - typical) / count;
      more += seconds;
      if (seconds <= most) continue;
      most = seconds;
      spans = tally.first;
      what = fmt::format("{} of it in {}{}", time_text(seconds), tally.op,
                         typical > 0 ? fmt::format(", which it runs {:.1f} times as often", count / typical)
                                     : ", which the others do not run");
    }
    find("other_work", more, fmt::format("it computes {} longer, {}", time_text(more), what),
         "give that rank no more work than the others", 1, spans);
  }

  /// Products of a forward whose gradients nobody computes, which no other stage has either.
  void untrained_work() {
    std::set<std::array<double, 3>> trained;
    const auto sizes = [](const Tally& tally) {
      std::array<double, 3> all{tally.m, tally.n, tally.k};
      std::ranges::sort(all);
      return all;
    };
    for (const Side& side : sides_.ranks) {
      for (const auto& [key, tally] : side.tally) {
        if (tally.backward && tally.m > 0) trained.insert(sizes(tally));
      }
    }
    if (trained.empty()) return;
    double more = 0;
    std::string dims;
    std::vector<TimeSpan> spans;
    std::set<std::string> outputs;
    for (const auto& [key, tally] : side_.tally) {
      if (tally.m <= 0 || tally.backward || trained.contains(sizes(tally))) continue;
      more += median_of(tally.seconds);
      dims = fmt::format("({:.0f}, {:.0f}) x ({:.0f}, {:.0f})", tally.m, tally.k, tally.k, tally.n);
      outputs.insert(fmt::format("[[{:.0f}, {:.0f}]", tally.m, tally.n));
      spans.insert(spans.end(), tally.first.begin(), tally.first.end());
    }
    for (const auto& [key, tally] : side_.tally) {
      const bool follows = tally.m <= 0 && std::ranges::any_of(outputs, [&](const std::string& output) {
                             return key.find(output) != std::string::npos;
                           });
      if (follows) more += median_of(tally.seconds);
    }
    find("other_work", more,
         fmt::format("it computes {} longer, in products {} that nothing is trained by", time_text(more), dims),
         "leave that work out of the step, or give every stage its share", 1, spans);
  }

  /// The same operators on the same shapes, call by call.
  void compare_pace() {
    double own = 0, theirs = 0, same = 0, most = 0;
    PerStep own_steps(side_.times->steps.size());
    for (const auto& [key, tally] : side_.tally) {
      std::vector<double> each;
      for (const Side* other : others_) {
        if (const auto found = other->tally.find(key); found != other->tally.end())
          each.push_back(found->second.each_s());
      }
      if (each.empty()) continue;
      const double count = tally.count(), typical = median_of(std::move(each));
      own += tally.each_s() * count;
      theirs += typical * count;
      for (std::size_t i = 0; i < own_steps.size(); ++i) own_steps[i] += tally.seconds[i];
      if (tally.each_s() > typical) same += tally.each_s() * count;
      const double lost = (tally.each_s() - typical) * count;
      if (lost > most) most = lost, pace_.spans = tally.first;
    }
    if (theirs <= 0) return;
    pace_.ratio = own / theirs;
    pace_.more_s = own - theirs;
    pace_.repeats = share_of_steps(own_steps, theirs * (1 + (pace_.ratio - 1) / 2));
    pace_.is_slow =
        pace_.ratio >= (sides_.on_cores ? kSlowOnCores : kSlowOnGpus) && same >= 0.7 * own && pace_.repeats >= kRepeats;
  }

  void slow_pace() {
    if (!pace_.is_slow) return;
    const double seconds = pace_.more_s + pace_.between_s;
    find("slow_clock", seconds,
         fmt::format("it computes {} longer: the same operators take {:.1f} times as long there", time_text(seconds),
                     pace_.ratio),
         "look at its clock, temperature, power and other processes", pace_.repeats, pace_.spans);
  }

  struct Pace {
    double ratio = 1;      ///< of the same operators' time to that of the others
    double more_s = 0;     ///< that they take longer in an iteration
    double between_s = 0;  ///< that the host takes longer between them, for the same reason
    double repeats = 0;    ///< share of the iterations that show it
    bool is_slow = false;
    std::vector<TimeSpan> spans;
  };

  const Sides& sides_;
  const Side& side_;
  std::vector<const Side*> others_;
  bool alike_;
  double waited_ = 0, stopped_ = 0;
  Pace pace_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> rank_causes(const Sides& sides) {
  std::vector<Finding> all;
  for (const Side& side : sides.ranks) {
    for (Finding& finding : RankCauses(sides, side).findings()) all.push_back(std::move(finding));
  }
  return all;
}

std::vector<Finding> shared_stalls(const Sides& sides) {
  double least = 0;
  for (const Side& side : sides.ranks) {
    const PerStep own = gap_seconds(side, is_loading);
    const double typical = share_of_steps(own, median_of(own) / 2) >= kRepeats ? median_of(own) : 0;
    least = &side == sides.ranks.data() ? typical : std::min(least, typical);
  }
  const Side& first = sides.ranks.front();
  if (least < kWorthNaming * first.iteration_s) return {};
  std::vector<TimeSpan> spans;
  for (const Gap& gap : first.times->long_gaps) {
    if (is_loading(gap)) spans.push_back(gap.span);
  }
  return {{fmt::format("nothing runs for {} before the forward, on every rank: the loader", time_text(least)),
           std::nullopt, least, "load data ahead (workers, pinned memory, prefetching)", "loader", 0.8,
           seen_at(first, spans)}};
}

}  // namespace trivium::calibration::foreign
