// What the comparison runs: twenty plans of three model sizes, and others that teach.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/ir/program.h"

namespace trivium::fidelity {

/// Plan fields as options give them.
using Fields = std::vector<std::pair<std::string, std::string>>;

struct Case {
  std::string model;
  Fields fields;
};

/// 7, 7 and 6 plans of three sizes on 1, 2, 4 and 8 ranks: tensor, pipeline, data, context, ZeRO, recomputation and
/// accumulation mixed. None is a lesson.
std::vector<Case> plans();

/// What the profile is calibrated on: one and two ranks.
std::vector<Case> lessons();

/// The job of a case: fp32, a batch of 8. Errors: Failure(kInput) for an unknown field or value.
program::Job job_of(const Case& one);

}  // namespace trivium::fidelity
