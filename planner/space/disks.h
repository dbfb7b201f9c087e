// When the search opens the disks of nodes to the optimizer's state.
#pragma once

#include "planner/space/request.h"

namespace trivium::planner {

/// Whether neither all devices nor all hosts that a plan may use can hold the optimizer's state of the whole model, and
/// every node has a disk, and the devices hold the parameters: then the search tries it, and else it does not, as a
/// host is always the faster place. Closed where `offload.optimizer` is fixed or a constraint forbids it, for other
/// trainers' files, and where memory is ignored.
bool opens_disks(const SearchRequest& request);

/// Whether every node has a disk, and copies that run beside the kernels.
bool has_disks(const hardware::Cluster& cluster);

/// Bytes of the optimizer's moments of a parameter, which is not of fp64, at least.
double moment_bytes(const program::Job& job);

/// What all devices that a plan may use hold, without what is reserved, and all their hosts.
struct Room {
  base::Bytes devices{0}, hosts{0};
};
Room room_of(const SearchRequest& request);

}  // namespace trivium::planner
