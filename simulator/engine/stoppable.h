// The engine's plays for callers who may lose interest: they end soon after they are asked to, without a result.
#pragma once

#include <stop_token>

#include "simulator/engine/engine.h"

namespace trivium::simulator {

/// What a play that was asked to stop returns: kInterrupted.
base::Error given_up();

constexpr int kEndsBetweenLooks = 4096;  ///< steps that end between two looks at the stop token: a millisecond or two

/// As without `stop`, at which it looks every kEndsBetweenLooks steps.
base::Result<Play> play(const CostedProgram& costed, Granularity granularity, const std::stop_token& stop);

/// As without `stop`. A stop that is asked for before the start gives no result either.
base::Result<program::Program> order(program::Program program, const hardware::Cluster& cluster,
                                     const std::stop_token& stop);

}  // namespace trivium::simulator
