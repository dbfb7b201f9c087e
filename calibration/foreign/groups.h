// Which ranks a collective of a foreign run was made among.
#pragma once

#include "calibration/foreign/rank_run.h"

namespace trivium::calibration::foreign {

/// The group that the trace names for the collective. Where it names none, as on cores: the only one that the rank is
/// in; of several the one of pipelines for a transfer, of replicas for the rest, by what the groups are described as.
/// Null: not told.
const imports::ProcessGroup* group_of(const RankRun& run, const imports::Kernel& kernel);

/// The other rank of a transfer; -1: not told.
int peer_of(const imports::ProcessGroup* group, const imports::Kernel& kernel);

/// Whether a group's description is that of stages of a pipeline.
bool is_pipeline(const imports::ProcessGroup& group);

}  // namespace trivium::calibration::foreign
