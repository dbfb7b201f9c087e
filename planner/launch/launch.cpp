#include "planner/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "base/error.h"
#include "planner/launch/bridge_recipes.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/yaml/yaml.h"
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

namespace {

/// A log with Megatron's table of arguments may begin like YAML ("WARNING: ...").
bool is_yaml(const ImportRequest& request) {
  return forms::in_braces(request) ||
         (yaml::is_document(request.text) && request.text.find("--- arguments ---") == std::string::npos);
}

Script script_of(const ImportRequest& request) {
  return read_script(request.text, request.where, request.surroundings);
}

}  // namespace

Trainer trainer_of(const ImportRequest& request) {
  const std::string& text = request.text;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (is_yaml(request)) return forms::form_of(forms::document_of(request).root, request.where).trainer;
  if (has("megatron.bridge") || calls_recipe(text)) return Trainer::kMegatronBridge;
  if (has("fully_shard(")) return Trainer::kFsdp2;
  if (has("torchtitan") || has("\n[parallelism]")) return Trainer::kTorchtitan;
  if (has("per_device_train_batch_size") && forms::is_trainer(script_of(request))) return Trainer::kAccelerate;
  return is_deepspeed(request) ? Trainer::kDeepspeed : Trainer::kMegatron;
}

Imported import_plan(const ImportRequest& request, Trainer trainer) {
  if (is_yaml(request)) {
    const forms::Document document = forms::document_of(request);
    return forms::form_of(document.root, request.where).read(request, document);
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
    case Trainer::kAccelerate:
      return forms::import_trainer(request, script_of(request));
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
