// A folder of checkpoints: DIR/step-00000020/, DIR/step-00000040/, … and DIR/latest, which names the newest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trivium::runtime::checkpoint {

std::string folder_name(std::int64_t step);  ///< "step-00000020"
std::string shard_name(int rank);            ///< "rank-00003.safetensors"
/// Where the checkpoint of a step is written before it is whole: ".step-00000020.tmp".
std::string unfinished_name(std::int64_t step);

/// What lies in a folder of checkpoints.
struct Listing {
  std::vector<std::filesystem::path> whole;       ///< renamed into place, newest first, what `latest` names in front
  std::vector<std::filesystem::path> unfinished;  ///< left behind by a run that died while writing
};
/// Nothing where the folder does not exist. Errors: Failure(kInput) where it cannot be read.
Listing list(const std::filesystem::path& folder);

/// Refuses a folder whose `latest` is no regular file, as a pipe that nobody reads: a save would wait for ever.
/// Errors: Failure(kInput).
void refuse_odd_latest(const std::filesystem::path& folder);

/// Gives a finished and verified checkpoint its name, then lets `latest` name it, each in one step of the file system,
/// and only then removes what is unfinished, what it replaced, and of the checkpoints of earlier steps all but so many
/// that `keep` remain with this one (0: keeps all). Errors: Failure(kRuntime).
void publish(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep);

}  // namespace trivium::runtime::checkpoint
