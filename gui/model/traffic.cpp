#include "gui/model/traffic.h"

#include <map>

namespace trivium::gui {
namespace {

// Ring collectives (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations").
double share_sent(program::OpKind kind, int ranks) {
  const double half = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case program::OpKind::kAllReduce:
      return 2 * half;
    case program::OpKind::kSend:
    case program::OpKind::kRingShift:
      return 1;
    case program::OpKind::kRecv:
      return 0;
    default:
      return half;
  }
}

}  // namespace

std::vector<Exchange> traffic(const program::Program& program, int role) {
  std::map<std::int32_t, std::int64_t> uses;  // of bodies
  for (const program::Task& task : program.roles.at(static_cast<std::size_t>(role)).tasks) ++uses[task.body];
  std::map<program::Group, Exchange> by_group;
  for (const auto& [body, count] : uses) {
    for (const program::Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
      if (!program::is_communication(op.kind) || op.kind == program::OpKind::kRecv) continue;
      Exchange& exchange = by_group[op.group];
      exchange.group = op.group;
      exchange.operations += count;
      exchange.payload_bytes += static_cast<double>(count) * op.bytes;
      exchange.sent_bytes +=
          static_cast<double>(count) * op.bytes * share_sent(op.kind, program.mesh.group_size(op.group));
    }
  }
  std::vector<Exchange> exchanges;
  for (const auto& [group, exchange] : by_group) exchanges.push_back(exchange);
  return exchanges;
}

double sent_bytes(const program::Program& program, int role) {
  double sum = 0;
  for (const Exchange& exchange : traffic(program, role)) sum += exchange.sent_bytes;
  return sum;
}

}  // namespace trivium::gui
