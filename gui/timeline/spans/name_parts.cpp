#include "gui/timeline/spans/name_parts.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>

namespace trivium::gui {
namespace {

constexpr std::string_view kLayer = "layer ";

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Where "layer 2" ends in "layer 2 matmul"; 0 where it begins otherwise.
std::size_t end_of_layer(const std::string& detail) {
  if (!detail.starts_with(kLayer)) return 0;
  const std::size_t end = std::min(detail.find(' ', kLayer.size()), detail.size());
  return is_number(std::string_view(detail).substr(kLayer.size(), end - kLayer.size())) ? end : 0;
}

}  // namespace

std::string without_micro_batch(const std::string& title) {
  const std::size_t at = title.rfind(" mb");
  return at != std::string::npos && is_number(std::string_view(title).substr(at + 3)) ? title.substr(0, at) : title;
}

std::string without_layer(const std::string& detail) {
  const std::size_t end = end_of_layer(detail);
  if (end == 0) return detail;
  return end == detail.size() ? std::string() : detail.substr(end + 1);
}

std::string layer_in(const std::string& detail) { return detail.substr(0, end_of_layer(detail)); }

std::vector<std::uint32_t> alike(const std::vector<std::string>& texts, std::string (*cut)(const std::string&)) {
  std::unordered_map<std::string, std::uint32_t> first;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts)
    numbers.push_back(first.try_emplace(cut(text), static_cast<std::uint32_t>(numbers.size())).first->second);
  return numbers;
}

}  // namespace trivium::gui
