// trivium plan: the fastest plans that fit, and why the others are not among them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/interrupts.h"
#include "cli/options.h"
#include "cli/render.h"
#include "edge/error.h"
#include "edge/files.h"
#include "planner/search.h"
#include "program/job_json.h"

namespace trivium::cli {
namespace {

constexpr std::size_t kRejectedShown = 10;
constexpr int kMostBest = 10'000;
constexpr int kMostThreads = 4096;

struct Options {
  JobOptions job;
  std::string output;
  int best = 10;
  int threads = 0;
  bool ignore_memory = false;
  bool all = false;
  bool json = false;
};

nlohmann::json candidate_json(const planner::Candidate& candidate) {
  nlohmann::json json = headline_json(candidate.simulation);
  json["plan"] = program::to_json(candidate.plan);
  return json;
}

nlohmann::json result_json(const JobRequest& request, const planner::SearchResult& result) {
  nlohmann::json json = program::to_json(request.file);
  json.erase("plan");
  json["schema"] = "trivium.plan-result/1";
  json["best"] = result.best.empty() ? nlohmann::json() : candidate_json(result.best.front());
  auto& top = json["top"] = nlohmann::json::array();
  for (const planner::Candidate& candidate : result.best) top.push_back(candidate_json(candidate));
  json["search"] = {{"plans_in_space", result.plans_in_space},
                    {"plans_infeasible", result.plans_infeasible},
                    {"plans_bounded", result.plans_bounded},
                    {"plans_simulated", result.plans_simulated},
                    {"proved", result.proved},
                    {"seconds", result.seconds}};
  for (const planner::Alternative& a : result.alternatives) {
    json["alternatives"].push_back({{"name", a.name},
                                    {"nodes", a.nodes},
                                    {"best", a.best ? candidate_json(*a.best) : nlohmann::json()},
                                    {"why_not", a.why_not}});
  }
  auto& rejected = json["rejected"] = nlohmann::json::array();
  for (const planner::Rejected& r : result.rejected) {
    rejected.push_back({{"family", r.family}, {"rule", r.rule}, {"reason", r.reason}, {"plans", r.plans}});
  }
  return json;
}

std::vector<planner::Rejected> by_count(std::vector<planner::Rejected> rejected) {
  std::stable_sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) { return a.plans > b.plans; });
  return rejected;
}

std::string best_table(const planner::SearchResult& result) {
  Table table({"#", "<plan", "iteration", "tokens/s", "MFU", "HFU", "peak memory"});
  int place = 0;
  for (const planner::Candidate& candidate : result.best) {
    const simulator::Simulation& s = candidate.simulation;
    table.add({std::to_string(++place), program::summary(candidate.plan), seconds(s.iteration_s),
               integer(s.tokens_per_s), percent(s.mfu), percent(s.hfu), size(s.peak_memory_bytes)});
  }
  return table.text();
}

std::string alternatives_table(const planner::SearchResult& result) {
  Table table({"<nodes", "<", "iteration", "tokens/s", "<best plan"});
  for (const planner::Alternative& a : result.alternatives) {
    if (a.best) {
      table.add({a.name, a.nodes, seconds(a.best->simulation.iteration_s), integer(a.best->simulation.tokens_per_s),
                 program::summary(a.best->plan)});
    } else {
      table.add({a.name, a.nodes, "-", "-", a.why_not});
    }
  }
  return table.text();
}

std::string rejected_table(const planner::SearchResult& result, bool all) {
  const std::vector<planner::Rejected> rejected = by_count(result.rejected);
  const std::size_t shown = all ? rejected.size() : std::min(kRejectedShown, rejected.size());
  Table table({"plans", "<rejected", "<why"});
  for (std::size_t i = 0; i < shown; ++i) {
    table.add({integer(static_cast<double>(rejected[i].plans)), rejected[i].family, rejected[i].reason});
  }
  std::string text = table.text();
  if (shown < rejected.size()) text += fmt::format("  and {} more families (--all)\n", rejected.size() - shown);
  return text;
}

std::string report(const JobRequest& request, const planner::SearchResult& result, const Options& options) {
  const program::Job& job = request.file.job;
  std::string text = fmt::format("{} on {}, batch {} x {} tokens\n\n", heading(job.model.name), request.cluster.name,
                                 job.training.global_batch, job.training.sequence);
  if (options.ignore_memory) text += "hypothetical: memory is ignored\n\n";
  if (!result.best.empty()) text += best_table(result) + "\n";
  if (!result.alternatives.empty()) text += alternatives_table(result) + "\n";
  if (!result.rejected.empty()) text += rejected_table(result, options.all) + "\n";
  text += fmt::format("{} plans: {} refused, {} proved slower by a bound, {} simulated, in {}{}\n",
                      integer(static_cast<double>(result.plans_in_space)),
                      integer(static_cast<double>(result.plans_infeasible)),
                      integer(static_cast<double>(result.plans_bounded)),
                      integer(static_cast<double>(result.plans_simulated)), seconds(result.seconds),
                      result.proved ? "; no plan of the space is faster" : "; stopped early, others may be faster");
  return text;
}

planner::SearchResult search(const JobRequest& request, const Options& options, const Interrupts& interrupts) {
  planner::SearchRequest wanted{request.file.job, request.cluster, request.fixed,
                                request.ranks,    options.best,    options.ignore_memory};
  ProgressLine line;
  return planner::search(
      wanted, options.threads, interrupts.token(), [&](std::int64_t done, std::int64_t in_all, double best_s) {
        line.show(fmt::format("{} of {} plans{}", done, in_all, best_s > 0 ? ", best " + seconds(best_s) : ""));
      });
}

/// What to say when nothing fits: the commonest reason stands for all.
std::string nothing_fits(const planner::SearchResult& result) {
  if (result.rejected.empty()) return "no plan fits: the search space is empty";
  const planner::Rejected most = by_count(result.rejected).front();
  return fmt::format("no plan fits; {} of {} plans like {}: {}", most.plans, result.plans_in_space, most.family,
                     most.reason);
}

int run(const Options& options) {
  const JobRequest request = resolve(options.job);
  const Interrupts interrupts;
  const planner::SearchResult result = search(request, options, interrupts);
  if (options.json) {
    print_json(result_json(request, result));
  } else {
    print(report(request, result, options));
  }
  if (!options.output.empty() && !result.best.empty()) {
    program::PlanFile file = request.file;
    file.job.plan = result.best.front().plan;
    edge::write_file_atomically(options.output, program::to_json(file).dump(2) + "\n");
  }
  if (interrupts.happened()) {
    throw edge::Failure(edge::ErrorKind::kInterrupted, result.best.empty()
                                                           ? "interrupted before any plan was simulated"
                                                           : "interrupted; the best plans so far were kept");
  }
  if (result.best.empty()) throw edge::Failure(edge::ErrorKind::kNoPlan, nothing_fits(result));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "Search the fastest plan that fits; given plan options stay fixed");
  add_job_options(*command, options->job);
  command->add_option("-o,--output", options->output, "Write the best plan's file")->type_name("FILE");
  command->add_option("--best", options->best, "How many plans to show")
      ->check(CLI::Range(1, kMostBest))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads of the search; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_flag("--ignore-memory", options->ignore_memory, "Also plans that do not fit");
  command->add_flag("--all", options->all, "Every rejected family");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace trivium::cli
