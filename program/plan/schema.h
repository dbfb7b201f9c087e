// The plan's and the training's part of the JSON Schemas (schemas/), made of the tables of fields.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace trivium::program {

/// What an object of plan fields may hold: nothing but them, each of its type, within its limits, one of its names.
nlohmann::ordered_json plan_schema();
nlohmann::ordered_json training_schema();

}  // namespace trivium::program
