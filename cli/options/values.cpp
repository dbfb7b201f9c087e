#include "cli/options/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "cli/options/tokens.h"

namespace trivium::cli {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_' || c == '-';
  });
}

/// Rewrites what has a suffix; what has none is left to the option's own check.
CLI::Validator suffixes(bool of_sequence) {
  CLI::Validator validator(
      [of_sequence](std::string& text) -> std::string {
        const bool has_suffix = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0 &&
                                std::isalpha(static_cast<unsigned char>(text.back())) != 0;
        if (!has_suffix) return "";
        if (of_sequence && (text.back() == 'K' || text.back() == 'k')) {
          const std::string number = text.substr(0, text.size() - 1);
          return fmt::format("{} is {}000 to some and {} x 1024 to others; write the number, or {}Ki for the latter",
                             base::quote(text), number, number, number);
        }
        try {
          text = std::to_string(parse_tokens("", text));
        } catch (const base::Failure&) {
          return fmt::format("{} is no count of tokens; write 300B, 1.5T, 8Ki or 1000000", base::quote(text));
        }
        return "";
      },
      "");
  return validator.name("suffixes");
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return CLI::Validator(
      [names = std::move(names)](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) return "";
        const std::string near = base::nearest(text, names);
        if (!near.empty()) return fmt::format("unknown value {}; did you mean \"{}\"?", base::quote(text), near);
        return fmt::format("unknown value {}; known: {}", base::quote(text), fmt::join(names, ", "));
      },
      "{" + all + "}");
}

CLI::Validator token_suffixes() { return suffixes(false); }
CLI::Validator sequence_suffixes() { return suffixes(true); }

std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) {
    return split(type.substr(open + 1, close - open - 1), ',');
  }
  std::vector<std::string> parts = split(type, '|');
  const bool names = parts.size() > 1 && std::all_of(parts.begin(), parts.end(), is_name);
  return names ? parts : std::vector<std::string>();
}

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  if (const auto values = values_of(option); !values.empty()) {
    constexpr std::size_t kWidest = 40;  // else they are many, and said in the description
    const std::string all = fmt::format("{}", fmt::join(values, "|"));
    return all.size() <= kWidest ? all : "NAME";
  }
  std::string type = option.get_type_name();
  for (const char* limits : {":INT in", ":UINT in", ":FLOAT in"}) type = type.substr(0, type.find(limits));
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "X";
  return type;
}

}  // namespace trivium::cli
