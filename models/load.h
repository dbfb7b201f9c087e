// Reading models: shipped descriptions, files of ours, Hugging Face config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/model.h"

namespace trivium::models {

/// `name_or_path`: a shipped name (`gpt3-175b`), a repository of Hugging Face whose model ships (`Qwen/Qwen3-32B`), a
/// file in our form, or a Hugging Face `config.json` (recognised by `model_type`). Errors: Failure(kInput), unknown names with a suggestion.
Model load_model(const std::string& name_or_path);

/// A model in our own JSON form (schema `trivium.model/1`); `where` names it in errors: a file, or a file and a place
/// in it (`plan.json#/model`). Errors: Failure(kInput) for missing, unknown, mistyped or contradictory members.
Model model_from_json(const nlohmann::json& json, const std::string& where);
/// The same form, every member written out but for those of rotary positions, norms and attention that are usual.
/// `model_from_json` reads it back to an equal model.
nlohmann::json to_json(const Model& model);

/// A model, and the members of its file that do not bear on what it computes.
struct HuggingFaceModel {
  Model model;
  std::vector<std::string> ignored;
  std::int64_t modules = 0;             ///< of multi-token prediction that its weights have, which `model` leaves out
  std::vector<std::string> left_out{};  ///< members of other models beside that of text, and what they are
};

/// A Hugging Face configuration of a family that has a file (family_files.h) or code here. Errors: Failure(kInput)
/// naming the unsupported `model_type` and what Trivium lacks of it, the missing member, or one that is not known and
/// may change what is computed.
HuggingFaceModel read_hugging_face(const nlohmann::json& config, const std::string& where);
Model model_from_hugging_face(const nlohmann::json& config, const std::string& where);

/// Members that `load_model` passed over; empty for shipped models and files of ours. Errors: as load_model().
std::vector<std::string> ignored_members(const std::string& name_or_path);

/// Members of models beside that of text (vision encoders), each with what it is. Errors: as load_model().
std::vector<std::string> models_left_out(const std::string& name_or_path);

/// Modules of multi-token prediction that the file names and `load_model` leaves out, as published counts do (those of
/// DeepSeek-V3: 671B, not 685B). 0 for shipped models and files of ours, whose `mtp` is taken. Errors: as load_model().
std::int64_t modules_left_out(const std::string& name_or_path);

/// The model trained with that many modules of multi-token prediction; 0: without. Errors: Failure(kUsage) for a model
/// of learned positions, which they do not have.
Model with_modules(Model model, std::int64_t modules);

/// Names of the shipped models (`models/NAME.json`), sorted.
std::vector<std::string> shipped_models();
/// A shipped name up to its size: "qwen3" of "qwen3-32b".
std::string family_of(const std::string& shipped);

}  // namespace trivium::models
