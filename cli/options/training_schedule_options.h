// Options of `run` that shape the training schedule of a training: learning rate, batch, validation.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/executor/training_schedule.h"

namespace trivium::cli {

struct TrainingScheduleOptions {
  std::string decay = "cosine", scaling = "none";
  std::int64_t cooldown_steps = 0, base_batch = 0;
  std::vector<std::int64_t> ramp;  ///< start, increment, steps; empty: none
  std::string validation;          ///< file; empty: none
  std::int64_t validate_every = 0;
};

/// Adds --rate-schedule, --cooldown-steps, --rate-scaling, --base-batch, --ramp-batch, --validation and
/// --validate-every. `options` must outlive the parse.
void add_course_options(CLI::App& command, TrainingScheduleOptions& options);

/// The training schedule they mean for a job. Errors: Failure(kUsage) where options do not fit each other or the plan.
runtime::TrainingSchedule training_schedule_of(const TrainingScheduleOptions& options, const program::Job& job);

}  // namespace trivium::cli
