#include "planner/launch/patch/rewrites.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::patch {
namespace {

constexpr int kDeepest = 4;  // variables that are set from variables
constexpr std::string_view kSpaces = " \t";

bool is_quote(char c) { return c == '"' || c == '\''; }
bool is_space(char c) { return c == ' ' || c == '\t'; }

std::size_t line_begin(const std::string& text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return before == std::string::npos ? 0 : before + 1;
}
std::size_t line_end(const std::string& text, std::size_t at) { return std::min(text.find('\n', at), text.size()); }

bool is_commented(const std::string& text, std::size_t at) {
  const std::size_t first = text.find_first_not_of(kSpaces, line_begin(text, at));
  return first != std::string::npos && first <= at && text[first] == '#';
}

/// One past a word: blanks, quotes, brackets and semicolons end it, except inside ${…} and $(…).
std::size_t word_end(const std::string& text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') return at;
    if (c == '$' && at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '(')) {
      ++depth, ++at;
      continue;
    }
    if (depth > 0) {
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
      continue;
    }
    if (is_space(c) || is_quote(c) || c == '\\' || c == ')' || c == ';' || c == '`' || c == '&') return at;
  }
  return at;
}

/// Past blanks and one quote that ends a word and one that begins the next.
std::size_t skip_to_value(const std::string& text, std::size_t at) {
  if (at < text.size() && text[at] == '=') ++at;
  if (at + 1 < text.size() && is_quote(text[at]) && is_space(text[at + 1])) ++at;
  while (at < text.size() && is_space(text[at])) ++at;
  const bool opens = at + 1 < text.size() && is_quote(text[at]) && !is_space(text[at + 1]) && text[at + 1] != '\n';
  return opens ? at + 1 : at;
}

/// An option and the words that follow it.
struct Found {
  Span name;
  std::vector<Span> values;
  std::size_t end(const std::string& text) const {
    if (values.empty()) return name.end;
    const std::size_t last = values.back().end;
    const std::size_t first = values.back().begin;
    const bool is_quoted =
        first > 0 && is_quote(text[first - 1]) && last < text.size() && text[last] == text[first - 1];
    return is_quoted ? last + 1 : last;
  }
};

bool same_name(std::string_view written, std::string_view name) {
  return written.size() == name.size() && std::equal(written.begin(), written.end(), name.begin(), [](char a, char b) {
           return (a == '_' ? '-' : a) == (b == '_' ? '-' : b);
         });
}

bool is_in_name(char c) { return shell::is_name_part(c) || c == '-' || c == '.'; }

/// `count`: of the words that belong to it, where that is known.
std::vector<Found> find_option(const std::string& text, const std::string& name,
                               std::size_t count = std::string::npos) {
  std::vector<Found> all;
  for (std::size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    if ((at > 0 && is_in_name(text[at - 1])) || is_commented(text, at)) continue;
    std::size_t end = at + 2;
    while (end < text.size() && is_in_name(text[end])) ++end;
    if (!same_name(std::string_view(text).substr(at + 2, end - at - 2), name)) continue;
    Found found{{at, end}, {}};
    for (std::size_t next = skip_to_value(text, end); next < text.size() && found.values.size() < count;) {
      const Span word{next, word_end(text, next)};
      if (word.begin == word.end || text[word.begin] == '-') break;
      found.values.push_back(word);
      if (text[end] == '=') break;
      next = skip_to_value(text, word.end);
    }
    all.push_back(std::move(found));
  }
  return all;
}

/// `NAME=`: the value's word.
std::vector<Span> assignments_of(const std::string& text, const std::string& name) {
  std::vector<Span> all;
  for (std::size_t at = text.find(name + "="); at != std::string::npos; at = text.find(name + "=", at + 1)) {
    const bool begins = at == 0 || is_space(text[at - 1]) || text[at - 1] == '\n' || text[at - 1] == ';' ||
                        text[at - 1] == '(' || text[at - 1] == '&';
    if (!begins || is_commented(text, at)) continue;
    std::size_t begin = at + name.size() + 1;
    if (begin < text.size() && is_quote(text[begin])) ++begin;
    all.push_back({begin, word_end(text, begin)});
  }
  return all;
}

/// `$NAME`, `${NAME}`, `${NAME:-default}`.
struct Expansion {
  std::string name;
  Span default_value;
  bool has_default = false;
};

std::optional<Expansion> expansion_at(const std::string& text, std::size_t at, std::size_t end) {
  if (at >= end || text[at] != '$') return std::nullopt;
  const bool braced = at + 1 < end && text[at + 1] == '{';
  std::size_t begin = at + (braced ? 2 : 1), last = begin;
  while (last < end && shell::is_name_part(text[last])) ++last;
  if (last == begin) return std::nullopt;
  Expansion expansion{text.substr(begin, last - begin), {}, false};
  if (!braced) return last == end ? std::optional(expansion) : std::nullopt;
  if (text[end - 1] != '}') return std::nullopt;
  if (last == end - 1) return expansion;
  if (text[last] == ':') ++last;
  if (last >= end || (text[last] != '-' && text[last] != '=')) return std::nullopt;
  expansion.default_value = {last + 1, end - 1};
  expansion.has_default = true;
  return expansion;
}

/// Defaults that other places of the text give the variable: `: ${NAME:=8}`.
std::vector<Span> defaults_of(const std::string& text, const std::string& name) {
  std::vector<Span> all;
  for (std::size_t at = text.find("${" + name); at != std::string::npos; at = text.find("${" + name, at + 1)) {
    const std::size_t close = text.find('}', at);
    if (close == std::string::npos || is_commented(text, at)) continue;
    const auto expansion = expansion_at(text, at, close + 1);
    if (expansion && expansion->has_default && expansion->name == name) all.push_back(expansion->default_value);
  }
  return all;
}

std::string shell_quoted(const std::string& value) {
  return value.find_first_of(" |*()<>;&") == std::string::npos ? value : "'" + value + "'";
}

std::string words_of_option(const std::string& name, const std::vector<std::string>& values, bool quoted) {
  std::string words = "--" + name;
  for (const std::string& value : values) words += " " + (quoted ? shell_quoted(value) : value);
  return words;
}

/// The option on a line of its own after the line of the anchor, or behind the anchor.
void insert_after(const std::string& text, const Found& anchor, const std::string& words, Texts& texts) {
  const std::size_t end = anchor.end(text);
  const std::size_t begin = line_begin(text, anchor.name.begin), eol = line_end(text, end);
  const std::size_t first = text.find_first_not_of(" \t\"'", begin);
  const std::string indent = text.substr(begin, text.find_first_not_of(kSpaces, begin) - begin);
  std::size_t last = eol;
  while (last > begin && (is_space(text[last - 1]) || text[last - 1] == '\r')) --last;
  const bool continues = last > begin && text[last - 1] == '\\';
  if (first == anchor.name.begin || text.compare(first, 2, "--") == 0) {
    if (continues) {
      texts.push_back(replaced(text, {eol, eol}, "\n" + indent + words + " \\"));
    } else if (last == end) {
      texts.push_back(replaced(text, {eol, eol}, "\n" + indent + words));
      texts.push_back(replaced(text, {last, last}, " \\\n" + indent + words));
    }
  }
  texts.push_back(replaced(text, {end, end}, " " + words));
  if (end < text.size() && is_quote(text[end])) texts.push_back(replaced(text, {end + 1, end + 1}, " " + words));
}

}  // namespace

std::string replaced(const std::string& text, Span part, const std::string& with) {
  return text.substr(0, part.begin) + with + text.substr(part.end);
}

void rewrite_word(const std::string& text, Span word, const std::string& value, int depth, Texts& texts) {
  const auto expansion = expansion_at(text, word.begin, word.end);
  const std::string_view written = std::string_view(text).substr(word.begin, word.end - word.begin);
  if (expansion && depth < kDeepest) {
    const Span own = expansion->default_value;
    if (expansion->has_default) rewrite_word(text, own, value, depth + 1, texts);
    for (const Span& assigned : assignments_of(text, expansion->name)) {
      if (assigned.begin != word.begin) rewrite_word(text, assigned, value, depth + 1, texts);
    }
    for (const Span& other : defaults_of(text, expansion->name)) {
      if (other.begin != own.begin) rewrite_word(text, other, value, depth + 1, texts);
    }
  }
  const bool is_plain = written.find_first_of("$`") == std::string_view::npos;
  if (is_plain || depth == 0) texts.push_back(replaced(text, word, value));
}

Texts with_option_value(const std::string& text, const std::string& name, std::size_t before,
                        const std::vector<std::string>& values) {
  Texts texts;
  const std::vector<Found> all = find_option(text, name, before);
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    if (found->values.size() == 1 && values.size() == 1) {
      rewrite_word(text, found->values.front(), values.front(), 0, texts);
      if (shell_quoted(values.front()) != values.front()) {
        rewrite_word(text, found->values.front(), shell_quoted(values.front()), 0, texts);
      }
      continue;
    }
    for (const bool quoted : {true, false}) {
      texts.push_back(
          replaced(text, {found->name.end, found->end(text)}, words_of_option("", values, quoted).substr(2)));
    }
  }
  return texts;
}

Texts with_option(const std::string& text, const std::string& name, const std::vector<std::string>& values,
                  const std::vector<std::string>& anchors) {
  Texts texts;
  for (const std::string& anchor : anchors) {
    for (const Found& found : find_option(text, anchor)) {
      insert_after(text, found, words_of_option(name, values, true), texts);
      const std::string plain = words_of_option(name, values, false);
      if (plain != words_of_option(name, values, true)) insert_after(text, found, plain, texts);
    }
  }
  return texts;
}

Texts without_option(const std::string& text, const std::string& name, std::size_t before) {
  Texts texts;
  const std::vector<Found> all = find_option(text, name, before);
  std::string none = text;
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    std::size_t begin = found->name.begin, end = found->end(text);
    const bool is_quoted = begin > 0 && is_quote(text[begin - 1]) && end < text.size() && text[end] == text[begin - 1];
    const std::size_t line = line_begin(text, begin), eol = line_end(text, end);
    std::size_t last = eol;
    while (last > end && (is_space(text[last - 1]) || text[last - 1] == '\\' || text[last - 1] == '\r')) --last;
    const bool is_all = text.find_first_not_of(" \t\"'", line) == begin && last <= end + (is_quoted ? 1U : 0U);
    if (is_all && eol < text.size()) {
      texts.push_back(replaced(text, {line, eol + 1}, ""));
      const std::size_t above = line == 0 ? std::string::npos : text.find_last_not_of(" \t\\\n", line - 1);
      if (above != std::string::npos) texts.push_back(replaced(text, {above + 1, eol}, ""));
    }
    if (is_quoted) texts.push_back(replaced(text, {begin - 1, end + 1}, ""));
    const bool has_blank = begin > 0 && is_space(text[begin - 1]);
    texts.push_back(replaced(text, {begin - (has_blank ? 1U : 0U), end}, ""));
    none = replaced(none, {begin - (has_blank ? 1U : 0U), end}, "");
  }
  if (all.size() > 1) texts.push_back(none);
  return texts;
}

Texts with_variable(const std::string& text, const std::string& name, const std::string& value) {
  Texts texts;
  for (const Span& assigned : assignments_of(text, name)) rewrite_word(text, assigned, value, 0, texts);
  if (!texts.empty()) return texts;
  const std::string unset = "unset " + name;
  const std::size_t taken = text.find(unset);
  if (taken != std::string::npos && !is_commented(text, taken)) {
    texts.push_back(replaced(text, {taken, taken + unset.size()}, "export " + name + "=" + value));
  }
  const std::size_t first = text.starts_with("#!") ? line_end(text, 0) : 0;
  std::size_t at = first;  // after the header of comments and #SBATCH
  while (at < text.size()) {
    const std::size_t begin = at == 0 ? 0 : at + 1;
    if (begin >= text.size() || text[begin] != '#') break;
    at = line_end(text, begin);
  }
  texts.push_back(
      replaced(text, {at, at}, (at == 0 ? "export " : "\nexport ") + name + "=" + value + (at == 0 ? "\n" : "")));
  return texts;
}

Texts without_variable(const std::string& text, const std::string& name) {
  Texts texts;
  for (const Span& assigned : assignments_of(text, name)) {
    const std::size_t begin = line_begin(text, assigned.begin), eol = line_end(text, assigned.end);
    const std::string line = text.substr(begin, eol - begin);
    const std::size_t first = line.find_first_not_of(kSpaces);
    const bool is_alone = line.compare(first, name.size(), name) == 0 || line.compare(first, 7, "export ") == 0;
    if (is_alone) texts.push_back(replaced(text, {begin, std::min(eol + 1, text.size())}, ""));
  }
  return texts;
}

Texts with_key(const std::string& text, const std::string& name, const std::string& value) {
  Texts texts;
  const std::size_t dot = name.rfind('.');
  const std::string section = dot == std::string::npos ? "" : name.substr(0, dot), key = name.substr(dot + 1);
  std::string inside;
  std::size_t header = std::string::npos;
  for (std::size_t at = 0; at < text.size(); at = line_end(text, at) + 1) {
    const std::size_t first = text.find_first_not_of(kSpaces, at), eol = line_end(text, at);
    if (first == std::string::npos || first >= eol) continue;
    if (text[first] == '[') {
      inside = text.substr(first + 1, text.find(']', first) - first - 1);
      if (inside == section) header = eol;
      continue;
    }
    if (inside != section || text.compare(first, key.size(), key) != 0) continue;
    const std::size_t equals = text.find_first_not_of(kSpaces, first + key.size());
    if (equals == std::string::npos || text[equals] != '=') continue;
    const std::size_t begin = text.find_first_not_of(kSpaces, equals + 1);
    std::size_t end = is_quote(text[begin]) ? text.find(text[begin], begin + 1) + 1 : begin;
    if (end == begin) end = std::min(text.find_first_of(" \t#\r\n", begin), text.size());
    texts.push_back(replaced(text, {begin, end}, value));
  }
  if (texts.empty() && header != std::string::npos) {
    texts.push_back(replaced(text, {header, header}, "\n" + key + " = " + value));
  }
  return texts;
}

}  // namespace trivium::planner::launch::patch
