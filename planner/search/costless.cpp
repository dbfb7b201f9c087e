#include "planner/search/costless.h"

#include <algorithm>

#include "models/model.h"
#include "planner/space/disks.h"
#include "program/lower/adapters.h"

namespace trivium::planner {
namespace {

// A parameter in 16 bits (fp32 and fp64 take more), and its fp32 copy, which stacks that keep no other between steps
// hold instead of it; in fp32 itself. Frozen ones may be kept in 4 bits.
constexpr double kParameterBytes = 2, kCopyBytes = 4, kLeastBytes = 0.5;

bool may_offload(const SearchRequest& request) {
  const auto closed = [](const Constraint& constraint) {
    return constraint.kind == Constraint::Kind::kForbid &&
           (constraint.field == "offload" || (constraint.field == "offload.optimizer" && constraint.value == "host"));
  };
  if (request.job.plan.offload.optimizer != program::Storage::kNone) return true;
  return is_open(request, "offload.optimizer") && std::ranges::none_of(request.constraints, closed);
}

}  // namespace

std::optional<std::string> lacks_memory(const SearchRequest& request) {
  if (request.ignore_memory) return std::nullopt;
  const program::Offload& given = request.job.plan.offload;
  if (given.optimizer == program::Storage::kDisk || given.parameters == program::Storage::kDisk) return std::nullopt;
  if (opens_disks(request)) return std::nullopt;
  const auto [devices, hosts] = room_of(request);
  const auto parameters = static_cast<double>(models::count_parameters(request.job.model).total);
  const bool frozen = request.job.training.lora.used(), low = request.job.plan.fp8 != program::Fp8::kNone;
  const double kept = frozen && low ? kLeastBytes : kParameterBytes;
  const base::Bytes held(parameters * kept),
      state(parameters * (frozen ? kept : kCopyBytes + moment_bytes(request.job)));
  const bool away = given.parameters == program::Storage::kHost;
  if (!away && held > devices) {
    return "the parameters take " + base::to_text(held) + ", all devices together hold " + base::to_text(devices);
  }
  const bool offloads = away || may_offload(request);
  const base::Bytes all = offloads ? devices + hosts : devices;
  if (!(state > all)) return std::nullopt;
  return "parameters and optimizer state take " + base::to_text(state) + ", all devices" +
         (offloads ? " and their hosts" : "") + " together hold " + base::to_text(all);
}

double least_training_s(const SearchRequest& request) {
  const program::Training& training = request.job.training;
  program::Job short_one = request.job;
  short_one.training.sequence = 1;
  const double whole = program::flops_per_token(request.job).model;
  const double without_attention = program::flops_per_token(short_one).model;
  program::Plan one = request.job.plan;
  one.tensor = one.context = one.pipeline = one.data = 1;
  one.stage_nodes.clear();
  double rate = 0;
  for (const hardware::NodeGroup& group : request.cluster.groups) {
    hardware::Cluster alone;
    alone.groups.push_back(group);
    rate += simulator::peak_flops(one, alone) * group.count * group.node.devices;
  }
  const double flops = (whole + without_attention) / 2 * static_cast<double>(training.total_tokens);
  return rate > 0 ? flops / rate : 0;
}

}  // namespace trivium::planner
