// Large JSON documents where only one list matters, read as far as they go.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trivium::calibration::imports {

/// What stood around the list.
struct JsonList {
  nlohmann::json head = nlohmann::json::object();  ///< the other members of the document
  bool is_whole = true;                            ///< false: the document ends early, or is broken somewhere
  std::string fault;                               ///< where, in words
};

/// Hands every complete element of the member `list` of a document, in order, to `take`, without keeping them. NaN and
/// Infinity, which are no JSON but which some writers leave, are read as 0 and null.
JsonList read_list(std::string_view text, const std::string& list, const std::function<void(nlohmann::json&&)>& take);

}  // namespace trivium::calibration::imports
