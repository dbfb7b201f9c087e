#include "planner/advice/relax.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "planner/bound/evaluate.h"
#include "planner/search/one_space.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "simulator/analytic/shared_costs.h"
#include "simulator/cost/supported.h"
#include "simulator/placement/defaults.h"

namespace trivium::planner {
namespace {

constexpr int kMostNodesFactor = 64;
constexpr double kGapOfARelaxation = 0.5;  // of the iteration: what counts is that a plan fits

using FieldAndValue = std::pair<const char*, std::string>;

// Fields that, with other values than these, make plans faster and no smaller.
const std::vector<FieldAndValue>& smallest_fields() {
  static const std::vector<FieldAndValue> kSmallest{
      {"placement", "tensor-context-data-pipeline"},
      {"overlap.tensor", "false"},
      {"overlap.expert", "false"},
      {"overlap.gradient_reduction", "false"},
      {"overlap.parameter_gather", "false"},
      {"schedule", std::string(program::name_of(program::kUsualSchedule))},
      {"virtual_stages", "1"},
      {"shard_group", "0"},
      {"compression", "none"}};
  return kSmallest;
}

// The request with those fields closed that the user left open: a thousandth of its plans, among them the smallest.
SearchRequest with_small_plans(SearchRequest request) {
  program::Plan& plan = request.job.plan;
  const auto may_be = [&](const std::string& field) {
    return is_open(request, field) && std::ranges::none_of(request.constraints, [&](const Constraint& c) {
             return c.field == field || field.starts_with(c.field + ".");
           });
  };
  for (const auto& [field, value] : smallest_fields()) {
    if (!may_be(field)) continue;
    program::set_field(plan, request.job.training, field, value);
    request.fixed.insert(field);
  }
  if (may_be("stage_recompute")) {
    plan.stage_recompute.clear();
    request.fixed.insert("stage_recompute");
  }
  if (may_be("attention") && simulator::has_fused_attention(plan, request.cluster)) {
    plan.attention = program::Attention::kFlash;
    request.fixed.insert("attention");
  }
  return request;
}

class Relaxer {
 public:
  Relaxer(const SearchRequest& request, std::size_t most, const Effort& effort)
      : request_(request), most_(most), effort_(effort) {}

  std::vector<Relaxation> relax() {
    bounds();
    fixed_fields();
    features();
    batch();
    nodes();
    return std::move(found_);
  }

 private:
  void say(const std::string& words) const {
    if (effort_.says) effort_.says(words);
  }

  std::optional<program::Plan> on(int nodes) const {
    say(fmt::format("on {} nodes", nodes));
    SearchRequest other = on_nodes(request_, nodes);
    other.costs = costs_;
    return small_plan(other);
  }

  // On heterogeneous nodes there are several ways to use them, and nodes to look at are few.
  std::optional<Candidate> any_plan(const SearchRequest& request) const {
    if (!request.cluster.homogeneous()) {
      SearchRequest some = with_small_plans(request);
      some.gap = std::max(some.gap, kGapOfARelaxation);
      return best_plan(some, {effort_.threads, effort_.stop});
    }
    const auto plan = small_plan(request);
    return plan ? simulated(request, *plan) : std::nullopt;
  }

  std::optional<program::Plan> small_plan(const SearchRequest& request) const {
    return plan_that_fits(with_small_plans(request), effort_.threads, effort_.stop);
  }

  std::optional<Candidate> simulated(const SearchRequest& request, const program::Plan& plan) const {
    program::Job job = request.job;
    job.plan = plan;
    auto simulated = simulation_that_fits(job, request.cluster, !request.ignore_memory, effort_.stop);
    auto* simulation = std::get_if<simulator::Simulation>(&simulated);
    if (simulation == nullptr) return std::nullopt;
    return Candidate{plan, std::move(*simulation)};
  }

  bool enough() const { return found_.size() >= most_ || effort_.stop.stop_requested(); }

  bool look(const SearchRequest& other, const std::string& words, const std::string& field = "") {
    if (enough()) return false;
    say(words);
    auto best = any_plan(other);
    if (!best) return false;
    const std::string value = field.empty() ? "" : fmt::format(": {}={}", field, text_of(best->plan, field));
    enter(words + value, other, std::move(*best));
    return true;
  }

  void bounds() {
    for (std::size_t i = 0; i < request_.constraints.size(); ++i) {
      if (leaves_the_smallest(request_.constraints[i]) || means_nothing(request_.constraints[i])) continue;
      SearchRequest other = request_;
      other.constraints.erase(other.constraints.begin() + static_cast<std::ptrdiff_t>(i));
      look(other, request_.constraints[i].lifted());
    }
  }

  bool means_nothing(const Constraint& constraint) const {
    return constraint.field == "expert_tensor" && !request_.job.model.experts;
  }

  // What it forbids is no smaller than what it does not.
  static bool leaves_the_smallest(const Constraint& constraint) {
    return std::ranges::any_of(smallest_fields(), [&](const FieldAndValue& smallest) {
      program::Plan plan;
      program::Training training;
      program::set_field(plan, training, smallest.first, smallest.second);
      return constraint.field == smallest.first && constraint.allows(plan);
    });
  }

  void fixed_fields() {
    for (const std::string& field : request_.fixed) {
      SearchRequest other = request_;
      other.fixed.erase(field);
      // What a search does not open goes back to its default.
      const std::string otherwise = text_of(program::Plan{}, field);
      if (!otherwise.empty()) program::set_field(other.job.plan, other.job.training, field, otherwise);
      look(other, fmt::format("without {}={}", field, text_of(request_.job.plan, field)), field);
    }
  }

  // Values that no search opens.
  void features() {
    const std::pair<const char*, const char*> features[] = {
        {"attention", "flash"}, {"precision", "bf16"},    {"precision", "fp16"},        {"precision", "fp32"},
        {"context", "2"},       {"attention", "unfused"}, {"offload.optimizer", "host"}};
    for (const auto& [field, value] : features) {
      if (is_kept(field) || is_searched(field, value) || text_of(request_.job.plan, field) == value) continue;
      SearchRequest other = request_;
      program::set_field(other.job.plan, other.job.training, field, value);
      other.fixed.insert(field);
      look(other, fmt::format("with {}={}", field, value));
    }
  }

  // A type that the devices lack is in the way even where it was asked for.
  bool is_kept(const std::string& field) const { return request_.fixed.contains(field) && field != "precision"; }

  // Or is as large as what was searched.
  bool is_searched(const std::string& field, const std::string& value) const {
    const program::Plan& plan = request_.job.plan;
    if (field == "attention") return simulator::has_fused_attention(plan, request_.cluster);
    if (field == "precision" && value != "fp32") {
      const bool halves = plan.precision == program::DType::kBf16 || plan.precision == program::DType::kFp16;
      return halves && !simulator::unsupported_by(request_.job, request_.cluster);
    }
    return field == "offload.optimizer" && std::ranges::all_of(request_.cluster.groups, [](const auto& group) {
             return group.node.asynchronous_lanes;
           });
  }

  // The next batch that the fixed part of the split divides.
  void batch() {
    const program::Plan& plan = request_.job.plan;
    std::int64_t step = 1;
    if (request_.fixed.contains("data")) step *= plan.data;
    if (request_.fixed.contains("micro_batch")) step *= plan.micro_batch;
    const std::int64_t batch = request_.job.training.global_batch;
    if (step <= 1 || batch % step == 0) return;
    SearchRequest other = request_;
    other.job.training.global_batch = (batch / step + 1) * step;
    look(other, fmt::format("with a global batch of {}", other.job.training.global_batch));
  }

  void nodes() {
    const hardware::Node& node = request_.cluster.groups.front().node;
    if (enough() || !request_.cluster.homogeneous()) return;
    if (request_.ranks > 0 && request_.ranks < request_.cluster.devices()) {
      SearchRequest all = request_;
      all.ranks = 0;
      if (look(all, fmt::format("on all {} devices", request_.cluster.devices()))) return;
    }
    if (node.adapters == 0) return;
    const int here = request_.cluster.nodes();
    int low = here, high = here;
    std::optional<program::Plan> fits;
    while (!fits && high < here * kMostNodesFactor && !effort_.stop.stop_requested()) {
      low = high;
      high *= 2;
      fits = on(high);
    }
    if (!fits) return;
    while (high - low > 1 && !effort_.stop.stop_requested()) {
      const int middle = low + (high - low) / 2;
      auto fewer = on(middle);
      if (!fewer && effort_.stop.stop_requested()) break;
      (fewer ? high : low) = middle;
      if (fewer) fits = std::move(fewer);
    }
    const SearchRequest larger = on_nodes(request_, high);
    auto best = simulated(larger, *fits);
    if (best) enter(fmt::format("on {} nodes", high), larger, std::move(*best));
  }

  void enter(const std::string& words, const SearchRequest& request, Candidate best) {
    program::Job job = request.job;
    job.plan = best.plan;
    found_.push_back({words, std::move(best), std::move(job), request.cluster});
  }

  const SearchRequest& request_;
  std::size_t most_;
  Effort effort_;
  std::shared_ptr<simulator::SharedCosts> costs_ =
      std::make_shared<simulator::SharedCosts>();  // of other counts of nodes
  std::vector<Relaxation> found_;
};

}  // namespace

std::vector<Relaxation> relaxations(const SearchRequest& request, std::size_t most, const Effort& effort) {
  return Relaxer(request, most, effort).relax();
}

}  // namespace trivium::planner
