#include "gui/model/traffic.h"

#include <map>

#include "simulator/collectives/network_bytes.h"

namespace trivium::gui {
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
      exchange.sent_bytes += static_cast<double>(count) * simulator::wire_bytes(program.mesh, op);
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
