// The parts of the JSON Schemas (schemas/) that are made of tables: of fields of plans and trainings, flags of stacks.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace trivium::program {

/// What an object of plan fields may hold: nothing but them, each of its type, within its limits, one of its names.
nlohmann::ordered_json plan_schema();
nlohmann::ordered_json training_schema();
/// What a file of stacks/ may hold.
nlohmann::ordered_json stack_schema();

}  // namespace trivium::program
