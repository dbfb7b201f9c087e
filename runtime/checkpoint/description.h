// checkpoint.json: what a checkpoint is of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program/plan/plan_file.h"
#include "runtime/executor/loss_scale.h"

namespace trivium::runtime::checkpoint {

/// One shard file, as it was when it was written.
struct ShardFile {
  std::string name;
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;
};

/// Schema `trivium.checkpoint/1`.
struct Description {
  std::int64_t step = 0;           ///< optimizer steps done; the next one has this number
  std::int64_t samples = 0;        ///< of the sampler's order read so far
  std::int64_t corpus_tokens = 0;  ///< of the text it was trained on; 0: not trained yet
  LossScale scale;                 ///< of fp16 trainings: where it stands
  program::PlanFile job;           ///< under which it was saved
  std::vector<ShardFile> files;
};

constexpr const char* kDescriptionFile = "checkpoint.json";

nlohmann::json to_json(const Description& description);
/// Errors: Failure(kInput) with file and pointer.
Description description_from_json(const nlohmann::json& json, const std::string& where);

/// Members of the model whose change binds no weight, and which `wanted` has otherwise: "experts/imbalance was 1, is
/// now 2". A training goes on with them.
std::vector<std::string> changed_members(const Description& saved, const program::Job& wanted);

/// Why a training of `wanted` over `corpus_tokens` tokens cannot go on from here, or empty: a model of other shapes or
/// arithmetic, named by member and values, or another order of samples. Plan, learning rates and the like may change.
std::string cannot_continue(const Description& saved, const program::Job& wanted, std::int64_t corpus_tokens);

}  // namespace trivium::runtime::checkpoint
