#include "program/plan/job_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/units.h"
#include "program/plan/document_lengths.h"
#include "program/plan/expert_load.h"

namespace trivium::program {
namespace {

// "offload" and "optimizer" of "offload.optimizer"; the first is empty for a field that is no member of an object.
std::pair<std::string, std::string> parts_of(const std::string& field) {
  const auto dot = field.find('.');
  if (dot == std::string::npos) return {"", field};
  return {field.substr(0, dot), field.substr(dot + 1)};
}

// Members of a plan's object of that name; of the plan itself for "".
std::vector<std::string> members_of(const std::string& object) {
  std::vector<std::string> names;
  for (const std::string& field : plan_fields()) {
    const auto [outer, inner] = parts_of(field);
    const std::string& name = !object.empty() || outer.empty() ? inner : outer;
    const bool is_member = object.empty() || outer == object;
    if (is_member && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// "8" and "true" are JSON already; "full" becomes a string.
nlohmann::json value_of(const std::string& text) {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  const bool is_value = !parsed.is_discarded() && parsed.is_primitive() && !parsed.is_null();
  return is_value ? parsed : nlohmann::json(text);
}

nlohmann::json value_of(const std::string& field, const std::string& text, const std::string& option) {
  const PlanField* known = find_plan_field(field);
  if (known != nullptr && known->kind == FieldKind::kBytes && text.find_first_of("Bb") != std::string::npos) {
    const auto size = base::parse_bytes(text);  // "25 MiB"
    if (!size) throw base::Failure(base::ErrorKind::kUsage, option + ": " + size.error().message);
    return static_cast<std::int64_t>(size.value().value());
  }
  const auto& trained = training_field_table();
  const auto of_training =
      std::find_if(trained.begin(), trained.end(), [&](const TrainingField& row) { return row.name == field; });
  const bool list = known != nullptr ? known->is_list() : of_training != trained.end() && of_training->is_list();
  if (!list) return value_of(text);
  auto array = nlohmann::json::array();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) array.push_back(value_of(word));
  return array;
}

nlohmann::json nested(const std::string& field, nlohmann::json value) {
  auto [object, member] = parts_of(field);
  if (object.empty()) return {{member, std::move(value)}};
  return {{object, {{member, std::move(value)}}}};
}

bool is_empty(const PlanField& field, const nlohmann::json& value) {
  if (value.is_number()) return value == field.least;
  return value.empty() || (field.kind == FieldKind::kChoice && value == field.unused);
}

}  // namespace

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json json;
  for (const PlanField& field : plan_field_table()) {
    nlohmann::json value = field.json(plan);
    if (field.absent_when_empty && is_empty(field, value)) continue;
    const auto [object, member] = parts_of(field.name);
    (object.empty() ? json : json[object])[member] = std::move(value);
  }
  return json;
}

nlohmann::json to_json(const Training& training) {
  nlohmann::json json;
  for (const TrainingField& field : training_field_table()) {
    nlohmann::json value = field.json(training);
    if (field.absent_by_default && value == field.json(Training{})) continue;
    json[field.name] = std::move(value);
  }
  return json;
}

Plan plan_from_json(const base::JsonReader& reader) {
  reader.allow_only(members_of(""));
  Plan plan;
  std::set<std::string> looked_at;
  for (const PlanField& field : plan_field_table()) {
    const auto [object, member] = parts_of(field.name);
    const auto holder = object.empty() ? reader : reader.find(object);
    if (!holder) continue;
    if (!object.empty() && looked_at.insert(object).second) holder->allow_only(members_of(object));
    if (const auto value = holder->find(member)) field.read(field, *value, plan);
  }
  return plan;
}

Training training_from_json(const base::JsonReader& reader) {
  reader.allow_only(training_fields());
  Training training;
  for (const TrainingField& field : training_field_table()) {
    if (const auto value = reader.find(field.name)) field.read(*value, training);
  }
  return training;
}

void set_field(Plan& plan, Training& training, const std::string& field, const std::string& text) {
  if (field == "document_lengths" && text.find_first_not_of("0123456789,") != std::string::npos) {
    training.documents = read_document_lengths(text);  // its errors name the file
    return;
  }
  if (field == "expert_load" && text.find_first_not_of("0123456789,") != std::string::npos) {
    training.expert_load.choices = read_expert_load(text);  // likewise
    return;
  }
  const auto& trained = training_fields();
  const bool of_training = std::find(trained.begin(), trained.end(), field) != trained.end();
  nlohmann::json json = of_training ? to_json(training) : to_json(plan);
  if (field == "micro_batch") json.erase("replica_micro_batch");
  if (field == "document_lengths") json.erase("document_weights");
  std::string option = "--" + field;
  std::replace(option.begin(), option.end(), '_', '-');
  std::replace(option.begin(), option.end(), '.', '-');
  const nlohmann::json value = value_of(field, text, option);
  try {
    json.merge_patch(nested(field, value));
    const base::JsonReader reader(json, option);
    if (of_training) {
      training = training_from_json(reader);
    } else {
      plan = plan_from_json(reader);
    }
  } catch (const base::Failure& failure) {
    // The place inside the JSON means nothing here: the option is the place. Errors of files of stacks name their own.
    const std::string& message = failure.error().message;
    if (!message.starts_with(option)) throw;
    const auto colon = message.find(": ");
    throw base::Failure(
        base::ErrorKind::kUsage,
        fmt::format("{}: {}", option, colon == std::string::npos ? message : message.substr(colon + 2)));
  }
}

}  // namespace trivium::program
