// The space field by field.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "planner/plan_fields.h"
#include "planner/space.h"
#include "program/job_json.h"

namespace trivium::planner {
namespace {

using program::Plan;

/// Values of fields in the order in which plans take them.
class Values {
 public:
  void enter(const Plan& plan, std::initializer_list<const char*> fields) {
    for (const char* field : fields) {
      std::string value = text_of(plan, field);
      if (seen_[field].insert(value).second) values_[field].push_back(std::move(value));
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
    values.enter(split, {"tensor", "context", "context_method", "pipeline", "data", "expert", "micro_batch"});
    if (!looked_at.insert({split.tensor, split.context, split.pipeline, split.data}).second) continue;
    const std::vector<Layout> layouts = space.layouts(split);
    std::set<std::string> placements;
    for (const Layout& layout : layouts) {
      const Plan laid = with(split, layout);
      values.enter(laid, {"placement", "sequence_parallel", "overlap.tensor", "attention"});
      if (!placements.insert(layout.placement).second) continue;
      for (const Shape& shape : space.shapes(split, layout)) {
        const Plan shaped = with(laid, shape);
        values.enter(shaped, {"schedule", "virtual_stages", "stage_nodes", "offload.activations"});
        values.enter(shaped, {"stage_layers"});
        for (const State& state : space.states(split, layout, shape)) {
          values.enter(with(laid, state), {"zero_stage", "shard_group", "overlap.gradient_reduction",
                                           "overlap.parameter_gather", "offload.optimizer", "compression"});
        }
        if (placements.size() > 1) continue;  // what is kept does not hang on the layout
        for (const Keeping& keeping : space.keepings(split, shape)) {
          values.enter(with(shaped, keeping), {"recompute", "stage_recompute"});
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
