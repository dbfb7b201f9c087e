// Plans in the words of other trainers: files that launch them there, and what those trainers cannot be told.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::planner::launch {

enum class Trainer : std::uint8_t { kMegatron, kDeepspeed, kTorchtitan, kNemo, kAccelerate };

/// The trainer as it was read: flags move, so a file says for which version it was written.
struct TrainerVersion {
  Trainer trainer{};
  std::string_view name;      ///< "megatron", as the command line has it
  std::string_view software;  ///< "Megatron-LM"
  std::string_view version;   ///< commit or tag
  std::string_view date;      ///< of the version
};
std::span<const TrainerVersion> trainers();
const TrainerVersion& version_of(Trainer trainer);

/// A field that goes lost or comes out differently, and how: {"schedule", "gpipe; Megatron-LM runs 1F1B"}.
struct Loss {
  std::string field;
  std::string what;
  bool operator==(const Loss&) const = default;
};

/// A file that launches a plan.
struct Launch {
  std::string form;  ///< "shell script", "TOML", "Python", "YAML"
  std::string text;
  std::vector<Loss> losses;
};

/// The file that launches the job there, on as many of the cluster's nodes as it has ranks. Precondition: the counts of
/// the plan are 1 or more, and its micro-batches share out the batch. Errors: Failure(kNoPlan) where they do so with
/// unlike sizes alone (replica_micro_batch), which no trainer has.
Launch export_plan(const program::Job& job, const hardware::Cluster& cluster, Trainer trainer);

/// A launch file read back. `losses`: settings of the file that have no place in a job, or were taken for their
/// nearest.
struct Imported {
  program::Job job;
  std::vector<Loss> losses;
};

/// What the file alone does not say.
struct ImportRequest {
  std::string text;                    ///< content of the file
  std::string where;                   ///< its name, for errors
  std::optional<models::Model> model;  ///< instead of the shape in the arguments; DeepSpeed's JSON has none
  std::int64_t sequence = 0;           ///< tokens; 0: the file's, else the model's longest
  int ranks = 0;                       ///< where the file does not say how many processes are started
};

/// Megatron-LM's arguments: a shell script, or the table of arguments in a log. Errors: Failure(kInput) naming the
/// argument.
Imported import_megatron(const ImportRequest& request);
/// DeepSpeed: its JSON, or a script for Megatron-DeepSpeed that holds the JSON as a here-document. Errors: likewise.
Imported import_deepspeed(const ImportRequest& request);
/// Whether the text is for DeepSpeed: JSON, or a script that passes --deepspeed.
bool is_deepspeed(std::string_view text, const std::string& where);

}  // namespace trivium::planner::launch
