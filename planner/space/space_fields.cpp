// The space field by field.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "planner/space/levels.h"
#include "planner/space/space.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::planner {
namespace {

using program::Plan;

/// Values of fields in the order in which plans take them.
class Values {
 public:
  void enter(const Plan& plan, Level level) {
    for (const SearchedField& field : searched_fields()) {
      const bool opened_here = field.level == level && field.never == nullptr;
      // Splits have one size for all replicas; planner/search/replica_kinds opens different ones.
      if (!opened_here || std::string_view(field.name) == "replica_micro_batch") continue;
      std::string value = text_of(plan, field.name);
      if (seen_[field.name].insert(value).second) values_[field.name].push_back(std::move(value));
    }
  }

  // Fields that no level sets are as in the request.
  std::vector<std::pair<std::string, std::vector<std::string>>> all(const Plan& given) {
    std::vector<std::pair<std::string, std::vector<std::string>>> all;
    for (const std::string& field : program::plan_fields()) {
      auto& values = values_[field];
      if (values.empty()) values.push_back(text_of(given, field));
      all.emplace_back(field, std::move(values));
    }
    return all;
  }

 private:
  std::map<std::string, std::set<std::string>> seen_;
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> fields_of(const SearchRequest& request) {
  const Space space(request);
  Values values;
  std::set<std::tuple<int, int, int, int>> looked_at;
  for (const Plan& split : space.splits()) {
    values.enter(split, Level::kSplit);
    if (!looked_at.insert({split.tensor, split.context, split.pipeline, split.data}).second) continue;
    const std::vector<PlacementChoice> layouts = space.layouts(split);
    std::set<std::string> placements;
    for (const PlacementChoice& layout : layouts) {
      const Plan laid = with(split, layout);
      values.enter(laid, Level::kPlacement);
      if (!placements.insert(layout.placement).second) continue;
      for (const ScheduleChoice& shape : space.shapes(split, layout)) {
        const Plan shaped = with(laid, shape);
        values.enter(shaped, Level::kSchedule);
        for (const ShardingChoice& state : space.states(split, layout, shape)) {
          values.enter(with(laid, state), Level::kSharding);
        }
        if (placements.size() > 1) continue;  // what is kept does not depend on the layout
        for (const RecomputeChoice& recompute_choice : space.recompute_choices(split, shape)) {
          values.enter(with(shaped, recompute_choice), Level::kRecompute);
        }
      }
    }
  }
  return values.all(request.job.plan);
}

std::vector<std::pair<std::string, SpacePart>> parts_of(const Space& space) {
  std::vector<std::pair<std::string, SpacePart>> parts;
  for (const Plan& split : space.splits()) {
    std::string family = family_of(split);
    auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& known) { return known.first == family; });
    if (part == parts.end()) part = parts.insert(part, {std::move(family), {}});
    ++part->second.micro_batches;
    part->second.layouts = static_cast<std::int64_t>(space.layouts(split).size());
    part->second.plans += space.count(split);
  }
  return parts;
}

}  // namespace trivium::planner
