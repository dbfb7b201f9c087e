#include "calibration/foreign/run_causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/wording.h"

namespace trivium::calibration::foreign {
namespace {

constexpr double kWorthTelling = 0.02;  // of the iteration

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Gaps of a rank that come in fewer than half of the iterations and are long against what is usual.
void rare_gaps(const Side& side, std::vector<Finding>& findings) {
  const auto steps = side.times->steps.size();
  std::vector<double> longest(steps);
  std::vector<const Gap*> which(steps);
  for (const Gap& gap : side.times->long_gaps) {
    const auto at = static_cast<std::size_t>(gap.step);
    if (gap.span.seconds() > longest[at]) longest[at] = gap.span.seconds(), which[at] = &gap;
  }
  const double usual = median_of(longest);
  double more = 0;
  std::vector<int> seen;
  std::vector<TimeSpan> spans;
  for (std::size_t i = 0; i < steps; ++i) {
    if (which[i] == nullptr || longest[i] < 0.15 * side.iteration_s || longest[i] < 3 * usual) continue;
    more += longest[i] - usual;
    seen.push_back(static_cast<int>(i) + 1);
    spans.push_back(which[i]->span);
  }
  if (seen.empty() || 2 * seen.size() >= steps) return;
  const double seconds = more / static_cast<double>(steps);
  if (seconds < kWorthTelling * side.iteration_s) return;
  Finding finding;
  finding.what = fmt::format(
      "rank {} stands still for {} in iteration {} of {}, not in the others: a checkpoint, a log "
      "or another call that waits for files",
      side.run->rank, time_text(more), fmt::join(seen, ", "), steps);
  finding.rank = side.run->rank;
  finding.seconds = seconds;
  finding.remedy = "save checkpoints asynchronously (torch.distributed.checkpoint.async_save), or less often";
  finding.cause = "checkpoint";
  finding.confidence = 0.7;
  finding.spans = seen_at(side, spans);
  findings.push_back(std::move(finding));
}

/// Seconds and products of forwards, by iteration.
struct Forwards {
  std::vector<double> products, forward_s, backward_s;
};

Forwards forwards_of(const Side& side) {
  const std::size_t steps = side.times->steps.size();
  Forwards all{std::vector<double>(steps), std::vector<double>(steps), std::vector<double>(steps)};
  for (const auto& [key, tally] : side.tally) {
    for (std::size_t i = 0; i < steps; ++i) {
      (tally.backward ? all.backward_s : all.forward_s)[i] += tally.seconds[i];
      if (!tally.backward && tally.m > 0) all.products[i] += tally.counts[i];
    }
  }
  return all;
}

/// More forward products than usual, in fewer than half of the iterations, on every rank.
void rare_forwards(const Sides& sides, std::vector<Finding>& findings) {
  const Side& side = sides.ranks.front();
  const Forwards all = forwards_of(side);
  const double usual = median_of(all.products), usual_s = median_of(all.forward_s);
  double more = 0;
  std::vector<int> seen;
  std::vector<TimeSpan> spans;
  for (std::size_t i = 0; i < all.products.size(); ++i) {
    if (usual <= 0 || all.products[i] < 1.3 * usual) continue;
    const double longer = side.times->steps[i].seconds - side.iteration_s;
    more += std::max(longer, all.forward_s[i] - usual_s);
    seen.push_back(static_cast<int>(i) + 1);
    spans.push_back(side.run->steps[i]);
  }
  if (seen.empty() || 2 * seen.size() >= all.products.size()) return;
  const double seconds = more / static_cast<double>(all.products.size());
  findings.push_back({fmt::format("iteration {} of {} runs forwards that no backward follows, {} more: an evaluation "
                                  "inside the window",
                                  fmt::join(seen, ", "), all.products.size(), time_text(more)),
                      std::nullopt, seconds, "evaluate less often, on fewer samples, or on ranks of its own",
                      "evaluation", 0.85, seen_at(side, spans)});
}

}  // namespace

std::vector<Finding> rare_steps(const Sides& sides) {
  std::vector<Finding> findings;
  if (sides.ranks.front().times->steps.size() < 3) return findings;
  rare_forwards(sides, findings);
  for (const Side& side : sides.ranks) rare_gaps(side, findings);
  return findings;
}

std::vector<Finding> recomputation(const Sides& sides) {
  const Side* most = nullptr;
  double seconds = 0;
  std::vector<TimeSpan> spans;
  for (const Side& side : sides.ranks) {
    double again = 0;
    for (const auto& [name, op] : side.times->ops) again += op.recomputed_s;
    if (again > seconds) seconds = again, most = &side;
  }
  if (most == nullptr || seconds < kWorthTelling * most->iteration_s) return {};
  for (std::size_t i = 0; i < most->run->matches.size() && spans.size() < 3; ++i) {
    const imports::Kernel& kernel = most->run->trace->kernels[i];
    if (most->run->matches[i].recomputed) spans.push_back({kernel.start_s, kernel.start_s + kernel.seconds});
  }
  return {{fmt::format("activations are computed again for {}; the plan keeps them", time_text(seconds)), std::nullopt,
           seconds, "turn activation checkpointing off, or keep what the plan keeps", "recomputation", 0.9,
           seen_at(*most, spans)}};
}

std::vector<Finding> small_collectives(const Sides& sides) {
  constexpr double kSmall = 512, kMany = 10;
  const Side& side = sides.ranks.front();
  std::map<std::string, std::pair<double, double>> by_op;  // how many, seconds of all small ones
  std::map<std::string, std::vector<TimeSpan>> spans;
  std::map<std::string, double> largest;
  for (std::size_t i = 0; i < side.run->matches.size(); ++i) {
    const imports::Kernel& kernel = side.run->trace->kernels[i];
    const Match& match = side.run->matches[i];
    if (match.kind != Match::Kind::kCollective || match.op == "send" || match.op == "recv") continue;
    if (kernel.bytes <= 0 || kernel.bytes > kSmall || side.run->step_at(kernel.start_s) < 0) continue;
    by_op[match.op].first += 1;
    by_op[match.op].second += kernel.seconds;
    largest[match.op] = std::max(largest[match.op], kernel.bytes);
    spans[match.op].push_back({kernel.start_s, kernel.start_s + kernel.seconds});
  }
  std::vector<Finding> findings;
  const auto steps = static_cast<double>(std::max<std::size_t>(1, side.run->steps.size()));
  for (const auto& [op, of] : by_op) {
    const double count = of.first / steps;
    const Intervals all(spans[op]);
    const double seconds = std::min(all.seconds() / steps,
                                    side.step_median(&StepTimes::transfer_s) + side.step_median(&StepTimes::wait_s));
    if (count < kMany || seconds < kWorthTelling * side.iteration_s) continue;
    findings.push_back(
        {fmt::format("{:.0f} {} of at most {:.0f} bytes an iteration take {}: metrics or norms one by one", count, op,
                     largest[op], time_text(seconds)),
         std::nullopt, seconds, "put them into one collective, or log less often (every N iterations)",
         "small_collectives", 0.75, seen_at(side, spans[op])});
  }
  return findings;
}

namespace {

/// Attentions of forwards in an iteration: what layers of stages are counted by.
double attentions_of(const Side& side) {
  double count = 0;
  for (const auto& [key, tally] : side.tally) {
    if (tally.op == "attention" && !tally.backward && key.find("scaled_dot_product") != std::string::npos)
      count += tally.count();
  }
  if (count > 0) return count;
  for (const auto& [key, tally] : side.tally) {
    if (!tally.backward && tally.m > 0) count += tally.count();
  }
  return count;
}

}  // namespace

std::vector<Finding> pipeline_causes(const Sides& sides) {
  if (sides.stages < 2) return {};
  std::map<int, std::vector<const Side*>> stages;
  for (const Side& side : sides.ranks) stages[side.stage].push_back(&side);
  std::vector<double> works, layers;
  for (const auto& [stage, ranks] : stages) {
    std::vector<double> work;
    for (const Side* side : ranks) {
      double sum = 0;
      for (const auto& [key, tally] : side->tally) sum += tally.each_s() * tally.count();
      work.push_back(sum);
    }
    works.push_back(median_of(std::move(work)));
    layers.push_back(attentions_of(*ranks.front()));
  }
  std::vector<Finding> findings;
  const auto slowest = std::ranges::max_element(works);
  const double mean = mean_of(works);
  const auto at = static_cast<std::size_t>(slowest - works.begin());
  const Side& side = *std::next(stages.begin(), static_cast<std::ptrdiff_t>(at))->second.front();
  double most_layers = layers[at];
  const bool more_layers =
      most_layers >= 1.3 * median_of(layers) || most_layers > 1.3 * *std::ranges::min_element(layers);
  if (more_layers && *slowest > 1.15 * mean) {
    findings.push_back({fmt::format("stage {} has {:.0f} attentions an iteration, the stages {:.0f}: it computes {}, a "
                                    "stage at the mean {}",
                                    std::next(stages.begin(), static_cast<std::ptrdiff_t>(at))->first, most_layers,
                                    fmt::join(layers, ", "), time_text(*slowest), time_text(mean)),
                        side.run->rank, *slowest - mean,
                        "give every stage as much work: layers by stage of the plan, fewer where embedding or head are",
                        "stage_imbalance", 0.9, seen_at(side, side.run->steps)});
  }
  return findings;
}

}  // namespace trivium::calibration::foreign
