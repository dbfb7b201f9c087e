#include "base/json_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::base {
namespace {

/// A key as a step of a JSON pointer (RFC 6901, section 3).
std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

/// What a value is: a short text itself, of all others the kind, as they may be a whole document.
std::string kind_of(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::null:
      return "null";
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "an array";
    case nlohmann::json::value_t::string:
      return value.get_ref<const std::string&>().size() > 40
                 ? "text"
                 : "text " + value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    case nlohmann::json::value_t::boolean:
      return "true or false";
    default:
      return "a number";
  }
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string suggestion = nearest(word, names);
  if (!suggestion.empty()) return fmt::format("did you mean \"{}\"?", suggestion);
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return "known: " + known;
}

/// The quantity in a text member, the parser's message placed at the reader.
template <class T>
T quantity(const JsonReader& reader, Result<T> (*parse)(std::string_view), std::string_view example) {
  if (!reader.json().is_string()) {
    reader.fail(fmt::format("expected text with a unit such as \"{}\", found {}", example, kind_of(reader.json())));
  }
  const Result<T> parsed = parse(reader.json().get_ref<const std::string&>());
  if (!parsed) reader.fail(parsed.error().message);
  return parsed.value();
}

}  // namespace

JsonReader::JsonReader(const nlohmann::json& value, const std::string& file, std::string pointer) : value_(&value) {
  // `run.json#/plan#/model` names a place inside a place inside a file: pointers go on from there.
  const std::size_t hash = file.find("#/");
  file_ = file.substr(0, hash);
  if (hash != std::string::npos) pointer_ = file.substr(hash + 1);
  for (std::size_t at = 0; (at = pointer_.find("#/", at)) != std::string::npos;) pointer_.erase(at, 1);
  pointer_ += std::move(pointer);
}

void JsonReader::fail(const std::string& what) const {
  throw Failure(ErrorKind::kInput, fmt::format("{}#{}: {}", one_line(file_), one_line(pointer_), one_line(what)));
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  const auto member = value_->find(key);
  if (member == value_->end()) return std::nullopt;
  return JsonReader(*member, file_, pointer_ + pointer_step(key));
}

bool JsonReader::has(std::string_view key) const { return find(key).has_value(); }

JsonReader JsonReader::at(std::string_view key) const {
  if (auto member = find(key)) return *member;
  fail(fmt::format("missing {}; add it", quote(key)));
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!value_->is_array()) fail(fmt::format("expected an array, found {}", kind_of(*value_)));
  std::vector<JsonReader> readers;
  readers.reserve(value_->size());
  for (const auto& element : *value_)
    readers.emplace_back(element, file_, fmt::format("{}/{}", pointer_, readers.size()));
  return readers;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind_of(*value_)));
  std::vector<std::pair<std::string, JsonReader>> readers;
  for (const auto& [key, member] : value_->items()) {
    readers.emplace_back(key, JsonReader(member, file_, pointer_ + pointer_step(key)));
  }
  return readers;
}

std::string JsonReader::text() const {
  if (!value_->is_string()) fail(fmt::format("expected text, found {}", kind_of(*value_)));
  return value_->get<std::string>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail(fmt::format("expected true or false, found {}", kind_of(*value_)));
  return value_->get<bool>();
}

double JsonReader::number() const {
  if (!value_->is_number()) fail(fmt::format("expected a number, found {}", kind_of(*value_)));
  const double number = value_->get<double>();
  if (!std::isfinite(number)) fail("expected a finite number");
  return number;
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  // A number with a fraction or an exponent, or beyond 64 bits, is a double in the document: never rounded silently.
  if (!value_->is_number_integer()) {
    if (!value_->is_number()) fail(fmt::format("expected a whole number, found {}", kind_of(*value_)));
    fail(fmt::format("expected a whole number from {} to {}, found {:g}", low, high, value_->get<double>()));
  }
  const bool beyond_signed = value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  if (beyond_signed || value_->get<std::int64_t>() < low || value_->get<std::int64_t>() > high) {
    fail(fmt::format("must be from {} to {}, not {}", low, high, value_->dump()));
  }
  return value_->get<std::int64_t>();
}

Seconds JsonReader::seconds() const { return quantity(*this, parse_seconds, "1.5 us"); }
Bytes JsonReader::bytes() const { return quantity(*this, parse_bytes, "80 GiB"); }
BytesPerSecond JsonReader::bandwidth() const { return quantity(*this, parse_bandwidth, "200 Gb/s"); }
FlopsPerSecond JsonReader::flop_rate() const { return quantity(*this, parse_flop_rate, "312 TFLOP/s"); }
Watts JsonReader::watts() const { return quantity(*this, parse_watts, "400 W"); }
DollarsPerHour JsonReader::price() const { return quantity(*this, parse_price, "2.48 $/h"); }

std::string JsonReader::one_of(std::span<const std::string> names) const {
  const std::string word = text();
  for (const std::string& name : names) {
    if (name == word) return word;
  }
  fail(fmt::format("unknown value {}; {}", quote(word), did_you_mean(word, names)));
}

void JsonReader::allow_only(std::initializer_list<std::string_view> known) const {
  allow_only(std::vector<std::string>(known.begin(), known.end()));
}

void JsonReader::allow_only(std::span<const std::string> names) const {
  for (const auto& [key, member] : members()) {
    bool allowed = false;
    for (const std::string& name : names) allowed = allowed || name == key;
    if (!allowed) member.fail(fmt::format("unknown member {}; {}", quote(key), did_you_mean(key, names)));
  }
}

}  // namespace trivium::base
