#include "simulator/collectives/network_bytes.h"

namespace trivium::simulator {

using program::OpKind;

double wire_bytes(const program::Mesh& mesh, const program::Op& op) {
  if (op.kind == OpKind::kSend || op.kind == OpKind::kRecv || op.kind == OpKind::kRingShift) return op.bytes;
  const double n = mesh.group_size(op.group);
  return op.bytes * (op.kind == OpKind::kAllReduce ? 2 : 1) * (n - 1) / n;
}

}  // namespace trivium::simulator
