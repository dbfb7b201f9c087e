// Plans in the words of other trainers: files that launch them there, and what those trainers cannot be told.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "planner/launch/shell/reading.h"
#include "program/ir/program.h"

namespace trivium::planner::launch {

struct Script;

enum class Trainer : std::uint8_t { kMegatron, kMegatronBridge, kDeepspeed, kTorchtitan, kNemo, kAccelerate, kFsdp2 };

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
/// By its name; null for none.
const TrainerVersion* find_trainer(std::string_view name);

/// A field that goes lost or comes out differently, and how: {"schedule", "gpipe; Megatron-LM runs 1F1B"}.
struct Loss {
  std::string field;
  std::string what;
  std::string becomes{};  ///< of a plan field: its value there, as program::set_field takes it; empty: not told
  bool operator==(const Loss&) const = default;
};

/// A training setting as text: {"warmup_steps", "10"}.
struct Setting {
  std::string field;
  std::string value;
  bool operator==(const Setting&) const = default;
};

/// "learning_rate 0.0003, warmup_steps 10".
std::string text_of(const std::vector<Setting>& settings);

/// A file that launches a plan.
struct Launch {
  std::string form;  ///< "shell script", "TOML", "Python", "YAML"
  std::string text;
  std::vector<Loss> losses;
  std::vector<Setting> defaults;  ///< settings of the file that are Trivium's defaults; its second comment lists them
};

/// The file that launches the job there, on as many of the cluster's nodes as it has ranks. `chosen`: training fields
/// that the user gave, which are no defaults though they have their values. Precondition: the counts of the plan are 1
/// or more, and its micro-batches share out the batch. Errors: Failure(kNoPlan) where they do so with different sizes
/// alone (replica_micro_batch), which no trainer has.
Launch export_plan(const program::Job& job, const hardware::Cluster& cluster, Trainer trainer,
                   const std::set<std::string>& chosen = {});

/// Loss::becomes of a list that is not written: equal layers, one choice for all stages.
inline constexpr std::string_view kCleared = "-";

/// What goes lost, as a plan: the fields that become something else there, all of them together. Nothing where no loss
/// tells its value.
std::optional<program::Plan> as_launched(const program::Job& job, const std::vector<Loss>& losses);

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
  std::int64_t global_batch = 0;       ///< samples; 0: the file's
  bool fixes_ranks = false;            ///< `ranks` whatever the file says
  int devices_per_node = 0;            ///< where the file says only how many nodes there are; 0: not known
  shell::Surroundings surroundings{};  ///< of a script: the files it names, variables of its environment
};

/// Megatron-LM's arguments: a shell script, or the table of arguments in a log. Errors: Failure(kInput) naming the
/// argument.
Imported import_megatron(const ImportRequest& request);
/// Arguments that were read already. Errors: as above.
Imported import_megatron(const ImportRequest& request, Script script);
/// DeepSpeed: its JSON, or a script for Megatron-DeepSpeed that holds the JSON as a here-document. Errors: likewise.
Imported import_deepspeed(const ImportRequest& request);
/// torchtitan v0.2: its TOML, or a script that holds it as a here-document, along with the model's flavor as Python
/// where torchtitan has no such flavor. Errors: likewise.
Imported import_torchtitan(const ImportRequest& request);
/// Megatron-Bridge: Python that assigns members of `cfg`. Errors: likewise.
Imported import_megatron_bridge(const ImportRequest& request);
/// The script that export_plan writes for PyTorch alone; needs the model. Errors: likewise.
Imported import_fsdp2(const ImportRequest& request);

/// Whose file it is, by what is in it: Megatron's where nothing tells.
Trainer trainer_of(const ImportRequest& request);
/// The file read as that trainer's. Precondition: one of those that trainer_of gives.
Imported import_plan(const ImportRequest& request, Trainer trainer);
/// Whether the text is for DeepSpeed: JSON, or a script that passes --deepspeed.
bool is_deepspeed(const ImportRequest& request);

}  // namespace trivium::planner::launch
