// Launch files in YAML, by the program that reads them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/launch/import_parts.h"
#include "planner/launch/launch.h"
#include "planner/launch/yaml/yaml.h"

namespace trivium::planner::launch::forms {

/// A file in YAML, and the command that names it.
struct Document {
  yaml::Node root;
  const Script* command = nullptr;  ///< null: the file was given by itself
};

/// A program's own form of YAML.
struct Form {
  std::string_view name;      ///< "gpt-neox"
  std::string_view software;  ///< "GPT-NeoX"
  Trainer trainer;            ///< whose exports the file is nearest to
  bool (*recognises)(const yaml::Node& root);
  Imported (*read)(const ImportRequest& request, const Document& document);
};

std::span<const Form> all();

/// The form of a document. Errors: Failure(kInput) naming `where` and the known programs, for a form of none of them.
const Form& form_of(const yaml::Node& root, const std::string& where);

/// Whether the text is a document in braces, which could be JSON, and of a known form.
bool in_braces(const ImportRequest& request);

/// The document of a request whose text is YAML. Errors: as yaml::read.
Document document_of(const ImportRequest& request);

// Readers, a file each. Errors: Failure(kInput) naming file and line.
bool is_accelerate(const yaml::Node& root);
Imported import_accelerate(const ImportRequest& request, const Document& document);
bool is_functional_test(const yaml::Node& root);
Imported import_functional_test(const ImportRequest& request, const Document& document);
bool is_gpt_neox(const yaml::Node& root);
Imported import_gpt_neox(const ImportRequest& request, const Document& document);
bool is_nanotron(const yaml::Node& root);
Imported import_nanotron(const ImportRequest& request, const Document& document);
bool is_llm_foundry(const yaml::Node& root);
Imported import_llm_foundry(const ImportRequest& request, const Document& document);
bool is_axolotl(const yaml::Node& root);
Imported import_axolotl(const ImportRequest& request, const Document& document);
bool is_megatron_yaml(const yaml::Node& root);
Imported import_megatron_yaml(const ImportRequest& request, const Document& document);

/// Whether a command has the arguments of Hugging Face's Trainer, and the job that they train. Errors: Failure(kInput),
/// also for files that the command names and that are not there.
bool is_trainer(const Script& script);
Imported import_trainer(const ImportRequest& request, Script script);

/// Bounds of counts in files, whose products fit 64 bits.
inline constexpr std::int64_t kMostRanksOfADimension = 1 << 10;
inline constexpr std::int64_t kMostSamples = 1 << 16;
inline constexpr std::int64_t kMostAccumulated = 1 << 20;

/// Tokens of so many steps with the batch and the sequence; at most 2^62.
std::int64_t tokens_of(std::int64_t steps, const program::Training& training);

/// Adds one loss for every key of a document's settings that was not read, with its line.
void lose_unread_keys(const Settings& settings, std::initializer_list<std::string_view> beside,
                      std::vector<Loss>& losses);

/// What Megatron-LM trains besides GPTs is refused by name: BERT, T5, Mamba, images. Nothing where the request has a
/// model.
void refuse_other_models(Settings& settings, const ImportRequest& request);

}  // namespace trivium::planner::launch::forms
