#include "cli/render/output_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

/// Walks over the outermost object of a JSON text, as far as that tells its members; what is wrong with the text is
/// left to those that read it.
class OuterMembers {
 public:
  explicit OuterMembers(std::istream& text) : text_(text) {}

  /// Whether there is a member of the name, with this text as its value if that is not empty.
  bool has(std::string_view name, std::string_view value) {
    int depth = 0;
    std::string last, key;
    for (char c = 0; text_.get(c);) {
      if (c == '"') {
        last = rest_of_string();
        if (depth == 1 && key == name && (value.empty() || last == value)) return true;
      } else if (c == ':' && depth == 1) {
        key = last;
        if (value.empty() && key == name) return true;
      } else if (c == ',' && depth == 1) {
        key.clear();
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        --depth;
      } else if (depth == 0 && std::isspace(static_cast<unsigned char>(c)) == 0) {
        return false;
      }
    }
    return false;
  }

 private:
  std::string rest_of_string() {
    constexpr std::size_t kLongestName = 64;
    std::string read;
    for (char c = 0; text_.get(c) && c != '"';) {
      if (c == '\\' && !text_.get(c)) break;
      if (read.size() < kLongestName) read += c;
    }
    return read;
  }

  std::istream& text_;
};

std::string beginning(std::istream& file) {
  std::string text(512, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool has_schema(std::istream& file, std::string_view schema) { return OuterMembers(file).has("schema", schema); }

bool is_of(std::istream& file, OutputKind kind) {
  switch (kind) {
    case OutputKind::kPlan:
      return has_schema(file, "trivium.plan/1");
    case OutputKind::kRecord:
      return has_schema(file, "trivium.run/1");
    case OutputKind::kProfile:
      return has_schema(file, "trivium.hardware/1");
    case OutputKind::kTrace:
      return OuterMembers(file).has("traceEvents", "");
    case OutputKind::kPage:
      return beginning(file).starts_with("<!DOCTYPE html>");
    case OutputKind::kTable: {
      const std::string text = beginning(file);
      return text.starts_with("what,name,source,") || text.starts_with("curve,devices,nodes,");
    }
    case OutputKind::kLaunch: {
      const std::string text = beginning(file);
      return text.starts_with("#") && text.find(" as TP") != std::string::npos;
    }
    case OutputKind::kTokens: {
      const std::string text = beginning(file);
      constexpr std::array<std::string_view, 2> kMagic{"\x88\xd8\x34\x01", "\xa1\xd9\x34\x01"};
      return std::any_of(kMagic.begin(), kMagic.end(), [&](std::string_view magic) { return text.starts_with(magic); });
    }
    case OutputKind::kWeights: {
      const std::string text = beginning(file);
      return text.size() > 8 && text[8] == '{';
    }
    case OutputKind::kFolder:
      return true;
  }
  return true;
}

std::string words_of(OutputKind kind) {
  static constexpr std::array<const char*, 10> kWords{
      "a plan file",     "a run record",  "a trace",      "a hardware profile", "a page of Trivium's",
      "a table of ours", "a launch file", "a token file", "a file of tensors",  "a folder"};
  return kWords.at(static_cast<std::size_t>(kind));
}

}  // namespace

std::string other_kind(const std::string& file, OutputKind kind) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored) || fs::file_size(file, ignored) == 0) return "";
  std::ifstream stream(file, std::ios::binary);
  return is_of(stream, kind) ? "" : words_of(kind);
}

}  // namespace trivium::cli
