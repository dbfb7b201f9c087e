#include "cli/commands/plan_studies.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands/disturbance.h"
#include "cli/options/tokens.h"
#include "cli/render/figures.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/predict/prepare.h"
#include "simulator/schedule/engine.h"
#include "simulator/studies/uncertainty.h"
#include "simulator/studies/whole_training.h"

namespace trivium::cli {
namespace {

using planner::Candidate;
using planner::Effort;
using planner::SearchRequest;

constexpr double kCostError = 0.1;
constexpr int kUncertaintySamples = 20;
constexpr std::size_t kRobustCandidates = 10;

nlohmann::json candidate_or_null(const std::optional<Candidate>& candidate) {
  return candidate ? candidate_json(*candidate) : nlohmann::json();
}

std::optional<simulator::WholeTraining> training_of(const SearchRequest& request, const Candidate& candidate) {
  program::Job job = request.job;
  job.plan = candidate.plan;
  return simulator::whole_training(job, request.cluster, candidate.simulation);
}

std::string pareto(const SearchRequest& request, const Effort& effort, nlohmann::json& out) {
  const std::vector<Candidate> front = planner::memory_front(request, effort);
  Table table({"<time against memory", "iteration", "peak memory"});
  out["pareto"] = nlohmann::json::array();
  for (const Candidate& candidate : front) {
    table.add({program::summary(candidate.plan), seconds(candidate.simulation.iteration_s),
               size(candidate.simulation.peak_memory_bytes)});
    out["pareto"].push_back(candidate_json(candidate));
  }
  return "\n" + table.text();
}

std::string cost_front(const SearchRequest& request, const Effort& effort, nlohmann::json& out) {
  if (!request.cluster.homogeneous() || request.job.training.total_tokens == 0) return "";
  Table table({"nodes", "training", "price", "<time against cost"});
  out["cost_front"] = nlohmann::json::array();
  for (const planner::CostPoint& point : planner::cost_front(request, effort)) {
    table.add({std::to_string(point.nodes), duration(point.seconds), price(point.cost_usd),
               program::summary(point.best.plan)});
    nlohmann::json one = candidate_json(point.best);
    one["nodes"] = point.nodes;
    one["training_s"] = point.seconds;
    one["cost_usd"] = point.cost_usd;
    out["cost_front"].push_back(std::move(one));
  }
  return "\n" + table.text();
}

/// What the simulator's spread of the iteration leaves of it, and of the training: both grow with the iteration.
std::string uncertainty(const StudyOptions& options, const SearchRequest& request, const Candidate& best,
                        nlohmann::json& out) {
  DisturbanceOptions how;
  how.jitter = options.jitter;
  const simulator::Disturbance disturbance = disturbance_of(how);
  program::Job job = request.job;
  job.plan = best.plan;
  const auto prepared = simulator::prepare(job, request.cluster, {.fits = !request.ignore_memory}).value_or_throw();
  const auto seed = static_cast<std::uint64_t>(job.training.seed);
  const auto samples =
      simulator::sample_iterations(prepared.costed(), disturbance, kUncertaintySamples, seed).value_or_throw();
  out["uncertainty"] = uncertainty_json(disturbance, samples, seed);
  std::string text = uncertainty_line(disturbance, samples, seed);
  const auto whole = training_of(request, best);
  if (!whole) return text;
  for (const auto& [name, share] : {std::pair("p5", .05), std::pair("p50", .5), std::pair("p95", .95)}) {
    const double factor = samples.quantile_ps(share) / static_cast<double>(best.simulation.iteration_ps);
    const auto cost = whole->cost_usd ? std::optional<double>(*whole->cost_usd * factor) : std::nullopt;
    text += fmt::format("  {}: {} of training, {}\n", name, duration(whole->seconds * factor), price(cost));
    auto& one = out["uncertainty"]["training"][name];
    one["seconds"] = whole->seconds * factor;
    one["cost_usd"] = cost ? nlohmann::json(*cost) : nlohmann::json();
  }
  return text;
}

std::string deadline(const StudyOptions& options, const SearchRequest& request, const Effort& effort,
                     nlohmann::json& out) {
  const double limit = base::parse_seconds(options.deadline).value_or_throw().value();
  const planner::DeadlineAnswer answer = planner::smallest_cluster(request, limit, effort);
  out["deadline"] = {{"seconds", limit},
                     {"nodes", answer.nodes},
                     {"nodes_tried", answer.tried},
                     {"training_s", answer.seconds},
                     {"best", candidate_or_null(answer.best)}};
  if (!answer.best)
    return fmt::format("\nno cluster of up to {} node{} trains within {}\n", answer.tried, answer.tried == 1 ? "" : "s",
                       duration(limit));
  const SearchRequest there = planner::on_nodes(request, answer.nodes);
  const simulator::WholeTraining whole = *training_of(there, *answer.best);
  const simulator::Certainty& sure = answer.best->simulation.certainty;
  const double probability = simulator::within_probability(sure, sure.expected_s * limit / whole.seconds);
  out["deadline"]["probability"] = probability;
  out["deadline"]["training_interval_90_s"] = {whole.seconds * whole.least, whole.seconds * whole.most};
  return fmt::format("\nwithin {} with probability {}: {} nodes, {} of training ({} to {}), {}: {}\n", duration(limit),
                     simulator::probability_text(probability), answer.nodes, duration(whole.seconds),
                     duration(whole.seconds * whole.least), duration(whole.seconds * whole.most), price(whole.cost_usd),
                     program::summary(answer.best->plan));
}

planner::Doublings doublings(const char* option, const std::string& text, const char* unit) {
  const auto range = planner::parse_doublings(text, unit);
  if (!range) fail_usage(fmt::format("{}: {}", option, range.error().message));
  return range.value();
}

planner::Doublings batches_of(const std::string& text) { return doublings("--batch-range", text, "samples"); }
planner::Doublings sequences_of(const std::string& text) { return doublings("--sequence-range", text, "tokens"); }

std::string batches(const StudyOptions& options, const SearchRequest& request, const Effort& effort,
                    nlohmann::json& out) {
  const double critical = options.critical_batch.empty()
                              ? 0
                              : static_cast<double>(parse_tokens("--critical-batch", options.critical_batch));
  const auto points = planner::batches(request, batches_of(options.batch_range), critical, effort);
  Table table({"batch", "iteration", "tokens/s", "tokens needed", "training", "<best plan"});
  out["batches"] = nlohmann::json::array();
  for (const planner::BatchPoint& point : points) {
    const bool fits = point.best.has_value();
    table.add({std::to_string(point.global_batch), fits ? seconds(point.best->simulation.iteration_s) : "-",
               fits ? integer(point.best->simulation.tokens_per_s) : "-", fmt::format("{:.3f}", point.tokens_needed),
               fits ? fmt::format("{:.3f}", point.relative_seconds) : "-",
               fits ? program::summary(point.best->plan) : "no plan fits"});
    out["batches"].push_back({{"global_batch", point.global_batch},
                              {"tokens_needed", point.tokens_needed},
                              {"relative_training_s", fits ? nlohmann::json(point.relative_seconds) : nlohmann::json()},
                              {"best", candidate_or_null(point.best)}});
  }
  return "\n" + table.text() +
         (critical > 0 ? "tokens needed: 1 + batch / critical batch, over the smallest batch (arXiv 1812.06162)\n"
                       : "the batch is assumed free: every batch is taken to need the same tokens; --critical-batch "
                         "TOKENS says otherwise\n");
}

std::string sequences(const StudyOptions& options, const SearchRequest& request, const Effort& effort,
                      nlohmann::json& out) {
  Table table({"sequence", "batch", "iteration", "expected", "90 % from", "to", "tokens/s",
               simulator::mfu_title("MFU", request.job.plan), "<best plan"});
  out["sequences"] = nlohmann::json::array();
  for (const planner::SequencePoint& point :
       planner::sequences(request, sequences_of(options.sequence_range), effort)) {
    std::vector<std::string> row{std::to_string(point.sequence), std::to_string(point.global_batch)};
    if (point.best) {
      const simulator::Simulation& s = point.best->simulation;
      row.insert(row.end(), {seconds(s.iteration_s), seconds_beside(s.certainty.expected_s, s.iteration_s),
                             seconds_beside(s.certainty.iteration_s.low, s.iteration_s),
                             seconds_beside(s.certainty.iteration_s.high, s.iteration_s), integer(s.tokens_per_s),
                             percent(s.mfu), program::summary(point.best->plan)});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-", "-", "-", "no plan fits"});
    }
    table.add(std::move(row));
    out["sequences"].push_back(
        {{"sequence", point.sequence}, {"global_batch", point.global_batch}, {"best", candidate_or_null(point.best)}});
  }
  return "\n" + table.text() + "the tokens of a step stay, as nearly as whole samples allow\n";
}

std::string sensitivity(const SearchRequest& request, const Candidate& best, const Effort& effort,
                        nlohmann::json& out) {
  Table table({"<with", "throughput", "iteration", "<best plan"});
  out["sensitivity"] = nlohmann::json::array();
  for (const planner::Sensitivity& s : planner::sensitivities(request, best, effort)) {
    table.add({s.change, s.best ? fmt::format("{:+.1f} %", 100 * s.gain) : "-",
               s.best ? seconds(s.best->simulation.iteration_s) : "-",
               s.best ? program::summary(s.best->plan) : "no plan fits"});
    out["sensitivity"].push_back({{"change", s.change}, {"gain", s.gain}, {"best", candidate_or_null(s.best)}});
  }
  return "\n" + table.text();
}

std::string robustness(const SearchRequest& request, const planner::SearchResult& result, nlohmann::json& out) {
  std::vector<Candidate> candidates = result.best;
  candidates.insert(candidates.end(), result.others.begin(), result.others.end());
  if (candidates.size() > kRobustCandidates) candidates.resize(kRobustCandidates);
  const planner::Robustness r = planner::robustness(request, candidates, kCostError);
  Table table({"<if", "<then fastest", "the chosen plan loses"});
  nlohmann::json cases = nlohmann::json::array();
  for (const planner::Robustness::Case& one : r.cases) {
    table.add({one.change, one.stays ? "the chosen plan" : one.winner, percent(one.regret)});
    cases.push_back(
        {{"change", one.change}, {"winner", one.winner}, {"stays_best", one.stays}, {"regret", one.regret}});
  }
  out["robustness"] = {{"cost_error", kCostError},
                       {"candidates", candidates.size()},
                       {"stays_best", r.stays},
                       {"worst_regret", r.worst_regret},
                       {"cases", std::move(cases)}};
  return "\n" + table.text() +
         fmt::format(
             "of the {} best plans the chosen one {}\n", candidates.size(),
             r.stays ? "stays the fastest in all cases" : fmt::format("loses {} at most", percent(r.worst_regret)));
}

}  // namespace

void add_study_options(CLI::App& command, StudyOptions& options) {
  const char* group = "Studies";
  command.add_option("--deadline", options.deadline, "Find the fewest nodes that train --tokens in this time")
      ->type_name("TIME")
      ->group(group);
  command.add_option("--batch-range", options.batch_range, "Best plan for batches from LEAST to MOST, doubling")
      ->type_name("LEAST:MOST")
      ->group(group);
  command
      .add_option("--sequence-range", options.sequence_range,
                  "Best plan for sequences from LEAST to MOST, doubling; the tokens of a step stay")
      ->type_name("LEAST:MOST")
      ->group(group);
  command
      .add_option("--critical-batch", options.critical_batch,
                  "Batch in tokens beyond which more samples hardly save steps")
      ->type_name("TOKENS")
      ->group(group);
  command
      .add_flag("--pareto", options.pareto,
                "Plans that are faster or smaller than all others; with --tokens also counts of nodes that are "
                "faster or cheaper")
      ->group(group);
  command
      .add_option("--jitter", options.jitter, "How sure the answer is if every op takes this share longer or shorter")
      ->type_name("SHARE")
      ->group(group);
  command.add_flag("--sensitivity", options.sensitivity, "What faster links, more memory or more nodes would gain")
      ->group(group);
  command.add_flag("--robustness", options.robustness, "Does the plan stay best if costs are 10 % off?")->group(group);
}

void check_study_options(const StudyOptions& options, const JobRequest& request) {
  if (!options.batch_range.empty()) batches_of(options.batch_range);
  if (!options.sequence_range.empty()) sequences_of(options.sequence_range);
  if (!options.jitter.empty()) {
    DisturbanceOptions how;
    how.jitter = options.jitter;
    disturbance_of(how);
  }
  if (!options.critical_batch.empty() && options.batch_range.empty())
    fail_usage("--critical-batch needs --batch-range");
  if (options.deadline.empty()) return;
  const auto limit = base::parse_seconds(options.deadline);
  if (!limit) fail_usage("--deadline: " + limit.error().message);
  if (request.file.job.training.total_tokens == 0)
    fail_usage("--deadline needs --tokens, the tokens of the whole training");
  if (!request.cluster.homogeneous()) fail_usage("--deadline needs a cluster of one kind of node");
}

void add_whole_training(const SearchRequest& request, const Candidate& best, nlohmann::json& out) {
  if (const auto whole = training_of(request, best)) out["whole_training"] = training_json(request.cluster, *whole);
}

std::string study(const StudyOptions& options, const SearchRequest& request, const planner::SearchResult& result,
                  const Effort& effort, nlohmann::json& out) {
  std::string text;
  if (!options.jitter.empty() && !result.best.empty()) {
    text += uncertainty(options, request, result.best.front(), out);
  }
  if (options.pareto) text += pareto(request, effort, out) + cost_front(request, effort, out);
  if (!options.deadline.empty()) text += deadline(options, request, effort, out);
  if (!options.batch_range.empty()) text += batches(options, request, effort, out);
  if (!options.sequence_range.empty()) text += sequences(options, request, effort, out);
  if (options.sensitivity && !result.best.empty()) text += sensitivity(request, result.best.front(), effort, out);
  if (options.robustness && !result.best.empty()) text += robustness(request, result, out);
  return text;
}

}  // namespace trivium::cli
