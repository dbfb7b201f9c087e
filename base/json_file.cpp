#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/quote.h"

namespace trivium::base {
namespace {

// Copying and printing a document recurse once per level; no format of ours nests deeper than a dozen.
constexpr int kDeepestNesting = 200;

/// Position of a byte as people count it, from 1.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = before.size() - (last_break == std::string_view::npos ? 0 : last_break + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

/// Offset of the first bracket that nests too deep, or npos. Brackets inside strings do not count.
std::size_t too_deep(std::string_view text) {
  int depth = 0;
  bool inside_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside_string) {
      if (c == '\\') ++i;
      if (c == '"') inside_string = false;
    } else if (c == '"') {
      inside_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestNesting) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

/// The part of the parser's message that tells what is wrong ("… syntax error while parsing value - unexpected ']'").
std::string reason(std::string_view message) {
  constexpr std::size_t kLongest = 160;
  if (const std::size_t dash = message.find(" - "); dash != std::string_view::npos) message.remove_prefix(dash + 3);
  std::string kept(message.substr(0, kLongest));
  for (char& c : kept) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';  // the cut may fall inside a character
  }
  return one_line(kept);
}

/// Builds the document and watches over what the library would take without a word: members of the same name, and
/// documents that take far more memory than their text.
class StrictBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Json = nlohmann::json;
  using Refuse = std::function<void(const std::string&)>;
  StrictBuilder(std::string_view text, const Refuse& refuse) : text_(text), refuse_(refuse), bytes_(text.size()) {}

  Json take() { return std::move(document_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override {
    count(value.size());
    return add(std::move(value));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    count(kContainer);
    return open(Json::object());
  }
  bool start_array(std::size_t) override {
    count(kContainer);
    return open(Json::array());
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    count(kNode + name.size());
    const auto [member, is_new] = open_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!is_new) refuse_(fmt::format("the member {} stands there twice; keep one", quote(name)));
    member_ = &member->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    const std::string_view message = error.what();
    if (error.id == kOutOfRange) {  // a number beyond double ("number overflow parsing '1e999'")
      const std::size_t start = message.find("number overflow");
      refuse_(fmt::format("not readable JSON: {}",
                          reason(start == std::string_view::npos ? message : message.substr(start))));
    }
    refuse_(fmt::format("not valid JSON at {}: {}", line_and_column(text_, position == 0 ? 0 : position - 1),
                        reason(message)));
    return false;
  }

 private:
  static constexpr std::size_t kContainer = 96, kNode = 64;  // what the allocator gives for them

  Json* place(Json&& value) {
    count(2 * sizeof(Json));  // arrays grow by doubling
    if (open_.empty()) return &(document_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  void count(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > input_limit()) refuse_("read into memory it is larger than " + input_limit_text());
  }

  std::string_view text_;
  const Refuse& refuse_;
  Json document_;
  std::vector<Json*> open_;  // from the outermost in; an array grows only while its last element is closed
  Json* member_ = nullptr;
  std::size_t bytes_;  // of text and document
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& file, Comments comments) {
  const StrictBuilder::Refuse fail = [&](const std::string& what) {
    throw Failure(ErrorKind::kInput, fmt::format("{}: {}", one_line(file), what));
  };
  if (const std::size_t offset = too_deep(text); offset != std::string_view::npos) {
    fail(fmt::format("not readable JSON at {}: nested deeper than {} levels", line_and_column(text, offset),
                     kDeepestNesting));
  }
  // The library takes it for the end, whatever follows.
  if (const std::size_t offset = text.find('\0'); offset != std::string_view::npos) {
    fail(fmt::format("not valid JSON at {}: a byte that is zero", line_and_column(text, offset)));
  }
  StrictBuilder builder(text, fail);
  nlohmann::json::sax_parse(text, &builder, nlohmann::json::input_format_t::json, true, comments == Comments::kTaken);
  return builder.take();
}

nlohmann::json read_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

}  // namespace trivium::base
