#include "planner/space/held.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "planner/space/disks.h"
#include "planner/space/levels.h"
#include "planner/space/space.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "program/plan/stack.h"
#include "simulator/placement/defaults.h"

namespace trivium::planner {
namespace {

constexpr const char* kFixed = "fixed";

class Holder {
 public:
  explicit Holder(const SearchRequest& request) : request_(request), plan_(request.job.plan) {
    for (const hardware::NodeGroup& group : request.cluster.groups) lanes_ &= group.node.asynchronous_lanes;
  }

  // Empty: it is searched.
  std::string why(const std::string& field) const {
    if (request_.fixed.contains(field)) return kFixed;
    if (const auto why = held_by_training(request_.job.training, field); !why.empty()) return std::string(why);
    if (const char* never = searched(field).never) return never;
    for (const Constraint& constraint : request_.constraints) {
      const bool concerns = constraint.field == field || field.starts_with(constraint.field + ".");
      const bool closes = constraint.by_default && constraint.kind == Constraint::Kind::kForbid;
      if (concerns && closes) return "left out " + constraint.lifted().replace(0, 4, "unless");
    }
    if (request_.trainer != nullptr) {
      for (const TrainerRule& rule : request_.trainer->rules) {
        const bool closes = rule.alone && field == rule.field && is_one_value(field);
        if (closes) return fmt::format("{}: {}", request_.trainer->trainer, rule.says);
      }
    }
    const bool is_trainers =
        request_.trainer != nullptr && (field == "overlap.gradient_reduction" || field == "overlap.parameter_gather");
    if (!lanes_ && !is_trainers && (field.starts_with("overlap.") || field.starts_with("offload."))) {
      return "communication and copies take turns with the kernels there";
    }
    const bool is_context = field == "context" || field == "context_method" || field == "context_heads";
    if (is_context && request_.job.training.sequence < kLongSequence && !asks_for_context(request_)) {
      return fmt::format("sequences of fewer than {} tokens are not split", kLongSequence);
    }
    if (field == "attention" && !simulator::has_fused_attention(plan_, request_.cluster)) {
      return "devices or stack have no fused kernels";
    }
    const bool heterogeneous = !request_.cluster.homogeneous();
    if (heterogeneous && (field == "placement" || field == "stage_recompute"))
      return "not searched on heterogeneous nodes";
    return "";
  }

  // Whether a trainer's rule on the field alone leaves one value of it.
  static bool is_one_value(const std::string& field) { return field != "recompute" && field != "zero_stage"; }

  bool means_something(const std::string& field) const {
    const bool heterogeneous = !request_.cluster.homogeneous();
    if (field == "expert" || field == "overlap.expert" || field == "expert_dispatch")
      return request_.job.model.experts.has_value();
    if (field == "expert_tensor")
      return request_.job.model.experts && (plan_.tensor > 1 || !request_.fixed.contains("tensor"));
    if (field == "fp8_parameter_gather") return plan_.fp8 != program::Fp8::kNone;
    if (field == "stage_nodes" || field == "replica_micro_batch") return heterogeneous;
    if (field == "context_method" || field == "context_heads") return plan_.context > 1;
    if (field == "top_k_share") return plan_.compression == program::Compression::kTopK;
    return true;
  }

  // Schedules in a V that no search tries though the stack could run them; empty: there are none.
  std::string v_schedules() const {
    const bool may_split = !request_.fixed.contains("pipeline") || plan_.pipeline > 1;
    if (!may_split || ranks_of(request_) == 1 || !program::find_stack(plan_.stack)->splits_backward) return "";
    std::string names;
    for (const program::ScheduleTraits& traits : program::schedule_table()) {
      if (traits.folds && !traits.searched) names += fmt::format("{}{}", names.empty() ? "" : ", ", traits.name);
    }
    return names;
  }

  // As Space::is_dominated_by_whole_experts.
  bool prefers_whole_experts() const {
    return request_.job.model.experts->dropless && is_open(request_, "expert") && is_open(request_, "expert_tensor");
  }

 private:
  const SearchRequest& request_;
  const program::Plan& plan_;
  bool lanes_ = true;
};

}  // namespace

std::vector<Held> held_fields(const SearchRequest& request) {
  const Holder holder(request);
  std::vector<Held> held;
  for (const std::string& field : program::plan_fields()) {
    if (!holder.means_something(field)) continue;
    if (std::string why = holder.why(field); !why.empty()) {
      held.push_back({field, text_of(request.job.plan, field), std::move(why)});
      continue;
    }
    if (const std::string names = holder.v_schedules(); field == "schedule" && !names.empty()) {
      held.push_back({field, "without " + names, "chunks in a V run where --schedule says so"});
    }
    if (field == "offload.optimizer" && has_disks(request.cluster) && !opens_disks(request)) {
      held.push_back({field, "without disk", "devices or hosts can hold the optimizer's state"});
    }
    if (std::ranges::any_of(request.constraints, [&](const Constraint& c) {
          return c.by_default && c.field == field && c.kind == Constraint::Kind::kMax;
        })) {
      held.push_back({field, "above 1 but all of tensor", fmt::format("left out unless --allow {}", field)});
    }
    if (field == "expert_tensor" && holder.prefers_whole_experts()) {
      held.push_back(
          {field, "1 where experts divide among as many ranks", "dropless experts are whole if they can be"});
    }
  }
  return held;
}

std::string text_of(const std::vector<Held>& held) {
  std::vector<std::pair<std::string, std::string>> groups;  // why, fields
  for (const Held& one : held) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == one.why; });
    if (group == groups.end()) group = groups.insert(group, {one.why, ""});
    group->second += fmt::format("{}{} {}", group->second.empty() ? "" : ", ", one.field, one.value);
  }
  // What the user fixed comes first.
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return (a.first == kFixed) > (b.first == kFixed); });
  std::string text;
  for (const auto& [why, fields] : groups) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", why, fields);
  return text;
}

std::string room_text(const SearchRequest& request) {
  const hardware::Device& device = request.cluster.groups.front().node.device;
  if (device.usable >= 1 || request.ignore_memory) return "";
  const double whole = device.memory.value() / base::kGiB;
  return fmt::format("plans may use {:.1f} of the {:.1f} GiB", whole * device.usable, whole);
}

}  // namespace trivium::planner
