#include "cli/render/plan_beside.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/render/figures.h"
#include "cli/render/render.h"
#include "planner/advice/measured.h"
#include "program/plan/job_json.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::cli {
namespace {

std::string naive_ways(const std::vector<planner::Baseline>& ways, const planner::Candidate& best,
                       nlohmann::json& json) {
  Table table(
      {"<against", "iteration", "speed-up", "less time", "busy", simulator::mfu_title("MFU", best.plan), "<plan"});
  const auto row = [&](const std::string& name, const planner::Candidate& c, const std::string& factor,
                       const std::string& saved) {
    table.add({name, seconds(c.simulation.iteration_s), factor, saved, percent(planner::busy_share(c.simulation)),
               percent(c.simulation.mfu), program::summary(c.plan)});
  };
  row("this plan", best, "", "");
  json["baselines"] = {{"busy", planner::busy_share(best.simulation)}, {"ways", nlohmann::json::array()}};
  for (const planner::Baseline& way : ways) {
    nlohmann::json one{{"name", way.name}, {"words", way.words}};
    if (way.runs) {
      const double factor = planner::speed_up(way, best);
      row(way.name, *way.runs, fmt::format("{:.1f} x", factor), percent(1 - 1 / factor));
      one.update(headline_json(way.runs->simulation, way.runs->plan));
      one["plan"] = program::to_json(way.runs->plan);
      one["speed_up"] = factor;
      one["busy"] = planner::busy_share(way.runs->simulation);
    } else {
      one["why_not"] = way.why_not;
      table.add({way.name, "-", "-", "-", "-", "-", way.why_not});
    }
    json["baselines"]["ways"].push_back(std::move(one));
  }
  return table.text();
}

}  // namespace

std::string beside(const planner::SearchRequest& request, const planner::SearchResult& result,
                   const std::vector<planner::Baseline>& naive, nlohmann::json& json) {
  if (result.best.empty()) return "";
  const planner::Candidate& best = result.best.front();
  std::string text = "\n" + naive_ways(naive, best, json);
  program::Job job = request.job;
  job.plan = best.plan;
  const auto promise = planner::plausibility_of(job, request.cluster, best.simulation, hardware::measured_mfu());
  const std::string run = planner::same_model_text(job, request.cluster, best.simulation, hardware::measured_runs());
  if (!run.empty()) json["published_run"] = run;
  const std::string published = run.empty() ? "" : "\n" + run + "\n";
  if (!promise) return text + published;
  json["promise"] = {{"measured_mfu", promise->measured}, {"above", promise->above}, {"words", promise->words}};
  return text + "\n" + promise->words + "\n" + published;
}

std::string other_batch(const planner::SearchRequest& request, const planner::SearchResult& result,
                        const planner::Effort& effort, nlohmann::json& json) {
  const auto near = planner::nearest_batch(request, result, effort);
  if (!near) return "";
  nlohmann::json one = headline_json(near->best.simulation, near->best.plan);
  one["global_batch"] = near->global_batch;
  one["gain"] = near->gain;
  one["plan"] = program::to_json(near->best.plan);
  json["nearest_batch"] = std::move(one);
  return fmt::format(
      "a batch of {} instead of {} divides into all {} devices: {} more samples a second, {} an iteration",
      near->global_batch, request.job.training.global_batch, request.cluster.devices(), percent(near->gain),
      seconds(near->best.simulation.iteration_s));
}

}  // namespace trivium::cli
