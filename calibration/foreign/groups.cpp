#include "calibration/foreign/groups.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;
using imports::ProcessGroup;

bool describes(const ProcessGroup& group, std::initializer_list<std::string_view> words) {
  std::string small = group.description;
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(words, [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

bool is_default(const ProcessGroup& group) { return group.description == "default_pg"; }

/// Groups that collectives of the trace name.
std::set<std::string> named_groups(const imports::KernelTrace& trace) {
  std::set<std::string> names;
  for (const Kernel& kernel : trace.kernels) {
    if (!kernel.group.empty()) names.insert(kernel.group);
  }
  return names;
}

}  // namespace

bool is_pipeline(const ProcessGroup& group) { return describes(group, {"mesh_pp", "pipeline", "_pp"}); }

const ProcessGroup* group_of(const RankRun& run, const Kernel& kernel) {
  std::vector<const ProcessGroup*> own;
  for (const ProcessGroup& group : run.trace->groups) {
    if (!kernel.group.empty() && group.name == kernel.group) return &group;
    const bool member = group.ranks.empty() || std::ranges::find(group.ranks, run.rank) != group.ranks.end();
    if (member && group.size > 1) own.push_back(&group);
  }
  if (!kernel.group.empty() || own.empty()) return nullptr;
  if (own.size() == 1) return own.front();
  const std::string& name = run.trace->name_of(kernel);
  const bool transfer = name.find("send") != std::string::npos || name.find("recv") != std::string::npos;
  const std::set<std::string> named = named_groups(*run.trace);
  const ProcessGroup* best = nullptr;
  int most = -1;
  for (const ProcessGroup* group : own) {
    int points = is_default(*group) ? 0 : 2;
    if (is_pipeline(*group)) points += transfer ? 4 : -2;
    if (!transfer && describes(*group, {"dp", "data", "fsdp", "replicate", "shard"})) points += 1;
    if (named.contains(group->name)) points -= 3;
    if (points > most) most = points, best = group;
  }
  return best;
}

int peer_of(const ProcessGroup* group, const Kernel& kernel) {
  if (kernel.peer < 0) return -1;
  if (group == nullptr || group->ranks.empty()) return kernel.peer;
  const auto at = static_cast<std::size_t>(kernel.peer);
  return at < group->ranks.size() ? group->ranks[at] : -1;
}

}  // namespace trivium::calibration::foreign
