// The table of a plan's fields and of a training's: what each is called, what it takes, how it is read and written.
// JSON, options of the command line, bounds of a search, controls of the desktop program and
// docs/reference/plan-fields.md are derived from it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "program/plan/plan.h"
#include "program/plan/training.h"

namespace trivium::program {

/// What the values of a field are. kCounts and kChoices are lists, one value for every chunk, stage or replica.
enum class FieldKind : std::uint8_t { kFlag, kCount, kBytes, kShare, kChoice, kOrder, kCounts, kChoices };

inline constexpr std::int64_t kMostCount = 1 << 24;                  ///< of anything that a plan or a training counts
inline constexpr std::int64_t kMostChoices = std::int64_t{1} << 50;  ///< of an expert
inline constexpr std::size_t kMostLengths = 1024;                    ///< different lengths of documents

/// What a field decides; controls of one group stand together.
enum class FieldGroup : std::uint8_t { kSplit, kMemory, kCommunication, kSoftware };
std::string_view name_of(FieldGroup group);  ///< "Split" "Memory" "Communication" "Arithmetic and software"

struct PlanField {
  const char* name;  ///< as in JSON; "offload.optimizer" is a member of an object
  FieldKind kind;
  FieldGroup group;
  const char* title;   ///< in windows: "ZeRO stage"
  const char* values;  ///< what may be given, as help shows it: "N", "none|host|disk"; empty for a flag
  const char* help;    ///< one line
  const char* unused;  ///< the value that stands for a feature that is not used; null: it cannot be left out
  std::int64_t least = 0, most = 0;               ///< of kCount, kBytes and each of kCounts
  std::vector<std::string> (*names)() = nullptr;  ///< of kChoice and kChoices, in order
  bool absent_when_empty = false;  ///< written where a list has entries, a count is above its least, a choice is used

  /// As read_field takes it: "8", "true", "full", "4,4,4".
  std::string (*text)(const Plan&) = nullptr;
  nlohmann::json (*json)(const Plan&) = nullptr;
  /// Errors: Failure(kInput) with the JSON pointer.
  void (*read)(const PlanField&, const base::JsonReader&, Plan&) = nullptr;

  bool is_list() const { return kind == FieldKind::kCounts || kind == FieldKind::kChoices; }
  bool is_number() const { return kind == FieldKind::kCount || kind == FieldKind::kBytes; }  ///< has an order
};

/// Every field, in the order of help, tables and differences.
const std::vector<PlanField>& plan_field_table();

/// Null for an unknown field.
const PlanField* find_plan_field(std::string_view name);

/// The value of a field as set_field takes it: "8", "true", "full", "4,4,4". Empty for an unknown field.
std::string text_of(const Plan& plan, std::string_view field);

/// A field of a training.
struct TrainingField {
  const char* name;
  const char* values;
  const char* help;
  nlohmann::json (*json)(const Training&);
  /// Errors: Failure(kInput) with the JSON pointer.
  void (*read)(const base::JsonReader&, Training&);
  bool absent_by_default = false;  ///< left out of JSON where it has its default

  bool is_list() const;
};
const std::vector<TrainingField>& training_field_table();

/// Their names, in order; those of a plan's objects in full ("offload.optimizer").
const std::vector<std::string>& plan_fields();
const std::vector<std::string>& training_fields();

/// What has to follow where `field` of a plan was changed by hand: virtual stages and a schedule that takes them
/// need each other, sequence parallelism needs tensor ranks, lists by chunk, stage or replica are of one split, a shard
/// group divides the replicas.
void settle(Plan& plan, std::string_view field);

/// The part of it that a changed count of stages or chunks asks for: one chunk a stage is no interleaving, and one
/// stage has one chunk.
void settle_schedule(Plan& plan);

}  // namespace trivium::program
