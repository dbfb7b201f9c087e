// A plan by the split that most tests differ in.
#pragma once

#include "program/plan/plan.h"

namespace trivium::support {

inline program::Plan split_plan(int tensor, int pipeline, int data, int zero_stage = 0) {
  program::Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.zero_stage = zero_stage;
  return plan;
}

}  // namespace trivium::support
