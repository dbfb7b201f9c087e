#include "hardware_profiles/cluster_text.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::hardware {
namespace {

[[noreturn]] void fail(const std::string& text, const std::string& what) {
  throw base::Failure(base::ErrorKind::kInput, fmt::format("cluster {}: {}", base::quote(text), what));
}

ClusterTerm parse_term(const std::string& text, std::string_view term) {
  const std::size_t colon = term.rfind(':');
  const std::string_view name = term.substr(0, colon);
  if (name.empty()) fail(text, "a profile name is missing; write NAME:N, NAME:N+NAME:N, this-machine or FILE.json");
  if (colon == std::string_view::npos) return {std::string(name), 1};
  const std::string_view number = term.substr(colon + 1);
  int count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  if (!whole || count < 1 || count > kMostClusterDevices) {
    fail(text, fmt::format("the number of nodes after \"{}:\" must be a whole number from 1 to {}, not {}", name,
                           kMostClusterDevices, base::quote(number)));
  }
  return {std::string(name), count};
}

}  // namespace

std::vector<ClusterTerm> parse_cluster_text(const std::string& text) {
  std::vector<ClusterTerm> terms;
  std::string_view rest = text;
  while (true) {
    const std::size_t plus = rest.find('+');
    terms.push_back(parse_term(text, rest.substr(0, plus)));
    if (plus == std::string_view::npos) return terms;
    rest.remove_prefix(plus + 1);
  }
}

bool is_file(std::string_view name) { return name.ends_with(".json") || name.find('/') != std::string_view::npos; }

}  // namespace trivium::hardware
