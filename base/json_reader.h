// Reading JSON with errors that name the file, the JSON pointer, what is wrong and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace trivium::base {

/// The nearest of `candidates` to `word` by edit distance, for "did you mean"; empty when none is close.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// One value inside a JSON document together with where it stands. Every accessor throws Failure(kInput) with the
/// message `FILE#/POINTER: what is wrong; what to do`. Cheap to copy; the document must outlive it.
class JsonReader {
 public:
  /// `file` may name a place inside a file, `plan.json#/cluster`.
  JsonReader(const nlohmann::json& value, const std::string& file, std::string pointer = "");

  const nlohmann::json& json() const { return *value_; }
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  bool has(std::string_view key) const;
  JsonReader at(std::string_view key) const;  ///< member; missing is an error
  std::optional<JsonReader> find(std::string_view key) const;
  std::vector<JsonReader> elements() const;                         ///< array elements
  std::vector<std::pair<std::string, JsonReader>> members() const;  ///< object members, in key order

  std::string text() const;
  bool boolean() const;
  double number() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;  ///< an integer within [low, high]
  Seconds seconds() const;
  Bytes bytes() const;
  BytesPerSecond bandwidth() const;
  FlopsPerSecond flop_rate() const;
  Watts watts() const;
  DollarsPerHour price() const;
  /// One of the names; the error suggests the nearest.
  std::string one_of(std::span<const std::string> names) const;

  /// Fails on members that are not in `known`, suggesting the nearest.
  void allow_only(std::initializer_list<std::string_view> known) const;
  void allow_only(std::span<const std::string> known) const;
  /// Throws Failure(kInput) at this place.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::json* value_;
  std::string file_;
  std::string pointer_;
};

/// Whether `//` and `/* */` may stand in a document.
enum class Comments { kRefused, kTaken };

/// Parses a document of `file`. Errors (Failure kInput, naming the file): not JSON (with line and column), a zero byte,
/// two members of one name in an object, nested too deep, larger in memory than `input_limit`.
nlohmann::json parse_json(std::string_view text, const std::string& file, Comments comments = Comments::kRefused);

/// Reads and parses a JSON file. Errors: as `read_file` and `parse_json`.
nlohmann::json read_json_file(const std::filesystem::path& path);

}  // namespace trivium::base
