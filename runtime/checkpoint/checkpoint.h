// Saving and loading what a training is at, by all ranks together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/checkpoint/description.h"
#include "runtime/checkpoint/stored.h"
#include "runtime/communicator.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime::checkpoint {

/// Writes the ranks' parameters, moments and place in the data to `folder`/step-N: every rank its own shard file, into
/// a folder that gets its name only when all of it is on the disk. `description.files` is filled in here. All ranks
/// call it with their end of the communicator and its group of all ranks. Where one fails, all throw Failure(kRuntime)
/// with that rank and its reason, and what was written is removed; earlier checkpoints stay as they were.
void save(const std::filesystem::path& folder, Description description, std::int64_t keep,
          const program::Program& program, const Arenas& arenas, Communicator& communicator, int everyone);

/// Writes a checkpoint of other tensors as the ranks of `program` would, one rank after the other. Errors: as `save`,
/// and Failure(kInput) for tensors that do not fit the model.
void write_resharded(const std::filesystem::path& folder, Description description, const program::Program& program,
                     const StoredTensors& tensors);

/// Fills this rank's memory from an opened checkpoint. Every rank for itself. Errors: Failure(kInput).
void fill(const StoredTensors& tensors, const program::Program& program, int rank, const Arenas& arenas);

/// A checkpoint that was opened: sizes and checksums of its files agree.
struct Opened {
  std::filesystem::path path;
  Description description;
  StoredTensors tensors;
};

/// Reads the description of one checkpoint and checks its files. `path`: the folder of one step.
/// Errors: Failure(kInput) naming what is missing, torn or altered.
Description read_description(const std::filesystem::path& path, bool verify);
Opened open(const std::filesystem::path& path, bool verify);

/// The newest checkpoint in `folder` whose files are whole, or `folder` itself where it is one.
struct Newest {
  std::optional<std::filesystem::path> path;
  std::vector<std::string> passed_over;  ///< what was left out and why: half-written or torn ones
};
Newest newest(const std::filesystem::path& folder);

/// As `newest`, where there must be one. Errors: Failure(kInput).
std::filesystem::path newest_or_throw(const std::filesystem::path& folder);

}  // namespace trivium::runtime::checkpoint
