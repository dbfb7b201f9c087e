#include "planner/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <variant>
#include <vector>

#include "base/error.h"
#include "planner/launch/export_parts.h"
#include "program/lower/lower.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"

namespace trivium::planner::launch {
namespace {

// Read in these versions; a flag that moved since is the first thing to look for when one is refused.
constexpr std::array<TrainerVersion, 7> kTrainers{{
    {Trainer::kMegatron, "megatron", "Megatron-LM", "d98e8a64ddf3", "2026-08-22"},
    {Trainer::kMegatronBridge, "megatron-bridge", "Megatron-Bridge", "067f987df", "2026-08-22"},
    {Trainer::kDeepspeed, "deepspeed", "DeepSpeed edaa72212672 with Megatron-DeepSpeed", "4efb479d5317", "2025-07-16"},
    {Trainer::kTorchtitan, "torchtitan", "torchtitan", "v0.2.2", "2026-02-20"},
    {Trainer::kNemo, "nemo", "NeMo", "8cfedd720346", "2025-09-20"},
    {Trainer::kAccelerate, "accelerate", "accelerate", "16cb6eb80dd9", "2026-07-24"},
    {Trainer::kFsdp2, "fsdp2", "PyTorch", "2.9", "2025-10-15"},
}};

// No trainer has micro-batches of different sizes: the largest that all replicas can hold, that shares out the batch
// and that the schedule takes.
program::Job with_one_size(const program::Job& given) {
  program::Job job = given;
  const std::vector<int>& sizes = given.plan.replica_micro_batch;
  job.plan.replica_micro_batch.clear();
  for (int size = *std::min_element(sizes.begin(), sizes.end()); size > 0; --size) {
    job.plan.micro_batch = size;
    const auto no = program::check(job);
    if (!no || no->rule.ends_with("-supported")) return job;  // others may run what our programs do not
  }
  throw base::Failure(
      base::ErrorKind::kNoPlan,
      fmt::format("no trainer has micro-batches by replica, and {} replicas cannot take {} samples with "
                  "micro-batches of one size; change global_batch or data",
                  job.plan.data, job.training.global_batch));
}

Launch write(const program::Job& job, const hardware::Cluster& cluster, Trainer trainer) {
  switch (trainer) {
    case Trainer::kMegatron:
      return export_megatron(job, cluster);
    case Trainer::kMegatronBridge:
      return export_megatron_bridge(job, cluster);
    case Trainer::kDeepspeed:
      return export_deepspeed(job, cluster);
    case Trainer::kTorchtitan:
      return export_torchtitan(job, cluster);
    case Trainer::kNemo:
      return export_nemo(job, cluster);
    case Trainer::kAccelerate:
      return export_accelerate(job, cluster);
    case Trainer::kFsdp2:
      return export_fsdp2(job, cluster);
  }
  return {};
}

// How a training learns; the rest of its fields says what is trained, for how long and on which random numbers.
bool is_of_learning(std::string_view field) {
  constexpr std::array<std::string_view, 5> kOther{"sequence", "global_batch", "total_tokens", "decay_steps", "seed"};
  return std::ranges::find(kOther, field) == kOther.end();
}

// Half of a default is valid wherever the default is; where that is zero, a half.
nlohmann::json another_than(const nlohmann::json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>() / 2;
  return value.get<double>() > 0 ? value.get<double>() / 2 : 0.5;
}

// A file has a setting if it reads otherwise with another value of it: no list by trainer that has to be kept true.
std::vector<Setting> defaults_in(const std::string& text, const program::Job& job, const hardware::Cluster& cluster,
                                 Trainer trainer, const std::set<std::string>& chosen) {
  const nlohmann::json ours = program::to_json(program::Training{});
  const nlohmann::json asked = program::to_json(job.training);
  std::vector<Setting> defaults;
  for (const std::string& field : program::training_fields()) {
    if (!is_of_learning(field) || chosen.contains(field)) continue;
    // Fields of LoRA, of Muon and of documents stand only where they are used.
    if (!ours.contains(field) || !asked.contains(field) || asked[field] != ours[field]) continue;
    program::Job other = job;
    const std::string value = fmt::format("{:g}", ours[field].get<double>());
    program::set_field(other.plan, other.training, field, another_than(ours[field]).dump());
    if (write(other, cluster, trainer).text != text) defaults.push_back({field, value});
  }
  return defaults;
}

// The first comment of every file is its title; the defaults follow it, so that they go where the file goes.
void say_defaults(Launch& launch) {
  if (launch.defaults.empty()) return;
  const std::string comment = fmt::format("# Trivium's defaults: {}.\n", text_of(launch.defaults));
  const std::size_t title = launch.text.starts_with("# ") ? 0 : launch.text.find("\n# ") + 1;
  launch.text.insert(launch.text.find('\n', title) + 1, comment);
}

}  // namespace

std::span<const TrainerVersion> trainers() { return kTrainers; }

const TrainerVersion* find_trainer(std::string_view name) {
  const auto found = std::ranges::find(kTrainers, name, &TrainerVersion::name);
  return found == kTrainers.end() ? nullptr : &*found;
}

const TrainerVersion& version_of(Trainer trainer) {
  return *std::find_if(kTrainers.begin(), kTrainers.end(), [&](const auto& t) { return t.trainer == trainer; });
}

std::string text_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", setting.field, setting.value);
  }
  return text;
}

std::optional<program::Plan> as_launched(const program::Job& job, const std::vector<Loss>& losses) {
  program::Job launched = job;
  bool any = false;
  for (const Loss& loss : losses) {
    if (loss.becomes.empty()) continue;
    any = true;
    if (loss.becomes != kCleared) {
      program::set_field(launched.plan, launched.training, loss.field, loss.becomes);
    } else if (loss.field == "stage_layers") {
      launched.plan.stage_layers.clear();
    } else {
      launched.plan.stage_recompute.clear();
    }
  }
  if (!recomputes(launched.plan, program::Recompute::kSelective)) launched.plan.recompute_modules.clear();
  if (!recomputes(launched.plan, program::Recompute::kFull)) settle_full_recomputation(launched.plan);
  return any ? std::optional(launched.plan) : std::nullopt;
}

Trainer trainer_of(const ImportRequest& request) {
  const std::string& text = request.text;
  const std::string& where = request.where;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (has("distributed_type:") && has("compute_environment:")) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: accelerate's YAML is not read: it says neither model nor batch. Import the "
                                    "DeepSpeed JSON that it names, or plan with --for fsdp2 and the same fields",
                                    where));
  }
  if (has("megatron.bridge")) return Trainer::kMegatronBridge;
  if (has("fully_shard(")) return Trainer::kFsdp2;
  if (has("torchtitan") || has("\n[parallelism]")) return Trainer::kTorchtitan;
  return is_deepspeed(request) ? Trainer::kDeepspeed : Trainer::kMegatron;
}

namespace {

/// The arguments of a YAML of Megatron-LM's functional tests, as the command line that its launcher makes of
/// MODEL_ARGS: `--name: value`, where true is an option without a value, false and null are none. Empty where the text
/// is no such file.
std::string arguments_of_model_args(const std::string& text) {
  static const std::regex kArgument(R"re(^\s+(--[\w-]+):\s*(?:"([^"]*)"|'([^']*)'|([^#]*?))\s*(?:#.*)?$)re");
  std::istringstream lines(text);
  std::string arguments;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (std::isspace(static_cast<unsigned char>(line.front())) == 0) {
      inside = line.starts_with("MODEL_ARGS:");
      continue;
    }
    std::smatch found;
    if (!inside || !std::regex_match(line, found, kArgument)) continue;
    const std::string value = found[2].str() + found[3].str() + found[4].str();
    if (value == "false" || value == "null") continue;
    arguments += " " + found[1].str() + (value == "true" ? "" : " " + value);
  }
  return arguments;
}

}  // namespace

Imported import_plan(const ImportRequest& request, Trainer trainer) {
  if (const std::string arguments = arguments_of_model_args(request.text); !arguments.empty()) {
    ImportRequest script = request;
    script.text = "torchrun pretrain_gpt.py" + arguments + "\n";
    return import_megatron(script);
  }
  switch (trainer) {
    case Trainer::kMegatronBridge:
      return import_megatron_bridge(request);
    case Trainer::kTorchtitan:
      return import_torchtitan(request);
    case Trainer::kFsdp2:
      return import_fsdp2(request);
    case Trainer::kDeepspeed:
      return import_deepspeed(request);
    default:
      return import_megatron(request);
  }
}

Launch export_plan(const program::Job& job, const hardware::Cluster& cluster, Trainer trainer,
                   const std::set<std::string>& chosen) {
  if (const std::string why = unsaid_training(job, trainer); !why.empty()) {
    throw base::Failure(base::ErrorKind::kNoPlan, why);
  }
  const bool has_sizes = !job.plan.replica_micro_batch.empty();
  const program::Job written = has_sizes ? with_one_size(job) : job;
  Launch launch = write(written, cluster, trainer);
  if (has_sizes) {
    launch.losses.push_back(
        {"replica_micro_batch",
         fmt::format("one size holds for all replicas; written as {}: the fast nodes wait for the slow ones",
                     written.plan.micro_batch)});
  }
  if (job.training.documents.used()) {
    launch.losses.push_back({"document_lengths",
                             "documents come with the trainer's data, and whether attention keeps to them with its "
                             "own switches: the file trains on whole samples unless they are set"});
  }
  if (job.training.expert_load.used()) {
    launch.losses.push_back({job.training.expert_load.zipf > 0 ? "expert_zipf" : "expert_load",
                             "how unevenly experts are chosen is what training there will show"});
  }
  launch.defaults = defaults_in(launch.text, written, cluster, trainer, chosen);
  say_defaults(launch);
  return launch;
}

}  // namespace trivium::planner::launch
