// A body as the steps that lanes take through it: the engine's working form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/cost/costed_program.h"
#include "simulator/cost/lanes.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {

/// One step of a body.
struct BodyStep {
  program::Lane lane{};
  std::int32_t segment = 0;
  std::int32_t op = -1;
  std::int64_t ps = 0;
  bool rendezvous = false;         ///< a collective that joins roles, or an end of a transfer
  program::Group group{};          ///< of a rendezvous step
  std::vector<std::int32_t> next;  ///< steps of the body that wait for this one (other lanes)
  std::int32_t waits = 0;          ///< how many steps of the body it waits for
};

/// A body as steps, those of one segment side by side. `segment_steps[s]`: how many steps segment s has.
struct StepBody {
  std::vector<BodyStep> steps;
  std::vector<std::int32_t> segment_steps;
  std::vector<std::int32_t> segment_begin;  ///< by segment: its first step
  std::vector<char> turns;                  ///< by segment: whether a turn begins there (program/ir/turns.h)
  bool beside = false;  ///< collectives of gathers and reductions alone: they run when they are ready
};

/// Steps of a body with a role's durations. `merge_lanes`: everything but transfers on the compute lane.
/// `unlike_replicas`: replicas are of several roles, so that what joins replicas joins roles.
StepBody make_steps(const program::Body& body, const std::vector<std::int64_t>& op_ps, Granularity granularity,
                    bool merge_lanes, bool unlike_replicas = false);

/// The same with all segments in one step on the compute lane; nothing where they run on several lanes or have to be
/// seen one by one.
std::optional<StepBody> merged(const StepBody& by_segment);

}  // namespace trivium::simulator
