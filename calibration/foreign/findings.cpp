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

/// Waits of the typical rank that no cause explains: for one rank in most iterations, or for ranks in turn.
void add_waits(const Compared& compared, const RankTimes& typical, std::vector<Finding>& findings) {
  double in_turn = 0;
  for (const auto& [rank, waited] : typical.waits_s) {
    const auto slow = std::ranges::find(compared.ranks, rank, &RankTimes::rank);
    if (slow == compared.ranks.end()) continue;
    double explained = 0;
    for (const Finding& finding : findings) {
      if (finding.rank == rank) explained += finding.seconds;
    }
    const double left = std::max(0.0, waited - explained);
    const double longer =
        std::max(0.0, slow->compute_s - typical.compute_s) + std::max(0.0, slow->idle_s - typical.idle_s);
    const double own = explained > 0 || compared.in_stages ? 0 : std::min(left, longer);
    in_turn += left - own;
    if (own <= 0) continue;
    const bool computes = slow->compute_s - typical.compute_s >= slow->idle_s - typical.idle_s;
    Finding finding{
        fmt::format("rank {} comes late: rank {} waits {} for it at collectives; it {} {} longer{}", rank, typical.rank,
                    time_text(waited), computes ? "computes" : "has nothing to run for",
                    time_text(computes ? slow->compute_s - typical.compute_s : slow->idle_s - typical.idle_s),
                    computes ? most_beyond(*slow, typical) : ""),
        rank, own,
        computes ? "look at its clock, temperature and other processes"
                 : "look at that rank's host: loading of data, logging, checkpoints, other processes"};
    finding.cause = "late_rank";
    finding.confidence = 0.3;
    findings.push_back(std::move(finding));
  }
  Finding turn{
      fmt::format("{}: rank {} waits {}",
                  compared.in_stages ? "stages wait for each other" : "ranks come to collectives late in turn",
                  typical.rank, time_text(in_turn)),
      std::nullopt, in_turn,
      compared.in_stages
          ? "more micro-batches, virtual stages or a zero-bubble schedule; stages of equal work"
          : "quieter hosts: pin processes to cores, end other processes, collect garbage at one time on all ranks"};
  turn.cause = compared.in_stages ? "bubble" : "noise";
  turn.confidence = compared.in_stages ? 0.6 : 0.3;
  findings.push_back(std::move(turn));
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
                          std::nullopt, more, "leave it out, or do it less often than every iteration",
                          "exposed_collective"});
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
                          "measure the link (nccl-tests, trivium profile), then its route and settings", "slow_link"});
    } else {
      findings.push_back({fmt::format("{} stands exposed for {}{}; the plan hides all but {}", op, time_text(exposed),
                                      rate, time_text(expected)),
                          std::nullopt, more, overlap_remedy(op), "exposed_collective"});
    }
  }
}

void add_idle(const RankTimes& rank, const RankPlan& plan, bool on_cores, double explained,
              std::vector<Finding>& findings) {
  const double more = rank.idle_s - plan.idle_s - explained;
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
  findings.push_back({what, std::nullopt, more, remedy, one ? "stall" : "host_bound"});
}

/// How often a rank runs a product that every layer has once, against the plan: layers of stages that are not the
/// plan's. They come first, whatever they cost.
void add_contradictions(const Compared& compared, std::vector<Finding>& findings) {
  constexpr double kOther = 1.2;
  for (const RankTimes& rank : compared.ranks) {
    const RankPlan& plan = compared.plans.at(rank.rank);
    const auto measured = rank.ops.find("fc2");
    const auto planned = plan.ops.find("fc2");
    if (measured == rank.ops.end() || planned == plan.ops.end() || measured->second.recomputed_s > 0) continue;
    const double ratio = measured->second.count / planned->second.count;
    if (!compared.in_stages || ratio < kOther) continue;
    double sum = 0;
    for (const RankTimes& each : compared.ranks) sum += each.compute_s;
    const double mean = sum / static_cast<double>(compared.ranks.size());
    Finding finding{
        fmt::format("rank {} is not split as the plan says: it runs {:.0f} MLPs an iteration, the plan {:.0f}, so "
                    "its stage has {:.1f} times the plan's layers",
                    rank.rank, measured->second.count, planned->second.count, ratio),
        rank.rank, std::max(0.0, rank.compute_s - mean),
        "give the stages the plan's layers, or give explain the plan that ran (layers by stage)"};
    finding.cause = "stage_imbalance";
    finding.confidence = 0.9;
    std::erase_if(findings,
                  [&](const Finding& other) { return other.cause == finding.cause && other.rank == finding.rank; });
    findings.insert(findings.begin(), std::move(finding));
  }
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
  std::vector<Finding> findings = compared.causes;
  double idles = 0;  // explained by causes that all ranks share, or of the typical rank itself
  for (const Finding& finding : findings) {
    if (finding.cause == "loader" && (!finding.rank || finding.rank == typical.rank)) idles += finding.seconds;
  }
  for (Finding& finding : compute_findings(typical, plan, compared.on_cores, compared.flash)) {
    const bool known =
        std::ranges::any_of(findings, [&](const Finding& other) { return other.cause == finding.cause; });
    if (!known) findings.push_back(std::move(finding));
  }
  add_waits(compared, typical, findings);
  add_exposed(typical, plan, findings);
  add_idle(typical, plan, compared.on_cores, idles, findings);
  std::erase_if(findings, [&](const Finding& finding) { return finding.seconds < kWorthSaying * typical.iteration_s; });
  // What is told surely stands before what may be the host's noise.
  constexpr double kSure = 0.6;
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const bool sure_a = a.confidence >= kSure, sure_b = b.confidence >= kSure;
    return sure_a != sure_b ? sure_a : a.seconds > b.seconds;
  });
  add_contradictions(compared, findings);
  return findings;
}

}  // namespace trivium::calibration::foreign
