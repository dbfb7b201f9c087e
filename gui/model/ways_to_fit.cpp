#include "gui/model/ways_to_fit.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/advice/relax.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kLookedAt = 64;

/// The plan as it is but for one field at a time: the replicas follow, and lists that say nothing stay open.
planner::SearchRequest one_thing_open(const Scenario& scenario) {
  planner::SearchRequest request = search_request(scenario, 1);
  const program::Plan& plan = scenario.file.job.plan;
  request.ignore_memory = false;
  request.ranks = plan.ranks() < scenario.cluster.devices() ? plan.ranks() : 0;
  for (const program::PlanField& field : program::plan_field_table()) {
    const std::string value = program::text_of(plan, field.name);
    if (field.name != std::string_view("data") && !(field.is_list() && value.empty())) request.fixed.insert(field.name);
  }
  return request;
}

WayToFit way_of(const planner::Relaxation& found, const Scenario& scenario) {
  WayToFit way{found.words, scenario, found.best.simulation.iteration_s, found.best.simulation.peak_memory_bytes};
  way.scenario.file.job = found.job;
  if (found.cluster.devices() != scenario.cluster.devices()) {
    const std::string kind = found.cluster.groups.front().node.name;
    const bool by_name = scenario.file.cluster.is_string() && scenario.cluster.groups.size() == 1 &&
                         scenario.file.cluster.get<std::string>().starts_with(kind + ":");
    way.scenario = by_name ? with_cluster(way.scenario, kind + ":" + std::to_string(found.cluster.nodes()))
                           : with_cluster(way.scenario, found.cluster);
  }
  return way;
}

bool has_more_devices(const WayToFit& way, const Scenario& than) {
  return way.scenario.cluster.devices() > than.cluster.devices();
}

}  // namespace

std::vector<WayToFit> ways_to_fit(const Evaluation& evaluation, std::size_t most, const std::stop_token& stop) {
  const Scenario& scenario = evaluation.scenario;
  std::vector<WayToFit> ways;
  std::vector<nlohmann::json> known;
  for (const planner::Relaxation& found : planner::relaxations(one_thing_open(scenario), kLookedAt, {0, stop})) {
    WayToFit way = way_of(found, scenario);
    nlohmann::json file = program::to_json(way.scenario.file);
    if (std::find(known.begin(), known.end(), file) != known.end()) continue;
    known.push_back(std::move(file));
    ways.push_back(std::move(way));
  }
  if (stop.stop_requested()) return {};
  std::stable_sort(ways.begin(), ways.end(), [&](const WayToFit& a, const WayToFit& b) {
    return std::pair(has_more_devices(a, scenario), a.iteration_s) <
           std::pair(has_more_devices(b, scenario), b.iteration_s);
  });
  if (ways.size() > most && has_more_devices(ways.back(), scenario)) std::swap(ways[most - 1], ways.back());
  if (ways.size() > most) ways.resize(most);
  return ways;
}

}  // namespace trivium::gui
