#include "calibration/foreign/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "calibration/foreign/findings.h"
#include "calibration/foreign/plan_ops.h"
#include "calibration/foreign/rank_causes.h"
#include "calibration/foreign/rank_times.h"
#include "calibration/foreign/run_causes.h"
#include "calibration/foreign/sides.h"
#include "calibration/foreign/wording.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration::foreign {
namespace {

using imports::KernelTrace;

constexpr std::size_t kUnmatchedListed = 20;

/// Ranks of the traces, each once and one of the plan's.
std::vector<int> ranks_of(const std::vector<KernelTrace>& traces, int planned) {
  const bool told = std::ranges::all_of(traces, [](const KernelTrace& trace) { return trace.rank.has_value(); });
  std::vector<int> ranks;
  for (const KernelTrace& trace : traces) {
    const int rank = told ? *trace.rank : static_cast<int>(ranks.size());
    if (trace.world_size && *trace.world_size != planned) {
      base::refuse(trace.file, fmt::format("is of a run with {} ranks, the plan has {}", *trace.world_size, planned));
    }
    if (rank >= planned) base::refuse(trace.file, fmt::format("is of rank {}, the plan has {} ranks", rank, planned));
    ranks.push_back(rank);
  }
  return ranks;
}

bool tell_shapes(const std::vector<KernelTrace>& traces) {
  return std::ranges::any_of(traces, [](const KernelTrace& trace) {
    return std::ranges::any_of(trace.kernels, [](const imports::Kernel& kernel) { return kernel.m > 0; });
  });
}

/// Products whose shapes are told and match none of the plan's say that the run is of another job.
void check_shapes(const RankRun& run, const PlanShapes& shapes) {
  const imports::Kernel* example = nullptr;
  for (std::size_t i = 0; i < run.matches.size(); ++i) {
    const imports::Kernel& kernel = run.trace->kernels[i];
    if (kernel.m <= 0 || kernel.batch > 1) continue;
    if (run.matches[i].kind == Match::Kind::kOp) return;
    if (example == nullptr) example = &kernel;
  }
  if (example == nullptr) return;
  std::string rows;
  for (const std::int64_t each : shapes.rows) rows += fmt::format("{}{}", rows.empty() ? "" : ", ", each);
  base::refuse(run.trace->file,
               fmt::format("its products, ({:.0f}, {:.0f}) x ({:.0f}, {:.0f}) for one, are none of the plan's, whose "
                           "micro-batches have {} tokens on a rank; is it of this model, sequence and micro-batch?",
                           example->m, example->k, example->k, example->n, rows));
}

/// Tokens of the first forward of a trace; 0: not told.
std::int64_t tokens_of_forward(const KernelTrace& trace) {
  for (const imports::Operator& op : trace.operators) {
    if (op.shapes < 0 || trace.name_of(op) != "aten::embedding") continue;
    const imports::Shapes& shapes = trace.shapes[static_cast<std::size_t>(op.shapes)];
    std::int64_t tokens = shapes.size() > 1 ? 1 : 0;
    for (std::size_t i = 0; tokens > 0 && i < shapes[1].size(); ++i)
      tokens = shapes[1][i] < (1 << 24) ? tokens * shapes[1][i] : 0;
    return tokens;
  }
  return 0;
}

/// Where ranks have other numbers of tokens than each other, those of all are sought.
void add_rows(const std::vector<KernelTrace>& traces, PlanShapes& shapes) {
  std::set<std::int64_t> rows;
  for (const KernelTrace& trace : traces) {
    if (const std::int64_t tokens = tokens_of_forward(trace); tokens > 0) rows.insert(tokens);
  }
  if (rows.size() < 2) return;
  for (auto* products : {&shapes.products, &shapes.unsplit}) {
    for (PlanProduct& product : *products) product.rows.insert(rows.begin(), rows.end());
  }
  shapes.rows.merge(rows);
}

RankRun run_of(const KernelTrace& trace, int rank, const PlanShapes& shapes) {
  RankRun run{rank, &trace, match_kernels(trace, shapes), {}, 0};
  run.steps = whole_steps(trace, run.matches);
  if (run.steps.empty()) {
    base::refuse(trace.file,
                 "holds no whole iteration: mark them (profiler.step(), NVTX ranges \"step N\"), or trace two");
  }
  check_shapes(run, shapes);
  return run;
}

/// What of a log or of the traces an iteration took.
double measured_iteration(const ForeignRun& run, double traced) {
  return run.logs.empty() ? traced : run.logs.front().typical_iteration_s();
}

void add(std::map<std::string, OpRow>& rows, const std::string& name, const MeasuredOp& op, double ranks) {
  OpRow& row = rows[name];
  row.op = name;
  row.count += op.count / ranks;
  row.measured_s += op.seconds / ranks;
}

std::vector<OpRow> sorted(const std::map<std::string, OpRow>& rows) {
  std::vector<OpRow> list;
  for (const auto& [name, row] : rows) list.push_back(row);
  std::stable_sort(list.begin(), list.end(), [](const OpRow& a, const OpRow& b) {
    return std::max(a.measured_s, a.predicted_s) > std::max(b.measured_s, b.predicted_s);
  });
  return list;
}

/// The longest unmatched kernels by name, the others together.
std::vector<OpRow> unmatched_rows(const std::vector<RankTimes>& ranks) {
  std::map<std::string, OpRow> rows;
  for (const RankTimes& rank : ranks) {
    for (const auto& [name, op] : rank.unmatched)
      add(rows, "unmatched: " + name, op, static_cast<double>(ranks.size()));
  }
  std::vector<OpRow> list = sorted(rows);
  if (list.size() <= kUnmatchedListed) return list;
  OpRow rest{fmt::format("unmatched: {} others", list.size() - kUnmatchedListed)};
  for (auto row = list.begin() + kUnmatchedListed; row != list.end(); ++row) {
    rest.count += row->count;
    rest.measured_s += row->measured_s;
  }
  list.resize(kUnmatchedListed);
  list.push_back(rest);
  return list;
}

std::vector<OpRow> rows_of(const std::vector<RankTimes>& ranks, const std::map<int, RankPlan>& plans) {
  std::map<std::string, OpRow> rows;
  const auto count = static_cast<double>(ranks.size());
  for (const RankTimes& rank : ranks) {
    for (const auto& [name, op] : rank.ops) add(rows, name, op, count);
    for (const auto& [name, op] : plans.at(rank.rank).ops) {
      rows[name].op = name;
      rows[name].predicted_s += op.seconds / count;
    }
  }
  std::vector<OpRow> list = sorted(rows);
  for (OpRow& row : unmatched_rows(ranks)) list.push_back(std::move(row));
  return list;
}

double matched_share(const std::vector<RankTimes>& ranks) {
  double matched = 0, all = 0;
  for (const RankTimes& rank : ranks) matched += rank.matched_s, all += rank.matched_s + rank.unmatched_s;
  return all > 0 ? matched / all : 0;
}

struct ComputeTime {
  double measured_s = 0, predicted_s = 0;
  double present_s = 0;  ///< of `predicted_s`, in ops that the trace has
};

/// Of ops that compute, on the rank that fits the plan best.
ComputeTime compute_of(const RankTimes& rank, const RankPlan& plan) {
  ComputeTime compute;
  for (const auto& [name, op] : rank.ops) {
    if (!rank.exposed_s.contains(name)) compute.measured_s += op.seconds;
  }
  for (const auto& [name, op] : plan.ops) {
    if (plan.exposed_s.contains(name)) continue;
    compute.predicted_s += op.seconds;
    const auto found = rank.ops.find(name);
    if (found != rank.ops.end() && found->second.count > 0) compute.present_s += op.seconds;
  }
  return compute;
}

double ratio_of(double a, double b) { return std::max(a, b) / std::max(1e-12, std::min(a, b)); }

/// Refuses a run as one of another job: less than half of the compute time of the rank that fits best is ops of the
/// plan, or most of the plan's ops are not in it, or they take another order of time. Iterations are compared only
/// where no shapes are recorded: a run that waits is the one to be explained.
void refuse_other_job(const ForeignRun& run, const std::vector<RankTimes>& ranks, const std::map<int, RankPlan>& plans,
                      double measured_s, double predicted_s) {
  constexpr double kLeastMatched = 0.5, kLeastPresent = 0.4;
  constexpr double kWithoutShapes = 3, kOfCompute = 10, kOnCores = 100;  // profiles of cores are coarse
  const auto share = [](const RankTimes& rank) {
    const double all = rank.matched_s + rank.unmatched_s;
    return all > 0 ? rank.matched_s / all : 0;
  };
  const RankTimes& best = *std::ranges::max_element(ranks, {}, [&](const RankTimes& rank) { return share(rank); });
  const std::string& file = run.traces.front().file;
  if (share(best) < kLeastMatched) {
    base::refuse(file, fmt::format("is of another job: {:.0f} % of its compute time is ops of the plan; give the model "
                                   "and plan that ran",
                                   100 * share(best)));
  }
  const ComputeTime compute = compute_of(best, plans.at(best.rank));
  double present = 0;  // of the plan's compute time, on the rank that has most of it: experts may lie idle
  for (const RankTimes& rank : ranks) {
    const ComputeTime of = compute_of(rank, plans.at(rank.rank));
    if (of.predicted_s > 0) present = std::max(present, of.present_s / of.predicted_s);
  }
  if (present < kLeastPresent) {
    base::refuse(file, fmt::format("is of another job, or of a part of an iteration: ops of {:.0f} % of the plan's "
                                   "compute time are not in it",
                                   100 * (1 - present)));
  }
  const bool shaped = tell_shapes(run.traces);
  const auto compare = [&](const char* what, double is, double planned, double most) {
    if (ratio_of(is, planned) <= most) return;
    base::refuse(file, fmt::format("is of another job: {} takes {}, the plan predicts {}; give the model, sequence, "
                                   "batch and cluster that ran{}",
                                   what, time_text(is), time_text(planned),
                                   shaped ? "" : ", or record shapes (record_shapes=True)"));
  };
  compare("the compute of an iteration", compute.measured_s, compute.predicted_s,
          run.traces.front().on_cores ? kOnCores : kOfCompute);
  if (!shaped) compare("an iteration", measured_s, predicted_s, kWithoutShapes);
}

std::vector<double> step_seconds(const std::vector<RankRun>& runs) {
  std::vector<double> seconds;
  for (const TimeSpan& step : runs.front().steps) seconds.push_back(step.seconds());
  return seconds;
}

std::vector<std::string> notes_of(const ForeignRun& run, const std::vector<RankRun>& runs, int ranks) {
  std::vector<std::string> notes;
  const KernelTrace& first = run.traces.front();
  if (first.on_cores)
    notes.emplace_back(
        "operators on cores are not the kernels of the profile: they are compared with the run's own products");
  if (static_cast<int>(runs.size()) < ranks)
    notes.push_back(
        fmt::format("{} of {} ranks are traced: waits for others are not told from transfers", runs.size(), ranks));
  for (const KernelTrace& trace : run.traces) {
    if (trace.is_truncated) notes.push_back(base::one_line(trace.file) + " ends early");
  }
  if (!tell_shapes(run.traces))
    notes.emplace_back("shapes are not told (record_shapes=True): products are compared as one");
  if (const std::vector<double> steps = step_seconds(runs); steps.size() > 2) {
    notes.push_back(fmt::format("iterations took {:.4g} s at the median, {:.4g} s to {:.4g} s", median_of(steps),
                                *std::ranges::min_element(steps), *std::ranges::max_element(steps)));
  }
  if (first.marked.empty()) notes.emplace_back("iterations are not marked: they are told from what repeats");
  for (const imports::TrainingLog& log : run.logs) {
    if (log.perturbed) notes.push_back(base::one_line(log.file) + ": ran with timers that synchronise, which slows");
  }
  return notes;
}

/// What the traces tell without a plan. Recomputation is one only where the plan does not ask for it.
std::vector<Finding> causes_of(const Sides& sides, bool recomputes) {
  std::vector<Finding> causes = rank_causes(sides);
  const auto add = [&](std::vector<Finding> more) {
    for (Finding& finding : more) causes.push_back(std::move(finding));
  };
  add(shared_stalls(sides));
  add(rare_steps(sides));
  if (!recomputes) add(recomputation(sides));
  add(small_collectives(sides));
  add(pipeline_causes(sides));
  return causes;
}

}  // namespace

Explanation explain_foreign(const ForeignRun& run, const program::Job& job, const hardware::Cluster& cluster,
                            const std::stop_token& stop) {
  auto predicted =
      simulator::predict(job, cluster, {.fits = false, .simulation = {simulator::Granularity::kOp, /*timeline=*/true}},
                         stop)
          .value_or_throw();
  const program::Program& program = predicted.prepared.program();
  const std::vector<int> ranks = ranks_of(run.traces, program.mesh.size());
  PlanShapes shapes = shapes_of(program);
  add_rows(run.traces, shapes);
  std::vector<RankRun> runs;
  for (std::size_t i = 0; i < ranks.size(); ++i) runs.push_back(run_of(run.traces[i], ranks[i], shapes));
  align(runs);
  const std::vector<RankTimes> times = times_of(runs);
  auto plans = plans_of(program, predicted.simulation, {ranks.begin(), ranks.end()}, stop);
  const bool shaped = tell_shapes(run.traces);
  for (auto& [rank, plan] : plans) plan = shaped ? std::move(plan) : with_products_together(std::move(plan));

  Explanation explanation;
  explanation.ranks = static_cast<int>(runs.size());
  explanation.steps = std::numeric_limits<int>::max();
  for (const RankRun& each : runs) {
    explanation.traced_s += each.mean_step_s() / static_cast<double>(runs.size());
    explanation.steps = std::min(explanation.steps, static_cast<int>(each.steps.size()));
  }
  explanation.measured_s = measured_iteration(run, explanation.traced_s);
  explanation.predicted_s = predicted.simulation.iteration_s;
  explanation.matched_share = matched_share(times);
  refuse_other_job(run, times, plans, explanation.measured_s, explanation.predicted_s);
  explanation.ops = rows_of(times, plans);
  const Sides sides = sides_of(runs, times);
  explanation.findings =
      findings_of({times, plans, run.traces.front().on_cores, shapes.flash,
                   causes_of(sides, job.plan.recompute != program::Recompute::kNone), sides.stages > 1});
  for (const Finding& finding : explanation.findings) explanation.winnable_s += finding.seconds;
  explanation.winnable_s = std::min(explanation.winnable_s, explanation.measured_s);
  explanation.notes = notes_of(run, runs, program.mesh.size());
  return explanation;
}

namespace {

nlohmann::json to_json(const std::vector<SeenAt>& spans) {
  nlohmann::json list = nlohmann::json::array();
  for (const SeenAt& span : spans) {
    list.push_back({{"rank", span.rank}, {"step", span.step}, {"begin_us", span.begin_us}, {"end_us", span.end_us}});
  }
  return list;
}

}  // namespace

nlohmann::json to_json(const Explanation& explanation) {
  nlohmann::json ops = nlohmann::json::array(), findings = nlohmann::json::array();
  for (const OpRow& row : explanation.ops) {
    ops.push_back(
        {{"op", row.op}, {"count", row.count}, {"measured_s", row.measured_s}, {"predicted_s", row.predicted_s}});
  }
  for (const Finding& finding : explanation.findings) {
    findings.push_back({{"what", finding.what},
                        {"rank", finding.rank ? nlohmann::json(*finding.rank) : nlohmann::json()},
                        {"seconds", finding.seconds},
                        {"remedy", finding.remedy},
                        {"cause", finding.cause},
                        {"confidence", std::round(100 * finding.confidence) / 100},
                        {"spans", to_json(finding.spans)}});
  }
  return {{"schema", "trivium.trace-explanation/1"},
          {"matched_share", explanation.matched_share},
          {"iteration_s", {{"measured", explanation.measured_s}, {"predicted", explanation.predicted_s}}},
          {"ops", std::move(ops)},
          {"findings", std::move(findings)},
          {"winnable_s", explanation.winnable_s}};
}

}  // namespace trivium::calibration::foreign
