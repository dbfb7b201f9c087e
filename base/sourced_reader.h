// Reading a file in which no constant may stand without the place it comes from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"

namespace trivium::base {

/// The `sources` member of a profile: JSON pointer inside the profile -> citation. An entry stands for its whole
/// subtree ("/device/peak" for every peak), except that the root cannot be cited as one.
class Sources {
 public:
  /// Reads `sources` of `profile`; missing is an empty set. Errors (Failure kInput): an entry that is empty, is not
  /// text, or points at nothing.
  static Sources of(const JsonReader& profile);

  /// As above, for a profile with a base: `inherited` says for which values errors are to name the base.
  static Sources of(const JsonReader& profile, std::map<std::string, std::string> inherited);

  bool covers(std::string_view pointer) const;
  const std::map<std::string, std::string>& entries() const { return entries_; }
  /// The base that has the value at the pointer; empty where the profile has it itself.
  std::string base_of(const std::string& pointer) const;

 private:
  std::map<std::string, std::string> entries_, inherited_;
};

/// Errors: Failure(kInput) that names all constants without a source, where there are several. `words`: pointers of
/// values that are no constants.
void demand_sources(const JsonReader& whole, const Sources& sources, const std::vector<std::string>& words);

/// Errors: Failure(kInput) when the document's `schema` is missing or another one.
void check_schema(const JsonReader& document, const std::string& schema);

/// An object of a profile whose numeric members are read through `constant`, which demands a source.
class SourcedReader {
 public:
  /// `sources` must outlive the reader; `pointer` is the place relative to the profile that holds the sources.
  SourcedReader(JsonReader value, const Sources& sources, std::string pointer = "")
      : value_(std::move(value)), sources_(&sources), pointer_(std::move(pointer)) {}

  const JsonReader& plain() const { return value_; }
  bool has(std::string_view key) const { return value_.has(key); }
  SourcedReader section(std::string_view key) const;
  /// Every member of the object, in key order, each as a section.
  std::vector<std::pair<std::string, SourcedReader>> sections() const;
  /// A numeric member. Errors (Failure kInput): missing, or without a source.
  JsonReader constant(std::string_view key) const;
  /// Every member of the object, in key order, each as a constant.
  std::vector<std::pair<std::string, JsonReader>> constants() const;

 private:
  JsonReader value_;
  const Sources* sources_;
  std::string pointer_;
};

/// A number in [low, high]. Errors (Failure kInput) at its place.
double number_within(const JsonReader& value, double low, double high);

/// `quantity`, read from `value`, if it is not zero (the parser takes none below). Errors (Failure kInput) at its
/// place.
template <class Quantity>
Quantity positive(const JsonReader& value, Quantity quantity) {
  if (!(quantity > Quantity(0))) value.fail("must be above zero");
  return quantity;
}

}  // namespace trivium::base
