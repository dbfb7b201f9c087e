// Names of an enumeration's values in a table.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace trivium::base {

/// The name of a value whose enumeration counts from 0. Precondition: the table has all of them.
template <class Enum, std::size_t N>
std::string_view name_at(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace trivium::base
