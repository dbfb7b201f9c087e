// A body as the steps that a rank's streams take through it: once for all tasks that run it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/cost/costed_program.h"
#include "simulator/replay/instructions.h"
#include "simulator/replay/replay_program.h"
#include "simulator/schedule/step_body.h"

namespace trivium::simulator {

/// The last step on every stream, or -1.
using LastSteps = std::array<std::int32_t, kStreams>;

struct TemplateStep {
  std::int8_t stream = 0;
  RendezvousKind rendezvous = RendezvousKind::kNone;
  std::int16_t channel = -1;        ///< kCollective; kCopy: 0 out of the device, 1 into it
  std::int32_t place = 0;           ///< in InstructionStreams::steps
  std::vector<std::int32_t> after;  ///< steps of other streams
};

struct BodyTemplate {
  std::vector<TemplateStep> steps;
  std::vector<std::pair<std::int32_t, std::int32_t>> segments;  ///< [begin, end) of its steps
  std::vector<LastSteps> last;                                  ///< by segment
  LastSteps last_of_all{};
};

/// The template of a body, its steps appended to `steps`, those of one stream side by side. New channels are added.
BodyTemplate make_template(const CostedProgram& costed, int role, int body, const ReplayOptions& options,
                           std::vector<Channel>& channels, std::vector<Step>& steps);

}  // namespace trivium::simulator
