#include "base/sourced_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace trivium::base {
namespace {

/// RFC 6901: "~" and "/" inside a member name are escaped.
std::string join(const std::string& pointer, std::string_view key) {
  std::string joined = pointer + '/';
  for (const char letter : key) {
    if (letter == '~') {
      joined += "~0";
    } else if (letter == '/') {
      joined += "~1";
    } else {
      joined += letter;
    }
  }
  return joined;
}

bool points_into(const nlohmann::json& document, const std::string& pointer) {
  try {
    return document.contains(nlohmann::json::json_pointer(pointer));
  } catch (const nlohmann::json::exception&) {
    return false;  // not a JSON pointer at all
  }
}

}  // namespace

Sources Sources::of(const JsonReader& profile) {
  Sources sources;
  const auto given = profile.find("sources");
  if (!given) return sources;
  for (const auto& [pointer, citation] : given->members()) {
    if (citation.text().empty()) citation.fail("an empty source; say where the value comes from");
    if (pointer.empty() || pointer == "/sources" || !points_into(profile.json(), pointer)) {
      citation.fail(
          fmt::format("{} points at no constant of this profile; "
                      "a key of sources is a JSON pointer such as \"/device/memory_bandwidth\"",
                      quote(pointer)));
    }
    sources.entries_[pointer] = citation.text();
  }
  return sources;
}

Sources Sources::of(const JsonReader& profile, std::map<std::string, std::string> inherited) {
  Sources sources = of(profile);
  sources.inherited_ = std::move(inherited);
  return sources;
}

std::string Sources::base_of(const std::string& pointer) const {
  const auto base = inherited_.find(pointer);
  return base == inherited_.end() ? "" : base->second;
}

bool Sources::covers(std::string_view pointer) const {
  while (!pointer.empty()) {
    if (entries_.count(std::string(pointer)) != 0) return true;
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
  return false;
}

void demand_sources(const JsonReader& whole, const Sources& sources, const std::vector<std::string>& words) {
  nlohmann::json constants = whole.json();
  constants.erase("schema");
  constants.erase("sources");
  std::vector<std::string> bare;
  constants = constants.flatten();
  for (const auto& [pointer, value] : constants.items()) {
    if (std::ranges::find(words, pointer) == words.end() && !sources.covers(pointer)) bare.push_back(pointer);
  }
  if (bare.size() < 2) return;  // a single one is told at its place
  whole.fail(fmt::format("no source for {}; add each to sources, as \"{}\": \"where the value comes from\"",
                         listed(bare), bare.front()));
}

void check_schema(const JsonReader& document, const std::string& schema) {
  const JsonReader given = document.at("schema");
  if (given.text() != schema) given.fail(fmt::format("found {}; expected \"{}\"", quote(given.text()), schema));
}

SourcedReader SourcedReader::section(std::string_view key) const {
  return SourcedReader(value_.at(key), *sources_, join(pointer_, key));
}

std::vector<std::pair<std::string, SourcedReader>> SourcedReader::sections() const {
  std::vector<std::pair<std::string, SourcedReader>> all;
  for (const auto& [key, member] : value_.members()) {
    all.emplace_back(key, SourcedReader(member, *sources_, join(pointer_, key)));
  }
  return all;
}

JsonReader SourcedReader::constant(std::string_view key) const {
  JsonReader member = value_.at(key);
  const std::string pointer = join(pointer_, key);
  if (!sources_->covers(pointer)) {
    member.fail(fmt::format("no source; add \"{}\": \"where the value comes from\" to sources", pointer));
  }
  const std::string base = sources_->base_of(pointer);
  if (base.empty()) return member;
  return JsonReader(member.json(), fmt::format("{} (base {})", member.file(), base), member.pointer());
}

std::vector<std::pair<std::string, JsonReader>> SourcedReader::constants() const {
  std::vector<std::pair<std::string, JsonReader>> all;
  for (const auto& [key, member] : value_.members()) all.emplace_back(key, constant(key));
  return all;
}

double number_within(const JsonReader& value, double low, double high) {
  const double number = value.number();
  if (!(number >= low && number <= high)) value.fail(fmt::format("{} is not within {} to {}", number, low, high));
  return number;
}

}  // namespace trivium::base
