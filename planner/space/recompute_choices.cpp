// The fourth level: what is kept for the backward.
#include <algorithm>
#include <set>

#include "planner/space/space.h"

namespace trivium::planner {

using program::Module;
using program::Plan;
using program::Recompute;
using program::Storage;

namespace {

constexpr int kEighths = 8;  // of the stages, that may recompute more than the others

}  // namespace

// What selective recomputation may drop: the attention core; of what costs little the outputs alone; whole MLPs with
// them, the dense ones or all.
std::vector<std::vector<Module>> Space::module_sets() const {
  if (fixed("recompute_modules") || !opens_modules_) return {given_.recompute_modules};
  const auto& experts = request_.job.model.experts;
  std::vector<Module> outputs{Module::kLayerNorm};
  if (experts) outputs.push_back(Module::kMixtureActivation);
  if (request_.job.model.latent) outputs.push_back(Module::kLatentUp);
  std::vector<std::vector<Module>> sets{{}, outputs};
  std::vector<Module> more = outputs;
  if (!experts || experts->every > 1 || experts->dense_layers > 0 || !experts->mixture_layers.empty())
    more.push_back(Module::kMlp);
  if (experts && experts->shared_hidden > 0) more.push_back(Module::kSharedExperts);
  if (more.size() > outputs.size()) sets.push_back(more);
  if (experts) {
    std::erase(more, Module::kSharedExperts);  // a part of the mixture, as its activation is
    std::erase(more, Module::kMixtureActivation);
    more.push_back(Module::kMixture);
    sets.push_back(more);
  }
  return sets;
}

std::vector<RecomputeChoice> Space::recompute_choices(const Plan& split, const ScheduleChoice& shape) const {
  const Plan base = with(split, shape);
  std::vector<RecomputeChoice> all;
  if (fixed("stage_recompute") && !given_.stage_recompute.empty()) {
    all.push_back({.recompute = given_.recompute, .modules = given_.recompute_modules});
  } else if (fixed("recompute")) {
    all.push_back({given_.recompute});
  } else {
    const bool away = shape.activations != Storage::kNone || shape.overlap_expert;
    std::vector<Recompute> ways{Recompute::kNone, Recompute::kSelective, Recompute::kFull};
    if (away) ways.pop_back();
    for (const Recompute way : ways) all.push_back({way});
    // Eighths of the stages, or with virtual stages of the rounds through them.
    const int parts = shape.virtual_stages > 1 ? shape.virtual_stages : split.pipeline;
    const int chunks = split.pipeline * shape.virtual_stages;
    std::set<int> counts;
    for (int i = 1; i < kEighths; ++i) counts.insert((i * parts + kEighths - 1) / kEighths * (chunks / parts));
    counts.erase(chunks);
    // Where nodes differ, stages are balanced by their speed and memory already.
    if (!request_.cluster.homogeneous() || fixed("stage_recompute")) counts.clear();
    for (std::size_t more = 1; more < ways.size(); ++more) {
      for (std::size_t less = 0; less < more; ++less) {
        for (const int count : counts) all.push_back({ways[less], count, ways[more]});
      }
    }
  }
  add_modules(all, shape);
  if (of(Level::kRecompute).none()) return all;
  std::erase_if(all, [&](const RecomputeChoice& recompute_choice) {
    return !allows(Level::kRecompute, with(base, recompute_choice));
  });
  return all;
}

// Every choice that drops modules, with every set of them.
void Space::add_modules(std::vector<RecomputeChoice>& all, const ScheduleChoice& shape) const {
  if (fixed("stage_recompute") && !given_.stage_recompute.empty()) return;
  std::vector<RecomputeChoice> with_sets;
  for (RecomputeChoice& choice : all) {
    const bool selective =
        choice.recompute == Recompute::kSelective || (choice.more > 0 && choice.of_more == Recompute::kSelective);
    if (!selective) {
      with_sets.push_back(choice);
      continue;
    }
    for (std::vector<Module>& modules : module_sets()) {
      const bool exchanges = std::ranges::find(modules, Module::kMixture) != modules.end();
      if (exchanges && shape.overlap_expert) continue;
      choice.modules = std::move(modules);
      with_sets.push_back(choice);
    }
  }
  all = std::move(with_sets);
}

// What may be kept depends on these fields alone.
std::int64_t Space::count_recompute_choices(const Plan& split, const ScheduleChoice& shape) const {
  const std::tuple key(split.pipeline, shape.virtual_stages, shape.activations, shape.overlap_expert);
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = recompute_choices_known_.try_emplace(key);
  if (fresh) known->second = static_cast<std::int64_t>(recompute_choices(split, shape).size());
  return known->second;
}

}  // namespace trivium::planner
