#include "cli/render/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/render/figures.h"
#include "cli/render/render.h"
#include "planner/space/held.h"
#include "planner/space/space.h"
#include "planner/space/usual_values.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::cli {
namespace {

std::vector<planner::Rejected> by_count(std::vector<planner::Rejected> rejected) {
  std::stable_sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) { return a.plans > b.plans; });
  return rejected;
}

/// Rules that no split can meet: they are about the job and the devices.
bool concerns_the_job(const planner::Rejected& rejected) {
  static const std::set<std::string> kRules{"precision",
                                            "flash-attention",
                                            "sequence-has-positions",
                                            "experts-supported",
                                            "parallel_block-supported",
                                            "stack-known",
                                            "fp8",
                                            "fp8-beside-bf16"};
  return kRules.contains(rejected.rule);
}

/// The one reason that refuses every plan of the space, or null.
const planner::Rejected* one_reason(const planner::SearchResult& result) {
  if (result.rejected.empty() || result.plans_infeasible != result.plans_in_space) return nullptr;
  const auto of_job = std::find_if(result.rejected.begin(), result.rejected.end(), concerns_the_job);
  if (of_job != result.rejected.end()) return &*of_job;
  const planner::Rejected& first = result.rejected.front();
  const bool all = std::all_of(result.rejected.begin(), result.rejected.end(), [&](const planner::Rejected& r) {
    return r.rule == first.rule && r.reason == first.reason;
  });
  return all ? &first : nullptr;
}

std::string count(std::int64_t plans) { return integer(static_cast<double>(plans)); }

std::string candidates_table(const std::vector<planner::Candidate>& candidates, const char* title) {
  const program::Plan& any = candidates.front().plan;  // a search has one arithmetic
  Table table({"#", title, "iteration", "expected", "90 % from", "to", "tokens/s", simulator::mfu_title("MFU", any),
               simulator::mfu_title("HFU", any), "peak memory", "fits"});
  int place = 0;
  for (const planner::Candidate& candidate : candidates) {
    const simulator::Simulation& s = candidate.simulation;
    const simulator::PredictionInterval& within = s.certainty.iteration_s;
    table.add({std::to_string(++place), program::summary(candidate.plan), seconds(s.iteration_s),
               seconds_beside(s.certainty.expected_s, s.iteration_s), seconds_beside(within.low, s.iteration_s),
               seconds_beside(within.high, s.iteration_s), integer(s.tokens_per_s), percent(s.mfu), percent(s.hfu),
               size(s.peak_memory_bytes), simulator::probability_text(s.certainty.fit_probability)});
  }
  return table.text();
}

/// The next best plan that is shown, or null.
const planner::Candidate* second(const planner::SearchResult& result) {
  if (result.best.size() > 1) return &result.best[1];
  return result.others.empty() ? nullptr : &result.others.front();
}

double beats(const planner::Candidate& first, const planner::Candidate& other) {
  return simulator::beats_probability(first.simulation.iteration_s, other.simulation.iteration_s,
                                      first.simulation.certainty);
}

/// How sure the figures are, and what was kept free for the plan to fit.
std::string certainty_lines(const planner::SearchRequest& wanted, const planner::SearchResult& result) {
  const planner::Candidate& first = result.best.front();
  std::string text = "certainty: " + first.simulation.certainty.words;
  if (const planner::Candidate* other = second(result)) {
    text += fmt::format("; measured, the first beats the {} with probability {}",
                        result.best.size() > 1 ? "second" : "best of other families",
                        simulator::probability_text(beats(first, *other)));
  }
  const std::string room = planner::room_text(wanted);
  return text + (room.empty() ? "" : "; " + room + " (--fit-probability)") + "\n";
}

/// Devices of a heterogeneous cluster that the plan leaves idle, by name.
std::map<std::string, int> unused_devices(const program::Plan& plan, const hardware::Cluster& cluster) {
  std::map<std::string, int> unused;
  if (cluster.homogeneous()) return unused;
  for (const hardware::NodeGroup& group : cluster.groups) {
    unused[group.node.device.name] += group.count * group.node.devices;
  }
  const simulator::PlacedCluster placed(plan, cluster);
  int left = plan.ranks();  // ranks fill the nodes in order
  for (const hardware::NodeGroup& group : placed.get().groups) {
    const int used = std::min(left, group.count * group.node.devices);
    unused[group.node.device.name] -= used;
    left -= used;
  }
  std::erase_if(unused, [](const auto& one) { return one.second <= 0; });
  return unused;
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

std::string rejected_table(const planner::SearchResult& result) {
  Table table({"plans", "<rejected", "<why"});
  for (const planner::Rejected& one : by_count(result.rejected)) {
    table.add({count(one.plans), one.family, one.reason});
  }
  return table.text();
}

/// What a user can do about a rule that no plan can meet.
std::string remedy(const std::string& rule) {
  if (rule == "precision") return "; choose one it has with --precision";
  if (rule == "fp8") return "; choose another recipe with --fp8, or none";
  if (rule == "flash-attention") return "; use --attention unfused";
  if (rule == "sequence-has-positions") return "; use a shorter --sequence";
  if (rule == "devices" || rule == "ranks-match") return "; take fewer with --ranks, or a larger --cluster";
  if (rule == "batch-divides") return "; change --global-batch, --data or --micro-batch";
  return "";
}

}  // namespace

nlohmann::json candidate_json(const planner::Candidate& candidate) {
  nlohmann::json json = headline_json(candidate.simulation, candidate.plan);
  json["plan"] = program::to_json(candidate.plan);
  return json;
}

nlohmann::json result_json(const JobRequest& request, const planner::SearchRequest& wanted,
                           const planner::SearchResult& result) {
  nlohmann::json json = program::to_json(request.file);
  json.erase("plan");
  json["schema"] = "trivium.plan-result/1";
  const auto listed = [](const planner::Candidate& candidate, bool proved) {
    nlohmann::json one = candidate_json(candidate);
    one["proved"] = proved;
    return one;
  };
  json["best"] = result.best.empty() ? nlohmann::json() : listed(result.best.front(), result.proved);
  auto& top = json["top"] = nlohmann::json::array();
  for (const planner::Candidate& candidate : result.best) top.push_back(listed(candidate, result.proved));
  auto& others = json["others"] = nlohmann::json::array();
  for (const planner::Candidate& candidate : result.others) others.push_back(listed(candidate, false));
  for (const auto& candidate : others) top.push_back(candidate);
  if (const planner::Candidate* other = second(result); other != nullptr && !result.best.empty()) {
    json["best"]["beats_second_probability"] = top[0]["beats_second_probability"] = beats(result.best.front(), *other);
  }
  json["search"] = {{"plans_in_space", result.plans_in_space},
                    {"plans_forbidden", result.plans_forbidden},
                    {"plans_infeasible", result.plans_infeasible},
                    {"plans_bounded", result.plans_bounded},
                    {"plans_simulated", result.plans_simulated},
                    {"nodes_opened", result.nodes_opened},
                    {"proved", result.proved},
                    {"bound_s", result.bound_s},
                    {"best_s", result.best_s},
                    {"seconds", result.seconds}};
  auto& missing = json["missing"] = nlohmann::json::array();
  for (const planner::Missing& one : planner::missing_values(wanted)) {
    missing.push_back({{"field", one.field}, {"value", one.value}, {"why", one.why}, {"usual_in", one.in}});
  }
  auto& held = json["search"]["space"]["held"] = nlohmann::json::array();
  for (const planner::Held& one : planner::held_fields(wanted)) {
    held.push_back({{"field", one.field}, {"value", one.value}, {"why", one.why}});
  }
  if (result.nodes_used > 0) {
    json["search"]["idle_nodes"] = {{"nodes_used", result.nodes_used}};
  }
  if (!result.best.empty() && !request.cluster.homogeneous()) {
    json["search"]["unused_devices"] = unused_devices(result.best.front().plan, request.cluster);
  }
  for (const planner::Alternative& a : result.alternatives) {
    json["alternatives"].push_back({{"name", a.name},
                                    {"nodes", a.nodes},
                                    {"best", a.best ? candidate_json(*a.best) : nlohmann::json()},
                                    {"why_not", a.why_not},
                                    {"plans", a.plans}});
  }
  auto& rejected = json["rejected"] = nlohmann::json::array();
  for (const planner::Rejected& r : result.rejected) {
    rejected.push_back({{"family", r.family}, {"rule", r.rule}, {"reason", r.reason}, {"plans", r.plans}});
  }
  return json;
}

std::vector<std::string> idle_notes(const JobRequest& request, const planner::SearchResult& result) {
  std::vector<std::string> notes;
  if (result.nodes_used > 0) {
    notes.push_back(fmt::format("{} of {} nodes are used: none was found on all of them that is faster",
                                result.nodes_used, request.cluster.nodes()));
  }
  if (result.best.empty()) return notes;
  for (const auto& [device, devices] : unused_devices(result.best.front().plan, request.cluster)) {
    notes.push_back(fmt::format("{} {} not used", devices, device));
  }
  return notes;
}

std::string details_report(const planner::SearchRequest& wanted, const planner::SearchResult& result) {
  std::string text;
  if (!result.best.empty()) text += candidates_table(result.best, "<plan") + "\n";
  if (!result.others.empty())
    text += candidates_table(result.others, "<other families, the best plan of each to 0.5 %") + "\n";
  if (!result.alternatives.empty()) text += alternatives_table(result) + "\n";
  if (!result.rejected.empty() && one_reason(result) == nullptr) text += rejected_table(result) + "\n";
  text += fmt::format("{} plans: {} refused, {} proved slower by a bound, {} simulated, in {}\n",
                      count(result.plans_in_space), count(result.plans_infeasible), count(result.plans_bounded),
                      count(result.plans_simulated), seconds(result.seconds));
  if (!result.best.empty()) text += certainty_lines(wanted, result);
  if (!result.best.empty()) text += fmt::format("not searched: {}\n", planner::text_of(planner::held_fields(wanted)));
  if (result.plans_forbidden > 0) {
    text +=
        fmt::format("{} more plans are left out by bounds, given or usual (--allow)\n", count(result.plans_forbidden));
  }
  return text;
}

std::string space_report(const planner::SearchRequest& request, const planner::SearchResult& result) {
  constexpr std::size_t kValuesShown = 16;
  Table table({"<field", "values", "<"});
  for (const auto& [field, values] : planner::fields_of(request)) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kValuesShown, values.size()); ++i) {
      text += (i == 0 ? "" : " ") + (values[i].empty() ? "-" : values[i]);
    }
    if (values.size() > kValuesShown)
      text = fmt::format("{} to {}", values.front().empty() ? "-" : values.front(), "…");
    table.add({field, std::to_string(values.size()), request.fixed.contains(field) ? text + " (fixed)" : text});
  }
  const planner::Space space(request);
  Table splits({"<split", "micro-batches", "layouts", "plans each", "plans"});
  std::int64_t all = 0;
  for (const auto& [family, part] : planner::parts_of(space)) {
    splits.add({family, std::to_string(part.micro_batches), std::to_string(part.layouts),
                count(part.plans / part.micro_batches), count(part.plans)});
    all += part.plans;
  }
  std::string text = table.text() + "\n" + splits.text() + fmt::format("{} plans\n\n", count(all));
  if (result.alternatives.empty()) return text;
  Table ways({"<nodes used as", "plans"});
  for (const planner::Alternative& way : result.alternatives) ways.add({way.name, count(way.plans)});
  return text + ways.text() + fmt::format("{} plans\n\n", count(result.plans_in_space));
}

nlohmann::json space_json(const planner::SearchRequest& request) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [field, values] : planner::fields_of(request)) json["fields"][field] = values;
  const planner::Space space(request);
  for (const auto& [family, part] : planner::parts_of(space)) {
    json["splits"].push_back(
        {{"family", family}, {"micro_batches", part.micro_batches}, {"layouts", part.layouts}, {"plans", part.plans}});
  }
  return json;
}

std::string nothing_fits(const planner::SearchRequest& wanted, const planner::SearchResult& result,
                         const std::vector<planner::Relaxation>& relaxations) {
  std::string text = "no plan fits";
  if (result.rejected.empty()) {
    text += fmt::format(": the given bounds leave none of {} plans", result.plans_forbidden);
  } else if (const planner::Rejected* one = one_reason(result)) {
    text += fmt::format("; {}, whatever the split ({}){}", one->reason, one->rule, remedy(one->rule));
  } else {
    const planner::Rejected most = by_count(result.rejected).front();
    text += fmt::format("; {} of {} plans like {}: {}", most.plans, result.plans_in_space, most.family, most.reason);
  }
  for (std::size_t i = 0; i < relaxations.size(); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "; fits " : ", or ", relaxations[i].words,
                        seconds(relaxations[i].best.simulation.iteration_s));
  }
  const bool full = std::ranges::any_of(
      result.rejected, [](const planner::Rejected& one) { return one.rule == simulator::kMemoryRule; });
  const std::string room = planner::room_text(wanted);
  return !full || room.empty() ? text : text + "; " + room + " (--fit-probability 0: whole)";
}

nlohmann::json relaxations_json(const std::vector<planner::Relaxation>& relaxations) {
  auto json = nlohmann::json::array();
  for (const planner::Relaxation& relaxation : relaxations) {
    nlohmann::json one = candidate_json(relaxation.best);
    one["words"] = relaxation.words;
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace trivium::cli
