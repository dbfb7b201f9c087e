#include "simulator/replay/traffic.h"

#include <algorithm>

#include "base/seconds.h"

namespace trivium::simulator {
namespace {

void count(Traffic& traffic, Traffic::Stream& stream, const Instruction& in, const Step& step) {
  if (in.rendezvous == RendezvousKind::kCollective) traffic.channels.insert(in.partner);
  if (in.rendezvous == RendezvousKind::kTransfer) traffic.peers.insert(in.peer_role);
  if (step.wire <= 0 || in.ps <= 0) return;
  if (in.rendezvous == RendezvousKind::kTransfer && step.sends) traffic.receivers.insert(in.peer_role);
  auto& rates = in.rendezvous == RendezvousKind::kTransfer ? stream.peers
                : in.rendezvous == RendezvousKind::kCopy   ? stream.copies
                : step.exchange                            ? stream.exchanges
                                                           : stream.rings;
  double& fastest = rates[in.rendezvous == RendezvousKind::kTransfer ? in.peer_role : in.partner];
  fastest = std::max(fastest, step.wire * base::kPsPerSecond / static_cast<double>(in.ps));
}

}  // namespace

std::set<std::int32_t> Traffic::all(std::map<std::int32_t, double> Stream::*of) const {
  std::set<std::int32_t> keys;
  for (const Stream& stream : streams) {
    for (const auto& [key, rate] : stream.*of) keys.insert(key);
  }
  return keys;
}

std::vector<Traffic> traffic_of(const std::vector<InstructionStreams>& streams_by_role) {
  std::vector<Traffic> all;
  for (const InstructionStreams& instructions : streams_by_role) {
    Traffic& traffic = all.emplace_back();
    for (std::size_t s = 0; s < kStreams; ++s) {
      for (const Instruction& in : instructions.streams[s]) {
        if (in.rendezvous == RendezvousKind::kNone) continue;
        count(traffic, traffic.streams[s], in, instructions.steps[static_cast<std::size_t>(in.first_step)]);
      }
    }
  }
  return all;
}

}  // namespace trivium::simulator
