#include "hardware_profiles/profile_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace trivium::hardware {

std::string unknown_name(const std::string& kind, const std::string& name, const std::vector<std::string>& known) {
  // "h100" is part of many names; the usual machine has its vendor's.
  std::string near;
  for (const std::string& one : known) {
    const bool is_usual = one == "dgx-" + name || one.starts_with("dgx-" + name + "-");
    if (is_usual && near != "dgx-" + name) near = one;
  }
  if (near.empty()) near = base::nearest(name, known);
  if (!near.empty()) return fmt::format("unknown {} {}; did you mean \"{}\"?", kind, base::quote(name), near);
  return fmt::format("unknown {} {}; known: {}", kind, base::quote(name), base::listed(known));
}

bool is_detect(const base::JsonReader& value) { return value.json().is_string() && value.json() == "detect"; }

}  // namespace trivium::hardware
