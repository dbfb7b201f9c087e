#include "planner/advice/improvement.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "planner/bound/evaluate.h"
#include "planner/search/parallel.h"
#include "program/plan/fields.h"
#include "simulator/certainty/certainty.h"
#include "simulator/predict/predict.h"
#include "simulator/schedule/engine.h"

namespace trivium::planner {
namespace {

using program::Difference;
using program::Job;
using program::Plan;

constexpr double kNoise = 0.01;           // of the iteration: less than repetitions of a run differ by
constexpr double kLikelyGain = 2.0 / 3;   // probability below which a gain is not told from noise
constexpr std::size_t kLargestGroup = 3;  // of changes that are tried together
constexpr std::size_t kMostTrials = 400;  // predictions of plans between today's and the best

/// Fields that change together because one means nothing without the other.
struct Unit {
  std::vector<std::string_view> fields;
  void (*take)(Plan& to, const Plan& from);
};

const std::vector<Unit>& units() {
  static const std::vector<Unit> kUnits{
      {{"tensor"}, [](Plan& to, const Plan& from) { to.tensor = from.tensor; }},
      {{"sequence_parallel"}, [](Plan& to, const Plan& from) { to.sequence_parallel = from.sequence_parallel; }},
      {{"context", "context_method", "context_heads"},
       [](Plan& to, const Plan& from) {
         to.context = from.context;
         to.context_method = from.context_method;
         to.context_heads = from.context_heads;
       }},
      {{"pipeline"},
       [](Plan& to, const Plan& from) {
         to.pipeline = from.pipeline;
         program::settle(to, "pipeline");
       }},
      {{"virtual_stages", "schedule", "stage_layers", "stage_nodes"},
       [](Plan& to, const Plan& from) {
         to.virtual_stages = from.virtual_stages;
         to.schedule = from.schedule;
         const bool as_many = to.pipeline == from.pipeline;
         to.stage_layers = as_many ? from.stage_layers : std::vector<int>{};
         to.stage_nodes = as_many ? from.stage_nodes : decltype(from.stage_nodes){};
         to.stage_recompute.clear();
       }},
      {{"expert", "expert_tensor"},
       [](Plan& to, const Plan& from) {
         to.expert = from.expert;
         to.expert_tensor = from.expert_tensor;
       }},
      {{"expert_dispatch"}, [](Plan& to, const Plan& from) { to.expert_dispatch = from.expert_dispatch; }},
      {{"micro_batch", "replica_micro_batch"},
       [](Plan& to, const Plan& from) {
         to.micro_batch = from.micro_batch;
         to.replica_micro_batch = from.replica_micro_batch;
       }},
      {{"placement"}, [](Plan& to, const Plan& from) { to.placement = from.placement; }},
      {{"recompute", "stage_recompute", "recompute_layers", "recompute_group", "recompute_modules"},
       [](Plan& to, const Plan& from) {
         to.recompute = from.recompute;
         to.stage_recompute = from.stage_recompute;
         to.recompute_layers = from.recompute_layers;
         to.recompute_group = from.recompute_group;
         to.recompute_modules = from.recompute_modules;
       }},
      {{"zero_stage", "shard_group"},
       [](Plan& to, const Plan& from) {
         to.zero_stage = from.zero_stage;
         to.shard_group = from.shard_group;
       }},
      {{"overlap.gradient_reduction"},
       [](Plan& to, const Plan& from) { to.overlap.gradient_reduction = from.overlap.gradient_reduction; }},
      {{"overlap.parameter_gather"},
       [](Plan& to, const Plan& from) { to.overlap.parameter_gather = from.overlap.parameter_gather; }},
      {{"overlap.tensor"}, [](Plan& to, const Plan& from) { to.overlap.tensor = from.overlap.tensor; }},
      {{"overlap.expert"}, [](Plan& to, const Plan& from) { to.overlap.expert = from.overlap.expert; }},
      {{"offload.optimizer", "offload.gradients", "offload.parameters"},
       [](Plan& to, const Plan& from) {
         to.offload.optimizer = from.offload.optimizer;
         to.offload.gradients = from.offload.gradients;
         to.offload.parameters = from.offload.parameters;
       }},
      {{"offload.activations"}, [](Plan& to, const Plan& from) { to.offload.activations = from.offload.activations; }},
      {{"attention"}, [](Plan& to, const Plan& from) { to.attention = from.attention; }}};
  return kUnits;
}

int ranks_of_plan(const Plan& plan) { return plan.tensor * plan.context * plan.pipeline * plan.data; }

/// As many ranks as before, and nothing that needs what is gone.
void fill_ranks(Plan& plan, int ranks) {
  const int replica = plan.tensor * plan.context * plan.pipeline;
  plan.data = ranks % replica == 0 ? ranks / replica : 0;
  if (plan.tensor == 1) plan.sequence_parallel = false;
  const auto chunks = static_cast<std::size_t>(plan.chunks());
  if (plan.stage_layers.size() != chunks) plan.stage_layers.clear();
  if (plan.stage_recompute.size() != chunks) plan.stage_recompute.clear();
  if (plan.data > 0) program::settle(plan, "data");
}

std::vector<Difference> changes_of(const Plan& before, const Plan& after) {
  std::vector<Difference> changes = program::differences(before, after);
  std::erase_if(changes, [](const Difference& d) { return d.field == "data"; });
  return changes;
}

class Way {
 public:
  Way(const SearchRequest& request, const hardware::Cluster& cluster, const Candidate& today, const Candidate& best,
      bool fits, const Effort& effort)
      : request_(request),
        cluster_(cluster),
        best_(best),
        fits_(fits),
        effort_(effort),
        ranks_(ranks_of_plan(today.plan)) {
    at_ = {today.plan, today.simulation.certainty.expected_s};
    for (const Difference& d : program::differences(today.plan, best.plan)) {
      for (std::size_t i = 0; i < units().size(); ++i) {
        if (std::ranges::find(units()[i].fields, d.field) != units()[i].fields.end()) open_.insert(i);
      }
    }
  }

  std::vector<ImprovementStep> walk() {
    while (!open_.empty()) {
      const std::optional<Choice> next = open_.size() > 1 ? choose() : std::nullopt;
      if (!next) break;
      add(next->at);
      for (const std::size_t unit : next->group) open_.erase(unit);
    }
    if (!changes_of(at_.plan, best_.plan).empty()) add({best_.plan, best_.simulation.certainty.expected_s});
    return std::move(steps_);
  }

 private:
  struct At {
    Plan plan;
    double expected_s = 0;
  };
  struct Choice {
    std::vector<std::size_t> group;
    At at;
  };

  void add(At next) {
    steps_.push_back({at_.plan, next.plan, changes_of(at_.plan, next.plan), at_.expected_s - next.expected_s});
    at_ = std::move(next);
  }

  /// The change that gains most, or the smallest group that gains more than its members one by one and the best change
  /// together; nothing where the rest only works as a whole.
  std::optional<Choice> choose() {
    std::optional<Choice> best;
    std::map<std::size_t, double> alone;  // what each gains by itself
    for (std::size_t size = 1; size <= std::min(kLargestGroup, open_.size() - 1); ++size) {
      if (size > 2 && best) break;
      const double so_far = best ? at_.expected_s - best->at.expected_s : -1;
      for (Choice& choice : predicted_groups(size)) {
        double gain = at_.expected_s - choice.at.expected_s;
        if (size == 1) alone[choice.group.front()] = std::max(0.0, gain);
        for (const std::size_t unit : choice.group) gain -= size > 1 && alone.contains(unit) ? alone[unit] : 0;
        const double least = best ? at_.expected_s - best->at.expected_s : 0;
        if (gain < (size > 1 ? std::max(so_far, 0.0) : 0) || (size > 1 && gain <= 0)) continue;
        if (!best || at_.expected_s - choice.at.expected_s > least) best = std::move(choice);
      }
    }
    return best;
  }

  /// Plans that can be, a group of `size` changes away.
  std::vector<Choice> predicted_groups(std::size_t size) {
    std::vector<Choice> choices;
    std::vector<std::size_t> group;
    const std::vector<std::size_t> open(open_.begin(), open_.end());
    list_groups(open, 0, size, group, choices);
    if (tried_ + choices.size() > kMostTrials) return {};
    tried_ += choices.size();
    run_parallel(
        choices.size(), threads_for(effort_.threads), effort_.stop,
        [&](std::size_t i) { choices[i].at.expected_s = expected(choices[i].at.plan); }, [](std::size_t) {});
    if (effort_.stop.stop_requested()) throw base::Failure(simulator::cancelled());
    std::erase_if(choices, [](const Choice& c) { return c.at.expected_s == 0; });
    return choices;
  }

  void list_groups(const std::vector<std::size_t>& open, std::size_t from, std::size_t size,
                   std::vector<std::size_t>& group, std::vector<Choice>& choices) const {
    if (group.size() == size) {
      Plan plan = at_.plan;
      for (const std::size_t unit : group) units()[unit].take(plan, best_.plan);
      fill_ranks(plan, ranks_);
      if (plan.data > 0 && !changes_of(at_.plan, plan).empty()) choices.push_back({group, {plan, 0}});
      return;
    }
    for (std::size_t i = from; i < open.size(); ++i) {
      group.push_back(open[i]);
      list_groups(open, i + 1, size, group, choices);
      group.pop_back();
    }
  }

  /// 0 where the plan cannot be.
  double expected(const Plan& plan) const {
    Job job = request_.job;
    job.plan = plan;
    if (request_.trainer != nullptr && broken_rule(*request_.trainer, plan, job) != nullptr) return 0;
    if (refusal(job, cluster_, 0)) return 0;
    const auto predicted = simulator::predict(job, cluster_, {.fits = fits_, .verified = false}, effort_.stop);
    return predicted ? predicted.value().simulation.certainty.expected_s : 0;
  }

  const SearchRequest& request_;
  const hardware::Cluster& cluster_;
  const Candidate& best_;
  bool fits_;
  const Effort& effort_;
  int ranks_;
  std::set<std::size_t> open_;
  At at_;
  std::size_t tried_ = 0;
  std::vector<ImprovementStep> steps_;
};

void predict_today(const Job& today, const hardware::Cluster& cluster, const Effort& effort, Improvement& result) {
  if (const auto no = refusal(today, cluster, 0)) {
    result.refused = no->reason;
    result.rule = no->rule;
    return;
  }
  const auto predicted = simulator::predict(today, cluster, {.fits = false}, effort.stop);
  if (!predicted) {
    if (predicted.error().kind == base::ErrorKind::kInterrupted) throw base::Failure(predicted.error());
    result.refused = predicted.error().message;
    result.rule = predicted.error().rule;
    return;
  }
  if (const auto no = predicted.value().prepared.too_big()) result.too_big = no->reason;
  result.today = Candidate{today.plan, predicted.value().simulation};
}

}  // namespace

double Improvement::gain_s() const {
  if (!today || !best) return 0;
  return today->simulation.certainty.expected_s - best->simulation.certainty.expected_s;
}

bool Improvement::is_worth_trying() const {
  if (!best) return false;
  if (!today) return true;
  return gain_s() > kNoise * today->simulation.certainty.expected_s && probability >= kLikelyGain;
}

Improvement improvement(const Job& today, const hardware::Cluster& cluster, const SearchRequest& request,
                        SearchResult found, const Effort& effort) {
  Improvement result;
  result.found = std::move(found);
  predict_today(today, cluster, effort, result);
  if (result.found.best.empty()) return result;
  result.best = result.found.best.front();
  if (!result.today) return result;
  const simulator::Certainty& sure = result.best->simulation.certainty;
  result.probability =
      simulator::beats_probability(sure.expected_s, result.today->simulation.certainty.expected_s, sure);
  result.steps = Way(request, cluster, *result.today, *result.best, result.too_big.empty(), effort).walk();
  return result;
}

std::vector<std::string> features_of(const Plan& today) {
  constexpr std::array<std::string_view, 8> kFeatures{"compression",       "overlap.tensor",      "overlap.expert",
                                                      "recompute_modules", "context_heads",       "expert_dispatch",
                                                      "expert_tensor",     "fp8_parameter_gather"};
  std::vector<std::string> used;
  for (const std::string_view name : kFeatures) {
    if (program::text_of(today, name) != program::text_of(Plan{}, name)) used.emplace_back(name);
  }
  return used;
}

}  // namespace trivium::planner
