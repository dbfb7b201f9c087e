// What interpreters take of a job as it is.
#pragma once

#include "program/ir/settings.h"
#include "program/plan/job.h"
#include "program/plan/stack.h"

namespace trivium::program {

/// Precondition: check() accepts the job, whose plan is normalised().
/// `other`, where given: those of another plan of the job; what no plan changes is copied.
Settings settings_of(const Job& job, const StackTraits& stack, const Settings* other = nullptr);

}  // namespace trivium::program
