// The shipped table of what predictions were off by (hardware_profiles/measured/errors.json).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "simulator/certainty/error_model.h"
#include "simulator/certainty/time_errors.h"

namespace trivium::simulator {

struct MeasuredErrors {
  TimeErrors time;    ///< of iterations
  ErrorModel memory;  ///< of the fullest device's memory
};

/// Schema `trivium.measured-errors/2` (docs/reference/formats.md).
nlohmann::json to_json(const TimeErrors& time, const ErrorModel& memory);

/// Errors: Failure(kInput) as `WHERE#/POINTER: …`.
MeasuredErrors measured_errors_from_json(const nlohmann::json& json, const std::string& where);

/// Read once. Errors: Failure(kInput) naming file and place.
const MeasuredErrors& measured_errors();

}  // namespace trivium::simulator
