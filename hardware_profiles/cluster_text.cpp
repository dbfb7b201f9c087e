#include "hardware_profiles/cluster_text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::hardware {
namespace {

[[noreturn]] void fail(const std::string& text, const std::string& what) {
  throw base::Failure(base::ErrorKind::kInput, fmt::format("cluster {}: {}", base::quote(text), what));
}

/// A whole number from 1 to kMostClusterDevices; nothing for other text.
std::optional<int> parse_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && count >= 1 && count <= kMostClusterDevices ? std::optional(count) : std::nullopt;
}

ClusterTerm parse_term(const std::string& text, std::string_view term) {
  const std::size_t colon = term.rfind(':');
  const std::string_view name = term.substr(0, colon);
  if (name.empty()) fail(text, "a profile name is missing; write NAME:N, NAME:N+NAME:N, this-machine or FILE.json");
  ClusterTerm parsed{std::string(name)};
  if (colon == std::string_view::npos) return parsed;
  const std::string_view numbers = term.substr(colon + 1);
  const std::size_t times = numbers.find('x');
  const std::string_view number = numbers.substr(0, times);
  const auto count = parse_count(number);
  if (!count) {
    fail(text, fmt::format("the number of nodes after \"{}:\" must be a whole number from 1 to {}, not {}", name,
                           kMostClusterDevices, base::quote(number)));
  }
  parsed.count = *count;
  if (times == std::string_view::npos) return parsed;
  const std::string_view of_each = numbers.substr(times + 1);
  const auto devices = parse_count(of_each);
  if (!devices) {
    fail(text, fmt::format("the devices of a node after \"{}:{}x\" must be a whole number from 1 on, not {}", name,
                           number, base::quote(of_each)));
  }
  parsed.devices = *devices;
  return parsed;
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

std::string text_of(const std::vector<ClusterTerm>& terms) {
  std::string text;
  for (const ClusterTerm& term : terms) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "+", term.node, term.count);
    if (term.devices > 0) text += fmt::format("x{}", term.devices);
  }
  return text;
}

bool is_file(std::string_view name) { return name.ends_with(".json") || name.find('/') != std::string_view::npos; }

}  // namespace trivium::hardware
