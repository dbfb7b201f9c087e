// JSON as text, whatever its strings hold.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trivium::base {

/// `indent` blanks a level; negative: one line. Bytes that are not UTF-8, such as those of a
/// file's name, become U+FFFD: JSON can only be UTF-8.
std::string json_text(const nlohmann::json& json, int indent = -1);

}  // namespace trivium::base
