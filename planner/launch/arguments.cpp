#include "planner/launch/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::planner::launch {
namespace {

constexpr std::size_t kLineWidth = 110;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

/// `NAME=value`: the name, or nothing.
std::optional<std::string> assigned(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) return std::nullopt;
  const std::string name = word.substr(0, equals);
  const bool plain = std::all_of(name.begin(), name.end(), is_name) && std::isdigit(word.front()) == 0;
  return plain ? std::optional(name) : std::nullopt;
}

class ScriptReader {
 public:
  ScriptReader(std::string_view text, std::string where) : where_(std::move(where)) { take_documents(text); }

  Script read() {
    for (const std::string& word : words_of(shell_)) take(word);
    return std::move(script_);
  }

 private:
  // Here-documents leave the text; continued lines become one.
  void take_documents(std::string_view text) {
    std::string until;
    for (const std::string& line : lines_of(text)) {
      if (!until.empty()) {
        if (trimmed(line) == until) {
          until.clear();
        } else {
          script_.documents.back() += line + "\n";
        }
        continue;
      }
      shell_ += line + "\n";
      const std::size_t begin = line.find("<<");
      if (begin == std::string::npos || line.find("<<<") != std::string::npos) continue;
      for (std::size_t i = begin + 2; i < line.size() && (is_name(line[i]) || until.empty()); ++i) {
        if (is_name(line[i])) until += line[i];
      }
      if (!until.empty()) script_.documents.emplace_back();
    }
  }

  // Words as the shell splits them. What stood in quotes is one word, and is split again by whoever finds arguments in
  // it.
  static std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool inside = false;
    char quote = 0;
    const auto finish = [&] {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote != 0) {
        if (c == quote) {
          quote = 0;
        } else {
          word += c == '\n' ? ' ' : c;
        }
      } else if (c == '\\' && i + 1 < text.size()) {
        if (text[++i] != '\n') word += text[i], inside = true;
      } else if (c == '"' || c == '\'') {
        quote = c;
        inside = true;
      } else if (c == '#' && !inside) {
        i = std::min(text.find('\n', i), text.size()) - 1;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == ';') {
        finish();
      } else {
        word += c;
        inside = true;
      }
    }
    finish();
    return words;
  }

  void take(std::string word) {
    if (const auto name = assigned(word)) {
      std::string value = expanded(word.substr(name->size() + 1));
      if (value.starts_with('(')) value.erase(0, 1);  // an array: its words follow as arguments
      open_ = false;
      if (trimmed(value).starts_with("--")) {
        for (const std::string& inner : words_of(value)) take(inner);
      } else if (!value.empty() && value != ")") {
        script_.variables[*name] = value;
      }
      return;
    }
    word = expanded(word);
    if (word.ends_with(')') && word.find('(') == std::string::npos) word.pop_back();
    if (word.empty() || word == "(") return;
    if (word.starts_with("--") && word.find(' ') != std::string::npos) {
      for (const std::string& inner : words_of(word)) take(inner);
    } else if (word.starts_with("--") && word.size() > 2) {
      add_name(word.substr(2));
    } else if (ends_command(word)) {
      open_ = false;
    } else if (open_) {
      script_.arguments.back().values.push_back(word);
    }
  }

  // After these words no value of the argument before can stand.
  static bool ends_command(const std::string& word) {
    static const std::vector<std::string> kWords{"&&", "||", "|", ">", ">>", "2>&1", "|&", "&", "export", "torchrun"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end() || word.ends_with(".py") ||
           word.starts_with("${") || (word.starts_with("$") && word.find("_ARGS") != std::string::npos);
  }

  void add_name(const std::string& text) {
    const std::size_t equals = text.find('=');
    Argument argument{text.substr(0, equals), {}};
    std::replace(argument.name.begin(), argument.name.end(), '_', '-');
    if (equals != std::string::npos) argument.values.push_back(text.substr(equals + 1));
    open_ = equals == std::string::npos;
    script_.arguments.push_back(std::move(argument));
  }

  // `$NAME`, `${NAME}` and `${NAME:-otherwise}`; what the file does not say stays.
  std::string expanded(const std::string& word) {
    std::string text = expanded_once(word);
    expanded_bytes_ += text.size();
    if (expanded_bytes_ > kMostExpanded) {
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: its variables grow beyond {} MiB; no launch file is so large",
                                      base::one_line(where_), kMostExpanded >> 20));
    }
    return text;
  }

  std::string expanded_once(const std::string& word) const {
    std::string text;
    for (std::size_t i = 0; i < word.size() && text.size() <= kMostExpanded; ++i) {
      if (word[i] != '$' || i + 1 >= word.size() || word[i + 1] == '(') {
        text += word[i];
        continue;
      }
      const bool braced = word[i + 1] == '{';
      const std::size_t begin = i + (braced ? 2 : 1);
      std::size_t end = begin;
      while (end < word.size() && is_name(word[end])) ++end;
      const std::size_t close = braced ? word.find('}', end) : end;
      if (close == std::string::npos || end == begin) {
        text += word[i];
        continue;
      }
      const auto known = script_.variables.find(word.substr(begin, end - begin));
      const bool has_default = braced && word.compare(end, 2, ":-") == 0;
      const std::size_t after = braced ? close + 1 : end;
      if (known != script_.variables.end()) {
        text += known->second;
      } else if (has_default) {
        text += word.substr(end + 2, close - end - 2);
      } else {
        text += word.substr(i, after - i);
      }
      i = after - 1;
    }
    return text;
  }

  static constexpr std::size_t kMostExpanded = std::size_t{16} << 20;  // of all words of a script together

  std::string where_, shell_;
  Script script_;
  std::size_t expanded_bytes_ = 0;
  bool open_ = false;  // whether the last argument may still take values
};

// "  name ........ value" between the two rules of Megatron's log.
Script read_dump(const std::vector<std::string>& lines, std::size_t begin) {
  Script script;
  script.is_dump = true;
  for (std::size_t i = begin + 1; i < lines.size() && lines[i].find("end of arguments") == std::string::npos; ++i) {
    const std::size_t dots = lines[i].find(" ...");
    if (dots == std::string::npos) continue;
    std::string name = lines[i].substr(0, dots);
    name = name.substr(std::min(name.size(), name.find_last_of(" \t") + 1));
    const std::size_t value = lines[i].find_first_not_of('.', dots + 1);
    if (name.empty() || value == std::string::npos) continue;
    const std::string text = trimmed(lines[i].substr(value));
    if (text == "None" || text == "False" || text.empty()) continue;
    std::replace(name.begin(), name.end(), '_', '-');
    Argument argument{name, {}};
    if (text != "True") argument.values.push_back(text);
    script.arguments.push_back(std::move(argument));
  }
  return script;
}

// Of a value without single quotes: variables of the shell are left to it.
std::string quoted(const std::string& value) {
  if (value.starts_with('$')) return '"' + value + '"';
  const bool plain = value.find_first_of(" |*()") == std::string::npos && !value.empty();
  return plain ? value : "'" + value + "'";
}

}  // namespace

Script read_script(std::string_view text, const std::string& where) {
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("--- arguments ---") != std::string::npos) return read_dump(lines, i);
  }
  return ScriptReader(text, where).read();
}

std::string shell_lines(const std::vector<Argument>& arguments) {
  std::string text, line = " ";
  for (const Argument& argument : arguments) {
    std::string words = " --" + argument.name;
    for (const std::string& value : argument.values) words += " " + quoted(value);
    if (line.size() + words.size() > kLineWidth) {
      text += line + " \\\n";
      line = " ";
    }
    line += words;
  }
  return text + line + "\n";
}

}  // namespace trivium::planner::launch
