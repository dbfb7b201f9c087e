// Configurations of Hugging Face as tests write them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "models/load.h"
#include "tests/input_error.h"

namespace trivium::models {

inline Model read(const std::string& config) {
  return model_from_hugging_face(nlohmann::json::parse(config), "config.json");
}

inline std::int64_t total_of(const std::string& config) { return count_parameters(read(config)).total; }

inline std::string message_for(const std::string& config) {
  return input_error([&] { read(config); }, "nothing thrown");
}

}  // namespace trivium::models
