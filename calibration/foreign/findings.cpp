#include "calibration/foreign/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "calibration/foreign/compute_findings.h"
#include "calibration/foreign/wording.h"

namespace trivium::calibration::foreign {
namespace {

constexpr double kWorthSaying = 0.005;  // of the iteration

double compute_of(const RankPlan& plan) {
  double sum = plan.iteration_s - plan.idle_s;
  for (const auto& [op, seconds] : plan.exposed_s) sum -= seconds;
  return sum;
}

double value_or_zero(const std::map<std::string, double>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? 0 : found->second;
}

/// The op in which a rank lost most against the typical one.
std::string most_beyond(const RankTimes& slow, const RankTimes& typical) {
  std::string text;
  double most = 0;
  for (const auto& [name, op] : slow.ops) {
    const auto other = typical.ops.find(name);
    const double beyond = op.seconds - (other == typical.ops.end() ? 0 : other->second.seconds);
    const bool collective = slow.exposed_s.contains(name);
    if (collective || beyond <= most) continue;
    most = beyond;
    const double times = other == typical.ops.end() ? 0 : op.count / std::max(1.0, other->second.count);
    text = fmt::format(", {} of it in {}{}", time_text(beyond), name,
                       times > 1.2 ? fmt::format(", which it runs {:.1f} times as often", times) : "");
  }
  return text;
}

/// A rank that others wait for: as far as it works or idles longer than the typical one in an iteration.
Finding slow_rank(const RankTimes& typical, const RankTimes& slow, double waited) {
  const double computes = slow.compute_s - typical.compute_s, idles = slow.idle_s - typical.idle_s;
  const double longer = std::max(0.0, computes) + std::max(0.0, idles);
  Finding finding{fmt::format("rank {} is slow: rank {} waits {} for it at collectives", slow.rank, typical.rank,
                              time_text(waited)),
                  slow.rank, std::min(waited, longer), ""};
  if (computes >= idles) {
    finding.what += fmt::format("; it computes {} longer{}", time_text(computes), most_beyond(slow, typical));
    finding.remedy =
        "give that rank no more work than the others; else look at its clock, temperature and other processes";
  } else {
    finding.what += fmt::format("; it has nothing to run for {} longer", time_text(idles));
    finding.remedy = "look at that rank's host: loading of data, logging, checkpoints, other processes";
  }
  return finding;
}

/// Waits beyond what slow ranks explain are for ranks that come late in turn.
void add_waits(const Compared& compared, const RankTimes& typical, std::vector<Finding>& findings) {
  double in_turn = 0;
  for (const auto& [rank, waited] : typical.waits_s) {
    const auto slow = std::ranges::find(compared.ranks, rank, &RankTimes::rank);
    if (slow == compared.ranks.end()) continue;
    findings.push_back(slow_rank(typical, *slow, waited));
    in_turn += waited - findings.back().seconds;
  }
  findings.push_back(
      {fmt::format("ranks come to collectives late in turn: rank {} waits {}", typical.rank, time_text(in_turn)),
       std::nullopt, in_turn,
       "quieter hosts: pin processes to cores, end other processes, collect garbage at one time on all ranks"});
}

std::string overlap_remedy(const std::string& collective) {
  if (collective == "all_gather") {
    return "gather ahead of use: set_modules_to_forward_prefetch (FSDP2), --overlap-param-gather (Megatron), "
           "overlap.parameter_gather";
  }
  if (collective == "all_reduce" || collective == "reduce_scatter") {
    return "overlap reductions with the backward: smaller bucket_cap_mb (DDP), --overlap-grad-reduce (Megatron), "
           "overlap_comm (DeepSpeed), overlap.gradient_reduction";
  }
  if (collective == "send" || collective == "recv")
    return "overlap sends with kernels: --overlap-p2p-communication, overlap.pipeline";
  return "overlap it with kernels, on a stream of its own";
}

void add_exposed(const RankTimes& rank, const RankPlan& plan, std::vector<Finding>& findings) {
  for (const auto& [op, exposed] : rank.exposed_s) {
    const double expected = value_or_zero(plan.exposed_s, op), more = exposed - expected;
    const auto planned = plan.ops.find(op);
    const MeasuredOp& measured = rank.ops.at(op);
    if (planned == plan.ops.end()) {
      findings.push_back({fmt::format("{} takes {} that no kernel hides; the plan has none", op, time_text(exposed)),
                          std::nullopt, more, "leave it out, or do it less often than every iteration"});
      continue;
    }
    const double own = planned->second.seconds;
    const bool slow = own > 0 && measured.seconds > 1.3 * own && measured.seconds - own > more / 2;
    const std::string rate =
        measured.bytes > 0 && measured.seconds > 0
            ? fmt::format(" ({:.1f} MB at {:.2f} GB/s)", measured.bytes / 1e6, measured.bytes / measured.seconds / 1e9)
            : "";
    if (slow) {
      findings.push_back({fmt::format("{} takes {}{}, {:.1f} times what the plan's links take; {} of it exposed", op,
                                      time_text(measured.seconds), rate, measured.seconds / own, time_text(exposed)),
                          std::nullopt, more,
                          "measure the link (nccl-tests, trivium profile), then its route and settings"});
    } else {
      findings.push_back({fmt::format("{} stands exposed for {}{}; the plan hides all but {}", op, time_text(exposed),
                                      rate, time_text(expected)),
                          std::nullopt, more, overlap_remedy(op)});
    }
  }
}

void add_idle(const RankTimes& rank, const RankPlan& plan, bool on_cores, std::vector<Finding>& findings) {
  const double more = rank.idle_s - plan.idle_s;
  const bool one = rank.longest_gap_s > 0.5 * more;
  const double typical = (rank.idle_s - rank.longest_gap_s) / std::max(1.0, rank.gaps - 1);
  std::string what = fmt::format("nothing runs for {}", time_text(rank.idle_s));
  if (one) {
    what += fmt::format(", {} of it at a stretch", time_text(rank.longest_gap_s));
  } else {
    what += fmt::format(", in {:.0f} gaps of {:.0f} us", rank.gaps, 1e6 * typical);
    what += on_cores ? ": Python, the framework and the profiler itself" : ": the host launches too late";
  }
  if (plan.idle_s > 0) what += fmt::format("; the plan idles {}", time_text(plan.idle_s));
  const char* const remedy = one        ? "load data ahead (workers, pinned memory); log and save less often"
                             : on_cores ? "torch.compile, or larger micro-batches"
                                        : "CUDA graphs, torch.compile, or larger micro-batches";
  findings.push_back({what, std::nullopt, more, remedy});
}

}  // namespace

const RankTimes& typical_rank(const Compared& compared) {
  double most = 0;
  for (const RankTimes& rank : compared.ranks) most = std::max(most, compute_of(compared.plans.at(rank.rank)));
  std::vector<const RankTimes*> busiest;
  for (const RankTimes& rank : compared.ranks) {
    constexpr double kAlike = 0.99;
    if (compute_of(compared.plans.at(rank.rank)) >= kAlike * most) busiest.push_back(&rank);
  }
  std::sort(busiest.begin(), busiest.end(),
            [](const RankTimes* a, const RankTimes* b) { return a->compute_s < b->compute_s; });
  return *busiest[(busiest.size() - 1) / 2];
}

std::vector<Finding> findings_of(const Compared& compared) {
  const RankTimes& typical = typical_rank(compared);
  const RankPlan& plan = compared.plans.at(typical.rank);
  std::vector<Finding> findings = compute_findings(typical, plan, compared.on_cores, compared.flash);
  add_waits(compared, typical, findings);
  add_exposed(typical, plan, findings);
  add_idle(typical, plan, compared.on_cores, findings);
  std::erase_if(findings, [&](const Finding& finding) { return finding.seconds < kWorthSaying * typical.iteration_s; });
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.seconds > b.seconds; });
  return findings;
}

}  // namespace trivium::calibration::foreign
