#include "simulator/replay/body_template.h"

#include <algorithm>

#include "simulator/collectives/network_bytes.h"
#include "simulator/cost/copy_cost.h"

namespace trivium::simulator {
namespace {

static_assert(kStreams == program::kLanes);

using program::Op;
using program::OpKind;

bool is_transfer(const Op& op) { return op.kind == OpKind::kSend || op.kind == OpKind::kRecv; }

// How many have to meet: with one rank for every role, and links that nobody shares, only other roles matter.
int members_of(const program::Program& program, const Op& op, const ReplayOptions& options) {
  if (options.ranks == Ranks::kEvery || options.contention) return program.mesh.group_size(op.group);
  const bool different_replicas = !program.replica_kinds.empty() && joins_replicas(op.group);
  const int kinds = different_replicas ? static_cast<int>(program.roles.size()) / program.mesh.pipeline() : 1;
  if (!joins_stages(op.group)) return kinds;
  const int stages =
      op.group == program::Group::kEmbedding ? std::min(2, program.mesh.pipeline()) : program.mesh.pipeline();
  return kinds * stages;
}

std::int16_t channel_of(const Op& op, int stream, std::vector<Channel>& channels) {
  const Channel wanted{op.group, static_cast<program::Lane>(stream)};
  const auto found = std::find(channels.begin(), channels.end(), wanted);
  if (found != channels.end()) return static_cast<std::int16_t>(found - channels.begin());
  channels.push_back(wanted);
  return static_cast<std::int16_t>(channels.size() - 1);
}

void describe_op(const program::Program& program, const Op& op, const ReplayOptions& options,
                 std::vector<Channel>& channels, TemplateStep& at, Step& step) {
  if (program::is_copy(op.kind)) {
    step.wire = op.bytes * copied_share(op, program.settings, program.stack);
    if (!options.contention) return;  // nobody else is on its way
    at.rendezvous = RendezvousKind::kCopy;
    at.channel = op.kind == OpKind::kFetch ? 1 : 0;
    return;
  }
  if (!program::is_communication(op.kind)) {
    step.computes = true;
    return;
  }
  step.wire = wire_bytes(program.mesh, op);
  step.exchange = op.kind == OpKind::kAllToAll;
  if (is_transfer(op)) {
    step.sends = op.kind == OpKind::kSend;
    at.rendezvous = RendezvousKind::kTransfer;
  } else if (members_of(program, op, options) > 1) {
    at.rendezvous = RendezvousKind::kCollective;
    at.channel = channel_of(op, at.stream, channels);
  }
}

}  // namespace

BodyTemplate make_template(const CostedProgram& costed, int role, int body, const ReplayOptions& options,
                           std::vector<Channel>& channels, std::vector<Step>& steps) {
  const program::Program& program = *costed.program;
  const program::Body& source = program.bodies[static_cast<std::size_t>(body)];
  const auto& op_ps = costed.op_ps[static_cast<std::size_t>(role)][static_cast<std::size_t>(body)];
  const StepBody made =
      make_steps(source, op_ps, options.granularity, !costed.asynchronous_lanes, !program.replica_kinds.empty());
  BodyTemplate out;
  out.last_of_all.fill(-1);
  out.segments.resize(source.segments.size());
  LastSteps none;
  none.fill(-1);
  out.last.assign(source.segments.size(), none);
  out.steps.resize(made.steps.size());
  std::vector<Step> described(made.steps.size());
  for (std::size_t i = 0; i < made.steps.size(); ++i) {
    const BodyStep& from = made.steps[i];
    TemplateStep& to = out.steps[i];
    Step& step = described[i];
    to.stream = static_cast<std::int8_t>(from.lane);
    step.ps = from.ps;
    step.op = from.op;
    step.segment = from.segment;
    if (from.op < 0) {
      step.computes = true;
    } else {
      describe_op(program, source.ops[static_cast<std::size_t>(from.op)], options, channels, to, step);
    }
    const auto segment = static_cast<std::size_t>(from.segment);
    auto& [begin, end] = out.segments[segment];
    if (end == 0) begin = static_cast<std::int32_t>(i);
    end = static_cast<std::int32_t>(i) + 1;
    const auto stream = static_cast<std::size_t>(to.stream);
    out.last[segment][stream] = out.last_of_all[stream] = static_cast<std::int32_t>(i);
    for (const std::int32_t next : from.next) {
      if (made.steps[static_cast<std::size_t>(next)].lane == from.lane) continue;
      out.steps[static_cast<std::size_t>(next)].after.push_back(static_cast<std::int32_t>(i));
    }
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    for (std::size_t i = 0; i < out.steps.size(); ++i) {
      if (out.steps[i].stream != stream) continue;
      out.steps[i].place = static_cast<std::int32_t>(steps.size());
      steps.push_back(described[i]);
    }
  }
  return out;
}

}  // namespace trivium::simulator
