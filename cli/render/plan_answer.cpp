#include "cli/render/plan_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "cli/render/figures.h"
#include "cli/render/page.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "planner/advice/measured.h"
#include "planner/space/usual_values.h"
#include "simulator/certainty/brief_text.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::cli {
namespace {

constexpr std::size_t kMostOthers = 3;
constexpr std::size_t kTwoLines = 2, kThreeLines = 3;

std::string million_text(std::int64_t plans) {
  constexpr double kMillion = 1e6, kBillion = 1e9;
  const auto value = static_cast<double>(plans);
  if (value >= kBillion) return fmt::format("{:.1f} billion", value / kBillion);
  return value >= kMillion ? fmt::format("{:.1f} million", value / kMillion) : integer(value);
}

/// A plan's split, up to its micro-batch, and after it the words that the summary of `best` does not have.
std::string split_words(const program::Plan& plan, const program::Plan& best) {
  std::istringstream of_best(program::summary(best)), of_plan(program::summary(plan));
  std::set<std::string> known;
  std::string text;
  bool is_split = true;
  for (std::string word; of_best >> word;) known.insert(word);
  for (std::string word; of_plan >> word; is_split = is_split && !word.starts_with("mb")) {
    if (is_split || !known.contains(word)) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

program::Job job_of(const planner::SearchRequest& wanted, const planner::Candidate& candidate) {
  program::Job job = wanted.job;
  job.plan = candidate.plan;
  return job;
}

std::string answer_of(const planner::SearchResult& result, bool own_runtime) {
  if (result.best.empty()) return result.proved ? "No plan fits." : "Stopped before any plan was simulated.";
  return expected_sentence(result.best.front().simulation, result.best.front().plan) +
         (own_runtime ? " Priced for Trivium's own runtime, which has never run on several GPUs." : "");
}

std::string room_row(const planner::SearchRequest& wanted, const simulator::Simulation& s) {
  const auto fullest = std::ranges::max_element(s.stages, {}, [](const simulator::StageResult& stage) {
    return static_cast<double>(stage.memory.total()) / static_cast<double>(stage.memory.capacity);
  });
  if (fullest == s.stages.end()) return "";
  const double usable = wanted.cluster.groups.front().node.device.usable;
  const auto whole = static_cast<std::int64_t>(std::llround(static_cast<double>(fullest->memory.capacity) / usable));
  const std::string used = fmt::format("{} of {} a device", size(fullest->memory.total()), size(whole));
  if (wanted.ignore_memory) return used + "; hypothetical: memory is ignored";
  return used + "; fits with probability " + simulator::probability_text(s.certainty.fit_probability);
}

std::string training_row(const planner::SearchRequest& wanted, const planner::Candidate& best) {
  const program::Job job = job_of(wanted, best);
  const auto whole = simulator::whole_training(job, wanted.cluster, best.simulation);
  return whole ? training_sentence(job, wanted.cluster, *whole) : "";
}

/// Nodes and devices that the plan leaves idle; on heterogeneous nodes what other ways to use them would take.
std::string nodes_row(const JobRequest& request, const planner::SearchResult& result) {
  const planner::Candidate& best = result.best.front();
  std::vector<std::string> ways;
  for (const planner::Alternative& way : result.alternatives) {
    if (!way.best || program::summary(way.best->plan) == program::summary(best.plan)) continue;
    const double slower = way.best->simulation.iteration_s / best.simulation.iteration_s - 1;
    ways.push_back(fmt::format("{} {:+.1f} %", way.name, 100 * slower));
  }
  std::vector<std::string> notes = idle_notes(request, result);
  if (!ways.empty()) notes.push_back(fmt::format("other ways: {}", fmt::join(ways, ", ")));
  return fmt::format("{}", fmt::join(notes, "; "));
}

/// What the trainer's own recipes usually have and the search left out.
std::string missing_row(const planner::SearchRequest& wanted) {
  std::vector<std::string> missing;
  for (const planner::Missing& one : planner::missing_values(wanted)) {
    missing.push_back(fmt::format("{} {} ({}; {})", one.field, one.value, one.in, one.why));
  }
  return fmt::format("{}", fmt::join(missing, "; "));
}

/// The nodes that the plan uses, in the order in which its ranks fill them.
hardware::Cluster used_nodes(const program::Plan& plan, const hardware::Cluster& cluster) {
  hardware::Cluster used = simulator::PlacedCluster(plan, cluster).get();
  int left = plan.ranks();
  const auto first_idle = std::ranges::find_if(used.groups, [&](const hardware::NodeGroup& group) {
    const bool is_idle = left <= 0;
    left -= group.count * group.node.devices;
    return is_idle;
  });
  used.groups.erase(first_idle, used.groups.end());
  return used;
}

/// What the search proved, rounded up: the share is a promise.
std::string proof_row(const planner::SearchResult& result) {
  constexpr double kRounding = 0.02;  // of a tenth of a percent: 0.1001 %, of 0.1 % of the slower, is 0.1 %
  const std::string plans = million_text(result.plans_in_space);
  if (result.best.empty()) {
    return fmt::format("{} plans, {} of them refused{}", plans, million_text(result.plans_infeasible),
                       result.proved ? "" : "; stopped early");
  }
  if (result.proved && result.bound_s >= result.best_s) {
    return fmt::format("no plan of {} is faster on the simulator", plans);
  }
  if (result.bound_s <= 0) return fmt::format("stopped early: others of {} plans may be faster", plans);
  const double above = std::ceil(1000 * (result.best_s / result.bound_s - 1) - kRounding) / 10;
  return fmt::format("{}within {:.1f} % of the optimum of {} plans", result.proved ? "" : "stopped early: ", above,
                     plans);
}

std::string published_row(const planner::SearchRequest& wanted, const planner::Candidate& best) {
  const program::Job job = job_of(wanted, best);
  const auto run = planner::same_model_run(job, wanted.cluster, best.simulation, hardware::measured_runs());
  const auto promise = planner::plausibility_of(job, wanted.cluster, best.simulation, hardware::measured_mfu());
  std::string text;
  if (run) {
    const hardware::MeasuredRun& r = run->run;
    text =
        fmt::format("{} {}, {} ({}); this plan {:+.1f} % tokens/s{}", seconds(r.iteration_s),
                    run->same_job ? "for this job"
                                  : fmt::format("on {} devices, batch {} x {}", r.devices, r.global_batch, r.sequence),
                    r.plan, r.run, 100 * run->faster, run->same_job ? "" : " per device");
  } else if (promise) {
    text = fmt::format("MFU of up to {} on such devices", percent(promise->measured));
  }
  const bool unproved = promise && promise->above;
  return text + (unproved && run
                     ? fmt::format(" (unproved: more MFU than the published {})", percent(promise->measured))
                 : unproved ? "; more is unproved"
                            : "");
}

std::string next_row(const planner::SearchResult& result, const PlanNotes& notes) {
  if (result.best.empty()) return "--all prints the reasons, family by family";
  if (notes.output.empty()) return "-o plan.json; trivium explain, simulate, export it; --all for more";
  return fmt::format("trivium explain {}, or simulate, export it; --all for more", notes.output);
}

/// Of the plans next to the best those that the page lists.
std::string others_block(const planner::SearchResult& result, std::size_t most, std::size_t columns) {
  std::vector<const planner::Candidate*> others;
  for (std::size_t i = 1; i < result.best.size(); ++i) others.push_back(&result.best[i]);
  for (const planner::Candidate& other : result.others) others.push_back(&other);
  others.resize(std::min(others.size(), most));
  if (others.empty()) return "";
  const planner::Candidate& best = result.best.front();
  Table table({"expected", "difference", "<other splits"});
  for (const planner::Candidate* other : others) {
    const simulator::Simulation& s = other->simulation;
    table.add({seconds_beside(s.certainty.expected_s, s.iteration_s),
               fmt::format("{:+.1f} %", 100 * (s.certainty.expected_s / best.simulation.certainty.expected_s - 1)),
               split_words(other->plan, best.plan)});
  }
  return table.text(columns);
}

/// The first clause of why a trainer has no plan.
std::string short_reason(const TrainerAnswer& trainer) {
  const std::string option = fmt::format("--for {}: ", trainer.name);
  const std::string& why = trainer.why_not;
  const std::size_t first = why.starts_with(option) ? option.size() : 0;
  return why.substr(first, why.find(';') - first);
}

std::string trainers_block(const std::vector<TrainerAnswer>& trainers, std::size_t columns) {
  if (trainers.empty()) return "";
  Table table({"<trainer (--for)", "expected", "90 % from", "to", "<best plan"});
  for (const TrainerAnswer& trainer : trainers) {
    if (!trainer.best) {
      table.add({trainer.name, "-", "-", "-", short_reason(trainer)});
      continue;
    }
    const simulator::Simulation& s = trainer.best->simulation;
    table.add(
        {trainer.name, seconds_beside(s.certainty.expected_s, s.iteration_s),
         seconds_beside(s.certainty.iteration_s.low, s.iteration_s),
         seconds_beside(s.certainty.iteration_s.high, s.iteration_s),
         split_words(trainer.best->plan, trainer.best->plan) + (trainer.unproved.empty() ? "" : " (not proved)")});
  }
  return table.text(columns);
}

Page page_with(const JobRequest& request, const planner::SearchRequest& wanted, const planner::SearchResult& result,
               const PlanNotes& notes, std::size_t others) {
  const program::Job& job = request.file.job;
  Page page;
  page.answer(answer_of(result, notes.own_runtime));
  page.gap();
  page.row("job",
           fmt::format("{} on {}, batch {} x {} tokens", model_words(job), request.cluster.name,
                       job.training.global_batch, job.training.sequence),
           kTwoLines);
  if (result.best.empty()) {
    std::vector<std::string> fits;
    for (const planner::Relaxation& one : notes.relaxations) {
      fits.push_back(fmt::format("{} ({})", one.words, seconds(one.best.simulation.iteration_s)));
    }
    page.row("fits", fmt::format("{}", fmt::join(fits, ", or ")), kThreeLines);
  } else {
    const planner::Candidate& best = result.best.front();
    page.row("plan", program::summary(best.plan), kThreeLines);
    page.row("memory", room_row(wanted, best.simulation), kTwoLines);
    page.row("training", training_row(wanted, best), kThreeLines);
    page.row("nodes", nodes_row(request, result), kTwoLines);
    page.row("batch", notes.batch, kTwoLines);
    page.row("missing", missing_row(wanted), kTwoLines);
    page.gap();
    page.block(others_block(result, others, page.columns()));
  }
  page.gap();
  page.block(trainers_block(notes.trainers, page.columns()));
  page.gap();
  if (!result.best.empty()) {
    const planner::Candidate& best = result.best.front();
    const hardware::Cluster nodes = used_nodes(best.plan, wanted.cluster);
    page.row("certainty", simulator::brief_text(job_of(wanted, best), nodes, best.simulation.certainty), kTwoLines);
  }
  page.row("search", proof_row(result), kTwoLines);
  if (!result.best.empty()) page.row("published", published_row(wanted, result.best.front()), kThreeLines);
  page.row("for", notes.launch, kTwoLines);
  page.row("next", next_row(result, notes), kTwoLines);
  return page;
}

}  // namespace

std::string plan_page(const JobRequest& request, const planner::SearchRequest& wanted,
                      const planner::SearchResult& result, const PlanNotes& notes) {
  if (notes.listed > 0) return page_with(request, wanted, result, notes, notes.listed - 1).text();
  for (std::size_t others = kMostOthers; others > 0; --others) {
    const Page page = page_with(request, wanted, result, notes, others);
    if (page.lines() <= kPageLines || (others == 1 && page.full_lines() <= kPageLines)) return page.text(kPageLines);
  }
  return page_with(request, wanted, result, notes, 0).text(kPageLines);
}

std::string trainers_table(const std::vector<TrainerAnswer>& trainers, const TrainerAnswer& own,
                           const program::Plan& plan) {
  Table table({"<trainer (--for)", "iteration", "90 % from", "to", simulator::mfu_title("MFU", plan), "peak memory",
               "<best plan"});
  const auto add = [&](const TrainerAnswer& one) {
    if (!one.best) return table.add({one.name, "-", "-", "-", "-", "-", one.why_not});
    const simulator::Simulation& s = one.best->simulation;
    const simulator::PredictionInterval& within = s.certainty.iteration_s;
    table.add({one.name, seconds(s.iteration_s), seconds_beside(within.low, s.iteration_s),
               seconds_beside(within.high, s.iteration_s), percent(s.mfu), size(s.peak_memory_bytes),
               program::summary(one.best->plan) + one.unproved});
  };
  for (const TrainerAnswer& trainer : trainers) add(trainer);
  add(own);
  return table.text();
}

}  // namespace trivium::cli
