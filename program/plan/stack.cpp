#include "program/plan/stack.h"

#include <algorithm>
#include <vector>

#include "program/plan/plan.h"
#include "program/plan/stack_file.h"

namespace trivium::program {
namespace {

const std::vector<StackTraits>& traits_of_all() {
  static const std::vector<StackTraits> kAll = [] {
    std::vector<StackTraits> all;
    for (const StackFile& file : stack_files()) all.push_back(file.traits);
    return all;
  }();
  return kAll;
}

}  // namespace

std::span<const StackTraits> all_stacks() { return traits_of_all(); }

StackTraits stack_of(const Plan& plan) {
  StackTraits traits = *find_stack(plan.stack);
  if (plan.expert_dispatch != ExpertDispatch::kStack) traits.expert_dispatch = plan.expert_dispatch;
  return traits;
}

const StackTraits* find_stack(std::string_view name) {
  const auto& all = traits_of_all();
  const auto found = std::ranges::find(all, name, &StackTraits::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace trivium::program
