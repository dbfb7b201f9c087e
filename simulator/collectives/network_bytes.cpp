#include "simulator/collectives/network_bytes.h"

namespace trivium::simulator {

using program::OpKind;

double wire_bytes(const program::Mesh& mesh, const program::Op& op) {
  return wire_bytes(mesh, op.kind, op.group, op.bytes);
}

double wire_bytes(const program::Mesh& mesh, OpKind kind, program::Group group, double bytes) {
  if (kind == OpKind::kSend || kind == OpKind::kRecv || kind == OpKind::kRingShift) return bytes;
  const double n = mesh.group_size(group);
  return bytes * (kind == OpKind::kAllReduce ? 2 : 1) * (n - 1) / n;
}

}  // namespace trivium::simulator
