#include "program/plan/schema.h"

#include <nlohmann/json.hpp>
#include <string>

#include "program/plan/fields.h"
#include "program/plan/stack_file.h"
#include "program/plan/stack_flags.h"

namespace trivium::program {
namespace {

using Json = nlohmann::ordered_json;

Json counts(const PlanField& field) { return {{"type", "integer"}, {"minimum", field.least}, {"maximum", field.most}}; }

Json names(const PlanField& field) { return {{"enum", field.names()}}; }

Json type_of(const PlanField& field) {
  switch (field.kind) {
    case FieldKind::kFlag:
      return {{"type", "boolean"}};
    case FieldKind::kCount:
    case FieldKind::kBytes:
      return counts(field);
    case FieldKind::kShare:
      return {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}};
    case FieldKind::kChoice:
      return names(field);
    case FieldKind::kOrder:
      return {{"type", "string"}};
    case FieldKind::kCounts:
      return {{"type", "array"}, {"items", counts(field)}};
    case FieldKind::kChoices:
      return {{"type", "array"}, {"items", names(field)}};
  }
  return {};
}

Json object_of_nothing() {
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

Json described(const char* help, const Json& type) {
  Json json{{"description", help}};
  json.update(type);
  return json;
}

}  // namespace

Json plan_schema() {
  Json json = object_of_nothing();
  for (const PlanField& field : plan_field_table()) {
    const std::string name = field.name;
    const std::size_t dot = name.find('.');
    Json* holder = &json;
    if (dot != std::string::npos) {
      Json& object = json["properties"][name.substr(0, dot)];
      if (object.is_null()) object = object_of_nothing();
      holder = &object;
    }
    (*holder)["properties"][dot == std::string::npos ? name : name.substr(dot + 1)] =
        described(field.help, type_of(field));
  }
  return json;
}

Json training_schema() {
  Json json = object_of_nothing();
  for (const TrainingField& field : training_field_table()) {
    const nlohmann::json value = field.json(Training{});
    const char* type = value.is_number_float() ? "number" : "integer";
    const Json number{{"type", type}, {"minimum", 0}};
    const Json items = value.empty() ? Json{{"type", "integer"}, {"minimum", 1}} : Json{{"enum", value}};
    const Json list{{"type", "array"}, {"items", items}, {"minItems", value.empty() ? 0 : 1}};
    const Json name{{"enum", {"adamw", "muon"}}};
    json["properties"][field.name] = described(field.help, value.is_array() ? list : value.is_string() ? name : number);
  }
  return json;
}

Json stack_schema() {
  Json json = object_of_nothing();
  Json& members = json["properties"];
  members["schema"] = {{"const", kStackSchema}};
  members["name"] = described("that of the file", {{"type", "string"}});
  members["description"] = {{"type", "string"}};
  members["base"] = described("the stack whose flags hold where this one has none", {{"type", "string"}});
  members["family"] = described("editions of one trainer, whose predictions err alike", {{"type", "string"}});
  for (const StackFlag& flag : stack_flags()) {
    const Json value = flag.json({});
    Json type{{"type", "boolean"}};
    if (value.is_string()) type = {{"type", "string"}};
    if (value.is_number_float()) type = {{"type", "number"}, {"minimum", flag.low}, {"maximum", flag.high}};
    if (value.is_number_integer()) {
      type = {{"type", "integer"},
              {"minimum", static_cast<std::int64_t>(flag.low)},
              {"maximum", static_cast<std::int64_t>(flag.high)}};
    }
    members[flag.name] = described(flag.help, type);
  }
  members["sources"] =
      described("JSON pointer of a flag -> where its value comes from",
                {{"type", "object"}, {"additionalProperties", {{"type", "string"}, {"minLength", 1}}}});
  json["required"] = {"schema", "name", "description"};
  return json;
}

}  // namespace trivium::program
