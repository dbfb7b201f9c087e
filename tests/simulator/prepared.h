// A job that a test simulates.
#pragma once

#include "simulator/predict/prepare.h"

namespace trivium::simulator {

/// As prepare(), whether it fits or not. The cluster must outlive it.
inline Prepared prepared(const program::Job& job, const hardware::Cluster& cluster) {
  return prepare(job, cluster, {.fits = false}).value_or_throw();
}

}  // namespace trivium::simulator
