#include "planner/space/disks.h"

#include <algorithm>

#include "models/model.h"
#include "program/plan/dtype.h"

namespace trivium::planner {
namespace {

using program::Storage;

// Beside AdamW's two moments: parameters in fp32 or, of half precision, an fp32 copy that goes with them.
constexpr double kCopyBytes = 4, kParameterBytes = 2;

bool is_closed(const SearchRequest& request) {
  if (request.ignore_memory || request.trainer != nullptr || !is_open(request, "offload.optimizer")) return true;
  program::Plan plan = request.job.plan;
  plan.offload.optimizer = Storage::kDisk;
  return std::ranges::any_of(request.constraints, [&](const Constraint& constraint) {
    return constraint.field.starts_with("offload") && !constraint.allows(plan);
  });
}

}  // namespace

double moment_bytes(const program::Job& job) {
  const bool one = job.training.optimizer.kind == program::Update::kMuon;  // but for embeddings, norms and biases
  return one || job.plan.moment_dtype == program::Moments::kBf16 ? 4 : 8;
}

Room room_of(const SearchRequest& request) {
  Room room;
  int left = request.ranks > 0 && request.cluster.homogeneous() ? request.ranks : request.cluster.devices();
  for (const hardware::NodeGroup& group : request.cluster.groups) {
    const hardware::Device& device = group.node.device;
    const int used = std::min(left, group.count * group.node.devices);
    left -= used;
    room.devices += (device.memory - device.reserved) * used;
    room.hosts += group.node.host_memory * ((used + group.node.devices - 1) / group.node.devices);
  }
  return room;
}

bool has_disks(const hardware::Cluster& cluster) {
  return std::ranges::all_of(cluster.groups, [](const hardware::NodeGroup& group) {
    return group.node.disk.value() > 0 && group.node.asynchronous_lanes;
  });
}

bool opens_disks(const SearchRequest& request) {
  if (request.job.training.lora.used() || !has_disks(request.cluster) || is_closed(request)) return false;
  const Room room = room_of(request);
  const auto parameters = static_cast<double>(models::count_parameters(request.job.model).total);
  const double copy = program::is_half(request.job.plan.precision) ? kCopyBytes : 0;
  const double moments = moment_bytes(request.job);
  const base::Bytes on_devices(parameters * (moments + kCopyBytes)), on_hosts(parameters * (moments + copy));
  const bool stays = request.job.plan.offload.parameters == Storage::kNone;
  if (stays && base::Bytes(parameters * kParameterBytes) > room.devices) return false;  // nothing helps
  return on_devices > room.devices && on_hosts > room.hosts;
}

}  // namespace trivium::planner
