#include "calibration/foreign/rank_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "calibration/foreign/groups.h"
#include "calibration/measurements/statistics.h"

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;
using imports::KernelTrace;

std::vector<std::size_t> by_start(const KernelTrace& trace) {
  std::vector<std::size_t> order(trace.kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return trace.kernels[a].start_s < trace.kernels[b].start_s; });
  return order;
}

std::vector<TimeSpan> between(const std::vector<double>& cuts) {
  std::vector<TimeSpan> spans;
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] > cuts[i - 1]) spans.push_back({cuts[i - 1], cuts[i]});
  }
  return spans;
}

/// Ends of the runs of optimizer kernels; runs are parted by a product.
std::vector<double> optimizer_ends(const KernelTrace& trace, const std::vector<Match>& matches,
                                   const std::vector<std::size_t>& order) {
  std::vector<double> ends;
  bool open = false;
  for (const std::size_t i : order) {
    const Kernel& kernel = trace.kernels[i];
    if (matches[i].op == "adamw") {
      if (!open) ends.push_back(0);
      open = true;
      ends.back() = kernel.start_s + kernel.seconds;
    } else if (kernel.kind == imports::KernelClass::kProduct) {
      open = false;
    }
  }
  return ends;
}

/// Starts of the rarest kernel that comes three times or more.
std::vector<double> rarest_starts(const KernelTrace& trace, const std::vector<std::size_t>& order) {
  constexpr std::size_t kTimes = 3;
  std::map<std::int32_t, std::vector<double>> starts;
  for (const std::size_t i : order) starts[trace.kernels[i].name].push_back(trace.kernels[i].start_s);
  const std::vector<double>* rarest = nullptr;
  for (const auto& [name, times] : starts) {
    if (times.size() >= kTimes && (rarest == nullptr || times.size() < rarest->size())) rarest = &times;
  }
  return rarest == nullptr ? std::vector<double>() : *rarest;
}

/// Ranges of the trainer whose names differ in a number only and that follow each other: "iteration 3", "step#4".
std::vector<TimeSpan> steps_by_range(const KernelTrace& trace) {
  std::map<std::string, std::vector<TimeSpan>> families;
  double begin = 0, end = 0;
  for (const imports::Operator& op : trace.operators) {
    if (end == 0) begin = op.begin_s;
    begin = std::min(begin, op.begin_s), end = std::max(end, op.end_s);
    if (!op.is_range || op.is_collective) continue;
    std::string name = trace.name_of(op);
    const bool counts = std::ranges::any_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
    std::erase_if(name, [](unsigned char c) { return std::isdigit(c) != 0; });
    const bool step = name.find("step") != std::string::npos || name.find("iter") != std::string::npos ||
                      name.find("batch") != std::string::npos || name.find("Step") != std::string::npos;
    if ((counts || step) && name.find("Optimizer.") == std::string::npos)
      families[name].push_back({op.begin_s, op.end_s});
  }
  for (auto& [name, spans] : families) {
    std::ranges::sort(spans, {}, &TimeSpan::begin_s);
    double sum = 0;
    bool apart = spans.size() >= 2;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      sum += spans[i].seconds();
      if (i > 0 && spans[i].begin_s < spans[i - 1].end_s - 1e-6) apart = false;
    }
    constexpr double kMostOfTheTrace = 0.5;
    if (apart && sum > kMostOfTheTrace * (end - begin)) return spans;
  }
  return {};
}

using Instances = std::map<std::string, std::vector<std::size_t>>;  // by key, in order of start

Instances instances_of(const RankRun& run) {
  Instances instances;
  for (const std::size_t i : by_start(*run.trace)) {
    const Kernel& kernel = run.trace->kernels[i];
    if (run.matches[i].kind != Match::Kind::kCollective) continue;
    const int step = run.step_at(kernel.start_s);
    if (step < 0) continue;
    const std::string& op = run.matches[i].op;
    const imports::ProcessGroup* group = group_of(run, kernel);
    if (op == "send" || op == "recv") {
      const int peer = peer_of(group, kernel);
      if (peer < 0) continue;
      const bool sends = op == "send";
      instances[fmt::format("{} {}>{}", step, sends ? run.rank : peer, sends ? peer : run.rank)].push_back(i);
      continue;
    }
    const std::string members = group != nullptr && !group->ranks.empty()
                                    ? fmt::format("{}", fmt::join(group->ranks, ","))
                                    : fmt::format("{} of {}", kernel.group, kernel.ranks);
    // What ranks give and take in an exchange of experts' rows differs by rank.
    const double bytes = op == "all_to_all" ? 0 : kernel.bytes;
    instances[fmt::format("{} {} {} {:.0f}", step, op, members, bytes)].push_back(i);
  }
  return instances;
}

Rendezvous::Member member_of(const RankRun& run, std::size_t place, std::size_t kernel) {
  const Kernel& of = run.trace->kernels[kernel];
  return {place, kernel, of.start_s + run.shift_s, of.start_s + of.seconds + run.shift_s};
}

/// How much later the second member's clock tells the end than the first's, at the median; none without rendezvous.
std::optional<double> lag(const std::vector<Rendezvous>& rendezvous, std::size_t first, std::size_t second) {
  std::vector<double> lags;
  for (const Rendezvous& each : rendezvous) {
    const auto of = [&](std::size_t run) { return std::ranges::find(each.members, run, &Rendezvous::Member::run); };
    if (of(first) == each.members.end() || of(second) == each.members.end()) continue;
    lags.push_back(of(second)->end_s - of(first)->end_s);
  }
  if (lags.empty()) return std::nullopt;
  return median(std::move(lags));
}

}  // namespace

std::vector<TimeSpan> whole_steps(const KernelTrace& trace, const std::vector<Match>& matches) {
  if (!trace.marked.empty()) return trace.marked;
  if (std::vector<TimeSpan> ranges = steps_by_range(trace); !ranges.empty()) return ranges;
  const std::vector<std::size_t> order = by_start(trace);
  std::vector<double> cuts = optimizer_ends(trace, matches, order);
  if (cuts.size() < 2) cuts = rarest_starts(trace, order);
  return between(cuts);
}

int RankRun::step_at(double time_s) const {
  const auto behind = std::upper_bound(steps.begin(), steps.end(), time_s,
                                       [](double time, const TimeSpan& step) { return time < step.begin_s; });
  if (behind == steps.begin() || time_s >= std::prev(behind)->end_s) return -1;
  return static_cast<int>(std::prev(behind) - steps.begin());
}

double RankRun::mean_step_s() const {
  double sum = 0;
  for (const TimeSpan& step : steps) sum += step.seconds();
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

std::vector<Rendezvous> rendezvous_of(const std::vector<RankRun>& runs) {
  std::map<std::string, std::vector<std::pair<std::size_t, std::vector<std::size_t>>>> together;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (auto& [key, kernels] : instances_of(runs[r])) together[key].emplace_back(r, std::move(kernels));
  }
  std::vector<Rendezvous> rendezvous;
  for (const auto& [key, ranks] : together) {
    const std::size_t times = ranks.front().second.size();
    const bool same = std::ranges::all_of(ranks, [&](const auto& rank) { return rank.second.size() == times; });
    if (ranks.size() < 2 || !same) continue;
    for (std::size_t i = 0; i < times; ++i) {
      Rendezvous& each = rendezvous.emplace_back();
      each.op = runs[ranks.front().first].matches[ranks.front().second[i]].op;
      for (const auto& [run, kernels] : ranks) each.members.push_back(member_of(runs[run], run, kernels[i]));
    }
  }
  return rendezvous;
}

namespace {

/// Clocks of one host are one clock, and better than what collectives tell of it.
bool on_one_host(const std::vector<RankRun>& runs) {
  const std::string& host = runs.front().trace->host;
  return !host.empty() && std::ranges::all_of(runs, [&](const RankRun& run) {
    return run.trace->host == host && run.trace->base_s > 0;
  });
}

}  // namespace

void align(std::vector<RankRun>& runs) {
  if (runs.empty()) return;
  if (on_one_host(runs)) {
    for (RankRun& run : runs) run.shift_s = run.trace->base_s - runs.front().trace->base_s;
    return;
  }
  const std::vector<Rendezvous> rendezvous = rendezvous_of(runs);
  std::vector<bool> set(runs.size());
  set[0] = true;
  // Ranks may meet over others alone: stages and groups of replicas.
  for (bool more = true; more;) {
    more = false;
    for (std::size_t a = 0; a < runs.size(); ++a) {
      for (std::size_t b = 0; b < runs.size(); ++b) {
        if (!set[a] || set[b]) continue;
        const auto later = lag(rendezvous, a, b);
        if (!later) continue;
        runs[b].shift_s = runs[a].shift_s - *later;
        set[b] = more = true;
      }
    }
  }
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (set[i]) continue;
    const KernelTrace &first = *runs[0].trace, &own = *runs[i].trace;
    if (first.base_s > 0 && own.base_s > 0) {
      runs[i].shift_s = own.base_s - first.base_s;
    } else if (!runs[0].steps.empty() && !runs[i].steps.empty()) {
      runs[i].shift_s = runs[0].steps[0].begin_s - runs[i].steps[0].begin_s;
    }
  }
}

}  // namespace trivium::calibration::foreign
