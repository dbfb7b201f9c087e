// The first level of a space: which ranks split what.
#include <algorithm>

#include "planner/space/divisors.h"
#include "planner/space/space.h"
#include "program/lower/parameter_gather.h"
#include "program/plan/stack.h"
#include "simulator/placement/defaults.h"

namespace trivium::planner {
namespace {

using program::ContextMethod;
using program::ExpertDispatch;
using program::Fp8Gather;
using program::Plan;

constexpr std::int64_t kMostTensor = 64;  // eight nodes of eight: beyond, every layer waits for the network
constexpr std::int64_t kMostContext = 64;

}  // namespace

void Space::add_all_splits() {
  const int ranks = ranks_of(request_);
  bool any = false;
  for (const int tensor : tensors(ranks)) {
    for (const int context : contexts(ranks / std::max(1, tensor))) {
      for (const int pipeline : pipelines(ranks, tensor)) {
        const std::int64_t split = std::int64_t{tensor} * pipeline * std::max(1, context);
        const std::int64_t data = fixed("data") ? given_.data : std::max<std::int64_t>(1, ranks / split);
        if (split * data != ranks) continue;
        any = true;
        Plan plan = given_;
        plan.replica_micro_batch.clear();
        plan.tensor = tensor;
        plan.context = context;
        plan.pipeline = pipeline;
        plan.data = static_cast<int>(data);
        add_splits(plan);
      }
    }
  }
  if (!any && allows(Level::kSplit, given_)) splits_.push_back(given_);
}

std::vector<int> Space::tensors(int ranks) const {
  if (fixed("tensor")) return {given_.tensor};
  std::vector<int> some = divisors(request_.job.model.heads, kMostTensor);
  std::erase_if(some, [&](int tensor) { return ranks % tensor != 0; });
  return some;
}

bool asks_for_context(const SearchRequest& request) {
  return std::ranges::any_of(request.constraints, [](const Constraint& constraint) {
    return constraint.kind == Constraint::Kind::kMin && constraint.field == "context" && constraint.value != "1";
  });
}

std::vector<int> Space::contexts(int ranks) const {
  const bool asked = asks_for_context(request_);
  const std::int64_t sequence = request_.job.training.sequence;
  if (fixed("context") || (sequence < kLongSequence && !asked)) return {given_.context};
  return divisors(ranks, std::min(kMostContext, asked ? sequence : sequence / kLeastPart));
}

std::vector<int> Space::pipelines(int ranks, int tensor) const {
  if (fixed("pipeline")) return {given_.pipeline};
  return divisors(ranks / std::max(1, tensor), request_.job.model.layers);
}

std::vector<int> Space::micro_batches(const Plan& split) const {
  if (fixed("micro_batch")) return {given_.micro_batch};
  const std::int64_t batch = request_.job.training.global_batch;
  if (batch % split.data != 0) return {1};  // refused whatever the micro-batch: once is enough to say so
  return divisors(batch / split.data, kMostMicroBatch);
}

// How many ranks share the experts, and how many tensor ranks split each of them: all, none or, where a constraint lets
// them, some.
std::vector<std::pair<int, int>> Space::expert_splits(const Plan& plan) const {
  if (!request_.job.model.experts) return {{given_.expert, given_.expert_tensor}};
  std::vector<int> parts{given_.expert_tensor};
  if (!fixed("expert_tensor")) {
    parts = {0};
    for (const int part : divisors(plan.tensor, plan.tensor - 1)) parts.push_back(part);
  }
  std::vector<std::pair<int, int>> splits;
  for (const int part : parts) {
    Plan split = plan;
    split.expert_tensor = part;
    const int sets = program::tensor_parts_of_experts(split);
    if (fixed("expert")) {
      splits.emplace_back(given_.expert, part);
      continue;
    }
    for (const int expert : divisors(request_.job.model.experts->count, plan.data * sets)) {
      split.expert = expert;
      if (expert % sets == 0 && plan.data % program::expert_replicas(split) == 0) splits.emplace_back(expert, part);
    }
  }
  return splits;
}

// Whether the ranks that share the parts of an expert here could each hold whole experts instead. Without capacity that
// is never slower and takes no more memory: rows travel once instead of twice, and products are as large or larger.
bool Space::is_dominated_by_whole_experts(const Plan& plan) const {
  const auto& experts = request_.job.model.experts;
  if (!experts || !experts->dropless || plan.tensor == 1 || program::folds_experts(plan)) return false;
  if (request_.job.training.expert_load.used()) return false;  // more ranks share more unevenly
  if (fixed("expert") || fixed("expert_tensor")) return false;
  Plan whole = plan;
  whole.expert_tensor = 1;
  whole.expert *= plan.tensor;
  return experts->count % whole.expert == 0 && allows(Level::kSplit, whole);
}

// Context ranks of a ring that exchange heads: as given, or 1 and, where a constraint lets them, what divides the ring.
std::vector<int> Space::head_ranks(int context, ContextMethod method) const {
  if (fixed("context_heads")) return {given_.context_heads};
  std::vector<int> ranks{1};
  if (context < 4 || method != ContextMethod::kRing) return ranks;
  for (const int heads : divisors(context, context / 2)) {
    if (heads > 1) ranks.push_back(heads);
  }
  return ranks;
}

// How tokens travel to experts: as given, or as the stack does it and, where a constraint lets them, as others do.
// Cores exchange rows one by one, whatever is said.
std::vector<ExpertDispatch> Space::dispatches(int expert) const {
  if (fixed("expert_dispatch") || expert == 1) return {given_.expert_dispatch};
  std::vector<ExpertDispatch> all{ExpertDispatch::kStack};
  if (simulator::all_devices_are_cores(request_.cluster)) return all;
  const ExpertDispatch usual = program::find_stack(given_.stack)->expert_dispatch;
  for (const auto other : {ExpertDispatch::kAllToAll, ExpertDispatch::kDeepEp, ExpertDispatch::kHybrid}) {
    if (other != usual) all.push_back(other);
  }
  return all;
}

// Whether the layers' matrices are kept and gathered in 8 bits: as given, or as the stack does it and, where a
// constraint lets them, the other way. Without what that needs nothing is tried.
std::vector<Fp8Gather> Space::parameter_gathers(const Plan& split) const {
  const bool open = given_.fp8 != program::Fp8::kNone && split.data * split.context > 1;
  if (fixed("fp8_parameter_gather") || !open) return {given_.fp8_parameter_gather};
  if (simulator::all_devices_are_cores(request_.cluster)) return {Fp8Gather::kStack};
  Plan other = split;
  other.fp8_parameter_gather = Fp8Gather::kStack;
  const bool usual = program::keeps_parameters_in_8_bits(other, *program::find_stack(given_.stack));
  return {Fp8Gather::kStack, usual ? Fp8Gather::kOff : Fp8Gather::kOn};
}

// How the context ranks exchange keys and values, how experts are split and reached, and the samples of a micro-batch.
void Space::add_splits(Plan plan) {
  std::vector<ContextMethod> methods{given_.context_method};
  if (plan.context > 1 && !fixed("context_method")) methods = {ContextMethod::kRing, ContextMethod::kAllToAll};
  std::vector<std::pair<ContextMethod, int>> exchanges;
  for (const ContextMethod method : methods) {
    for (const int heads : head_ranks(plan.context, method)) exchanges.emplace_back(method, heads);
  }
  for (const auto& [method, heads] : exchanges) {
    for (const auto& [expert, expert_tensor] : expert_splits(plan)) {
      for (const int micro_batch : micro_batches(plan)) {
        plan.context_method = method;
        plan.context_heads = heads;
        plan.expert = expert;
        plan.expert_tensor = expert_tensor;
        plan.micro_batch = micro_batch;
        for (const ExpertDispatch dispatch : dispatches(expert)) {
          plan.expert_dispatch = dispatch;
          for (const Fp8Gather gather : parameter_gathers(plan)) {
            plan.fp8_parameter_gather = gather;
            if (allows(Level::kSplit, plan) && !is_dominated_by_whole_experts(plan)) splits_.push_back(plan);
          }
        }
      }
    }
  }
}

}  // namespace trivium::planner
