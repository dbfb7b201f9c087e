// How often experts were chosen, as a file has it, and what a job can have of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "program/plan/job.h"
#include "program/plan/training.h"

namespace trivium::program {

/// Counts between white space, or in a JSON array, expert by expert.
/// Errors: Failure(kInput) where the file cannot be read, has no count or something else than counts.
std::vector<std::int64_t> read_expert_load(const std::filesystem::path& path);

/// Why the job's model or training cannot have its ExpertLoad; empty: it can, or has none.
std::string without_expert_load(const Job& job);

}  // namespace trivium::program
