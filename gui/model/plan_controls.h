// The plan as controls: what can be turned, to what, and what turns with it.
#pragma once

#include <string>
#include <vector>

#include "gui/model/scenario.h"
#include "program/plan/fields.h"

namespace trivium::gui {

/// A control for one field of the plan.
struct PlanControl {
  const char* field;  ///< of program::plan_fields
  const char* words;
  const char* help;
  program::FieldGroup group{};  ///< neighbours with one group stand below its name
};

/// In the order in which they are shown.
const std::vector<PlanControl>& plan_controls();

/// What the plan control of a field is called; the field in words where it has none.
std::string words_of(const std::string& field);

/// The field that is called so, as by words_of(), whatever the case: "zero_stage" for "ZeRO stage". A text that names
/// none comes back as it is.
std::string field_called(const std::string& words);

/// Shown by the plan control "recompute" where every chunk has its own (gui/model/stage_lists.h).
constexpr const char* kByChunk = "by chunk";

/// Texts that a plan control can be set to for this job; the present one is among them.
std::vector<std::string> choices(const Scenario& scenario, const std::string& field);

/// What is shown for a value: "25 MiB" for bytes, "P › T › D › C" for an order of dimensions, "on" for "true".
std::string shown(const std::string& field, const std::string& value);

/// The value of a field as text.
std::string value_of(const Scenario& scenario, const std::string& field);

/// What the plan control shows now: the value, or kByChunk.
std::string present(const Scenario& scenario, const std::string& field);

/// Turns a plan control, and with it what would make no sense otherwise: virtual stages and the interleaved schedule
/// need each other, sequence parallelism needs tensor ranks, layers by stage are of one pipeline, a shard group divides
/// the replicas. `fill`: the data ranks then use all devices, and the micro-batch stays within a replica's share.
/// kByChunk leaves the plan as it is. Errors: Failure(kUsage).
Scenario turn(Scenario scenario, const std::string& field, const std::string& text, bool fill);

}  // namespace trivium::gui
