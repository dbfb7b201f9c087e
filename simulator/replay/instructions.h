// What a rank executes, as the engine sees it: streams of instructions that all ranks of a role share.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trivium::simulator {

/// In-order queues of a rank; the caller's lanes.
constexpr int kStreams = 7;

/// One op, or one whole segment where segments are simulated at once.
struct Step {
  std::int64_t ps = 0;
  double wire = 0;       ///< communication: bytes that each sends, one way; 0: too few to count
  std::int32_t op = -1;  ///< index in its body; -1: the whole segment
  std::int32_t segment = 0;
  bool computes = false;  ///< its duration varies from time to time, and with the device
  bool sends = false;     ///< a transfer's outgoing end
  bool exchange = false;  ///< a collective in which each sends to every other, not to the next of a ring
};

/// What an instruction joins several ranks for.
enum class RendezvousKind : std::uint8_t {
  kNone,
  kCollective,
  kTransfer,
  kCopy  ///< nobody else, but the device's bus
};

/// A run of steps of one task, back to back on one stream. It starts when the run before it on the stream has ended and
/// one signal of every stream of `waits` has come; when it ends it signals every stream of `signals`. Between two
/// streams signals are taken in the order they were given. An instruction that joins ranks has one step.
struct Instruction {
  std::int64_t ps = 0;          ///< of its steps together
  std::int32_t task = 0;        ///< of the role
  std::int32_t first_step = 0;  ///< in InstructionStreams::steps
  std::int32_t partner =
      -1;  ///< kCollective: the channel · kTransfer: number, the same at both ends · kCopy: 0 out, 1 in
  std::uint16_t steps = 0;
  std::int16_t peer_role = -1;          ///< kTransfer
  std::uint8_t waits = 0, signals = 0;  ///< bit s: stream s
  RendezvousKind rendezvous = RendezvousKind::kNone;
};

/// What all ranks of one role do. Immutable and shared by them.
struct InstructionStreams {
  std::array<std::vector<Instruction>, kStreams> streams;
  std::vector<Step> steps;
  /// [from][to]: the most signals of one stream to another that can be given and not yet taken.
  std::array<std::array<std::int32_t, kStreams>, kStreams> in_flight{};
};

}  // namespace trivium::simulator
