#include "gui/model/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/load.h"
#include "program/plan/fields.h"

namespace trivium::gui {
namespace {

/// Whether options say the model: one that is shipped, with or without modules of multi-token prediction.
bool is_shipped(const models::Model& model) {
  const std::vector<std::string> names = models::shipped_models();
  if (std::find(names.begin(), names.end(), model.name) == names.end()) return false;
  return models::with_modules(models::load_model(model.name), model.mtp_depth()) == model;
}

std::string model_options(const models::Model& model) {
  std::string options = " --model " + shell_quoted(model.name);
  if (models::load_model(model.name).mtp_depth() != model.mtp_depth()) {
    options += fmt::format(" --mtp {}", model.mtp_depth());
  }
  return options;
}

std::string option(std::string field) {
  for (const char c : {'_', '.'}) std::replace(field.begin(), field.end(), c, '-');
  return " --" + field;
}

std::string plan_options(const program::Plan& plan) {
  const program::Plan usual;
  std::string options;
  for (const program::PlanField& field : program::plan_field_table()) {
    const std::string value = program::text_of(plan, field.name);
    // What a command chooses by the devices where it is not said.
    const bool chosen = std::string_view(field.name) == "precision" || std::string_view(field.name) == "attention";
    if (value == program::text_of(usual, field.name) && !chosen) continue;
    if (field.kind == program::FieldKind::kFlag) {
      options += option(field.name) + (value == "true" ? "" : "=" + value);
    } else {
      options += option(field.name) + " " + shell_quoted(value);
    }
  }
  return options;
}

// As an option takes it: of a list its entries with commas between them.
std::string text_of(const nlohmann::json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string text;
  for (const nlohmann::json& entry : value) text += (text.empty() ? "" : ",") + text_of(entry);
  return text;
}

std::string training_options(const program::Training& training) {
  const program::Training usual;
  std::string options;
  for (const program::TrainingField& field : program::training_field_table()) {
    const nlohmann::json value = field.json(training);
    if (value == field.json(usual)) continue;
    options += option(field.name) + " " + shell_quoted(text_of(value));
  }
  return options;
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:+=/";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string safe = "'";
  for (const char c : word) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

bool is_said_by_options(const Scenario& scenario) {
  return scenario.file.cluster.is_string() && is_shipped(scenario.file.job.model);
}

std::string command_line(const Scenario& scenario) {
  if (!is_said_by_options(scenario)) return "trivium simulate plan.json";
  const program::Job& job = scenario.file.job;
  return fmt::format("trivium simulate{} --cluster {}{}{}", model_options(job.model),
                     shell_quoted(scenario.file.cluster.get<std::string>()), training_options(job.training),
                     plan_options(job.plan));
}

std::string search_command(const Scenario& scenario, std::string_view command) {
  const program::Job& job = scenario.file.job;
  std::string words = fmt::format("trivium {}", command);
  if (is_said_by_options(scenario)) {
    words += fmt::format("{} --cluster {}{} --precision {}", model_options(job.model),
                         shell_quoted(scenario.file.cluster.get<std::string>()), training_options(job.training),
                         program::text_of(job.plan, "precision"));
    if (scenario.trainer.empty() && job.plan.stack != program::Plan().stack)
      words += " --stack " + program::text_of(job.plan, "stack");
  } else {
    words += " plan.json";
  }
  if (!scenario.trainer.empty()) words += " --for " + scenario.trainer;
  if (scenario.ranks > 0) words += fmt::format(" --ranks {}", scenario.ranks);
  for (const std::string& field : scenario.fixed) {
    words += " --fix " + shell_quoted(field + "=" + program::text_of(job.plan, field));
  }
  return words;
}

}  // namespace trivium::gui
