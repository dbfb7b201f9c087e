// Options of `run` that shape the course of a training: learning rate, batch, validation.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/executor/course.h"

namespace trivium::cli {

struct CourseOptions {
  std::string decay = "cosine", scaling = "none";
  std::int64_t cooldown_steps = 0, base_batch = 0;
  std::vector<std::int64_t> ramp;  ///< start, increment, steps; empty: none
  std::string validation;          ///< file; empty: none
  std::int64_t validate_every = 0;
};

/// Adds --rate-schedule, --cooldown-steps, --rate-scaling, --base-batch, --ramp-batch, --validation and
/// --validate-every. `options` must outlive the parse.
void add_course_options(CLI::App& command, CourseOptions& options);

/// The course they mean for a job. Errors: Failure(kUsage) where options do not fit each other or the plan.
runtime::Course course_of(const CourseOptions& options, const program::Job& job);

}  // namespace trivium::cli
