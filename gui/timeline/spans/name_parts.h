// What names of spans are made of: "forward mb3", then "layer 2 matmul".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trivium::gui {

/// "forward mb3" to "forward".
std::string without_micro_batch(const std::string& title);
/// "layer 2 matmul" to "matmul".
std::string without_layer(const std::string& detail);
/// "layer 2 matmul" to "layer 2"; empty where it begins otherwise.
std::string layer_in(const std::string& detail);

/// Of every string the number of the first from which `cut` leaves the same.
std::vector<std::uint32_t> alike(const std::vector<std::string>& texts, std::string (*cut)(const std::string&));

}  // namespace trivium::gui
