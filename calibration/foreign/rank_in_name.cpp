#include "calibration/foreign/rank_in_name.h"

#include <charconv>
#include <filesystem>

namespace trivium::calibration::foreign {

std::optional<int> rank_in_name(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  const std::size_t last = name.find_last_of("0123456789");
  if (last == std::string::npos) return std::nullopt;
  const std::size_t before = name.find_last_not_of("0123456789", last);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data() + first, name.data() + last + 1, rank);
  return error == std::errc() ? std::optional(rank) : std::nullopt;
}

}  // namespace trivium::calibration::foreign
