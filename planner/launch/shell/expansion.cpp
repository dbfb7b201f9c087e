// Words: quotes, parameters, substitutions, splitting. POSIX.1-2017, Shell Command Language, 2.6.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "planner/launch/shell/interpreter.h"
#include "planner/launch/shell/pattern.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr std::string_view kSpecial = "*?[]\\";
constexpr std::string_view kBlank = " \t\n";
constexpr std::size_t kMostWords = 20'000;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// The text of $'…', from after the quote.
std::string with_escapes(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      result += text[i];
      continue;
    }
    const char c = text[++i];
    result += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
  return result;
}

std::string upper_or_lower(std::string text, bool upper, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(1, text.size())); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(upper ? std::toupper(c) : std::tolower(c));
  }
  return text;
}

}  // namespace

void Interpreter::Fields::close() {
  if (has_open) done.push_back(std::move(open));
  open = {};
  has_open = false;
}

// `{a,b}` and `{1..4}` outside quotes and expansions.
std::vector<std::string> Interpreter::braces(const std::string& word, int depth) {
  if (word.find('{') == std::string::npos || depth > 4) return {word};
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c == '\\') {
      ++i;
    } else if (c == '\'') {
      i = end_of_single(word, i) - 1;
    } else if (c == '"') {
      i = end_of_double(word, i) - 1;
    } else if (c == '`') {
      i = end_of_backticks(word, i) - 1;
    } else if (c == '$') {
      i = end_of_dollar(word, i) - 1;
    } else if (c == '{') {
      const std::size_t close = word.find('}', i);
      if (close == std::string::npos) return {word};
      const std::string inside = word.substr(i + 1, close - i - 1);
      std::vector<std::string> choices;
      int first = 0, last = 0, step = 0, used = 0;
      if (std::sscanf(inside.c_str(), "%5d..%5d..%5d%n", &first, &last, &step, &used) == 3 && step > 0 &&
          used == static_cast<int>(inside.size()) && std::abs(last - first) / step < 10'000) {
        for (int n = first; first <= last ? n <= last : n >= last; n += first <= last ? step : -step) {
          choices.push_back(std::to_string(n));
        }
        if (choices.empty()) continue;
      } else if (std::sscanf(inside.c_str(), "%5d..%5d%n", &first, &last, &used) == 2 &&
                 used == static_cast<int>(inside.size()) && std::abs(last - first) < 10'000) {
        for (int n = first; first <= last ? n <= last : n >= last; n += first <= last ? 1 : -1) {
          choices.push_back(std::to_string(n));
        }
      } else if (inside.find(',') != std::string::npos && inside.find_first_of("{$'\"") == std::string::npos) {
        for (std::size_t from = 0; from <= inside.size();) {
          const std::size_t comma = std::min(inside.find(',', from), inside.size());
          choices.push_back(inside.substr(from, comma - from));
          from = comma + 1;
        }
      } else {
        continue;
      }
      std::vector<std::string> all;
      for (const std::string& choice : choices) {
        for (std::string& more : braces(word.substr(0, i) + choice + word.substr(close + 1), depth + 1)) {
          all.push_back(std::move(more));
          if (all.size() > kMostWords) return all;
        }
      }
      return all;
    }
  }
  return {word};
}

std::vector<std::string> Interpreter::expand_words(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    for (const std::string& one : braces(word)) {
      Fields fields;
      walk(one, false, Mode::kFields, fields);
      fields.close();
      for (Field& field : fields.done) {
        count_bytes(field.text.size() + 1);
        result.push_back(std::move(field.text));
      }
    }
    if (result.size() > kMostWords * 10) fail("a command has too many words");
  }
  return result;
}

std::string Interpreter::expand_text(std::string_view word) {
  Fields fields;
  walk(word, false, Mode::kText, fields);
  count_bytes(fields.open.text.size());
  return fields.open.text;
}

std::string Interpreter::expand_pattern(std::string_view word) {
  Fields fields;
  walk(word, false, Mode::kPattern, fields);
  count_bytes(fields.open.text.size());
  return fields.open.text;
}

std::string Interpreter::expand_document(std::string_view text) {
  Fields fields;
  // Double quotes are only themselves there.
  std::size_t from = 0;
  for (std::size_t quote = text.find('"'); from <= text.size(); quote = text.find('"', from)) {
    const std::size_t end = std::min(quote, text.size());
    walk(text.substr(from, end - from), true, Mode::kText, fields);
    if (end < text.size()) fields.open.text += '"';
    from = end + 1;
  }
  count_bytes(fields.open.text.size());
  return fields.open.text;
}

void Interpreter::put(const std::string& text, bool quoted, Mode mode, Fields& out) {
  if (mode != Mode::kFields || quoted) {
    out.open.text += mode == Mode::kPattern && quoted ? escaped(text) : text;
    out.has_open = out.has_open || quoted || !text.empty();
    out.open.quoted = out.open.quoted || quoted;
    return;
  }
  bool in_hole = false;
  for (const char c : text) {
    if (c == kHoleBegin || c == kHoleEnd) in_hole = c == kHoleBegin;
    if (!in_hole && kBlank.find(c) != std::string_view::npos) {
      out.close();
    } else {
      out.open.text += c;
      out.has_open = true;
    }
  }
}

void Interpreter::walk(std::string_view word, bool quoted, Mode mode, Fields& out) {
  for (std::size_t i = 0; i < word.size();) {
    const char c = word[i];
    if (c == '\\' && i + 1 < word.size()) {
      const char next = word[i + 1];
      const bool is_special = std::string_view("$`\"\\\n").find(next) != std::string_view::npos;
      if (quoted && !is_special) {
        put("\\", true, mode, out);
        ++i;
        continue;
      }
      if (next != '\n') put(std::string(1, next), true, mode, out);
      i += 2;
    } else if (c == '\'' && !quoted) {
      const std::size_t end = end_of_single(word, i);
      put(std::string(word.substr(i + 1, end - i - 2)), true, mode, out);
      i = end;
    } else if (c == '"' && !quoted) {
      const std::size_t end = end_of_double(word, i);
      const std::string_view inside = word.substr(i + 1, end - i - 2);
      // "$@" of nothing is no word at all; every other pair of quotes is one.
      const bool is_list = inside == "$@" || inside == "${@}" || (inside.starts_with("${") && inside.ends_with("[@]}"));
      if (!is_list) put("", true, mode, out);
      walk(inside, true, mode, out);
      i = end;
    } else if (c == '`') {
      const std::size_t end = end_of_backticks(word, i);
      std::string command;
      for (std::size_t k = i + 1; k + 1 < end; ++k) {
        if (word[k] == '\\' && k + 2 < end && std::string_view("$`\\").find(word[k + 1]) != std::string_view::npos) ++k;
        command += word[k];
      }
      put(substitute(command), quoted, mode, out);
      i = end;
    } else if (c == '$') {
      i = walk_dollar(word, i, quoted, mode, out);
    } else if ((c == '<' || c == '>') && !quoted && i + 1 < word.size() && word[i + 1] == '(') {
      i = end_of_dollar(word, i);
      put(std::string(1, kHoleBegin) + "(a pipe)" + kHoleEnd, true, mode, out);
    } else {
      // Written characters are never split, whatever they are.
      out.open.text += mode == Mode::kPattern && quoted ? escaped(std::string(1, c)) : std::string(1, c);
      out.has_open = true;
      ++i;
    }
  }
}

void Interpreter::put_list(const std::vector<std::string>& values, bool quoted, bool separate, Mode mode, Fields& out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) {
      if (mode == Mode::kFields && (separate || !quoted)) {
        out.close();
      } else {
        put(" ", quoted, mode, out);
      }
    }
    put(values[i], quoted, mode, out);
  }
}

std::size_t Interpreter::walk_dollar(std::string_view word, std::size_t at, bool quoted, Mode mode, Fields& out) {
  const std::size_t end = end_of_dollar(word, at);
  if (end == at + 1) {
    put("$", true, mode, out);
    return end;
  }
  const std::string_view inside = word.substr(at + 1, end - at - 1);
  if (inside.starts_with("((") && inside.ends_with("))")) {
    put(arithmetic_text(inside.substr(2, inside.size() - 4)), quoted, mode, out);
  } else if (inside.front() == '(') {
    put(substitute(std::string(inside.substr(1, inside.size() - 2))), quoted, mode, out);
  } else if (inside.front() == '{') {
    walk_braced(inside.substr(1, inside.size() - 2), quoted, mode, out);
  } else if (inside.front() == '\'' && !quoted) {
    put(with_escapes(inside.substr(1, inside.size() - 2)), true, mode, out);
  } else if (inside.front() == '\'') {
    put("$'", true, mode, out);
    return at + 2;
  } else if (inside.front() == '"') {
    walk(inside, quoted, mode, out);
  } else if (inside == "@" || inside == "*") {
    if (!knows_arguments_ && arguments_.empty()) return end;
    put_list(arguments_, quoted, inside == "@", mode, out);
  } else {
    put(value_of(std::string(inside)), quoted, mode, out);
  }
  return end;
}

std::string Interpreter::arithmetic_text(std::string_view inside) {
  const std::string expression = expand_text("\"" + std::string(inside) + "\"");
  const auto value = arithmetic(expression);
  if (value) return std::to_string(*value);
  std::string shown = with_dollars(expression);
  return hole_for("((" + shown + "))");
}

std::string Interpreter::substitute(const std::string& command) {
  if (++depth_ > 300) fail("substitutions nest too deep");
  std::string* const outside = output_;
  const auto input = input_;
  std::string written;
  output_ = &written;
  const int line = line_;
  const auto variables = variables_;
  ++substituting_;
  run_text(command, line);
  --substituting_;
  variables_ = variables;
  line_ = line;
  output_ = outside;
  input_ = input;
  if (leaving_ == Leaving::kExit) leaving_ = Leaving::kNot;
  --depth_;
  count_bytes(written.size());
  while (written.ends_with('\n')) written.pop_back();
  return written;
}

void Interpreter::walk_braced(std::string_view inside, bool quoted, Mode mode, Fields& out) {
  if (inside.empty()) fail("${} names nothing");
  const bool counts = inside.size() > 1 && inside.front() == '#';
  const bool indirect = inside.size() > 1 && inside.front() == '!';
  std::string_view rest = counts || indirect ? inside.substr(1) : inside;
  std::size_t end = 0;
  if (is_name_start(rest.front())) {
    while (end < rest.size() && is_name_part(rest[end])) ++end;
  } else if (std::isdigit(static_cast<unsigned char>(rest.front())) != 0) {
    while (end < rest.size() && std::isdigit(static_cast<unsigned char>(rest[end])) != 0) ++end;
  } else {
    end = 1;
  }
  std::string name(rest.substr(0, end));
  rest.remove_prefix(end);
  const bool is_arguments = name == "@" || name == "*";
  bool whole = is_arguments, separate = name == "@";
  std::string index;
  if (rest.starts_with("[")) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) fail("a bracket of ${" + std::string(inside) + "} is never closed");
    index = rest.substr(1, close - 1);
    whole = index == "@" || index == "*";
    separate = index == "@";
    rest.remove_prefix(close + 1);
  }
  if (indirect && rest.empty() && whole) return put_list(keys_of(name), quoted, separate, mode, out);
  if (indirect) {
    name = value_of(name);
    if (name.empty() || has_hole(name) || !is_name_start(name.front()))
      fail("${" + std::string(inside) + "} names no variable");
  }
  if (whole) {
    std::vector<std::string> values = is_arguments ? arguments_ : values_of(name);
    if (counts) return put(std::to_string(values.size()), quoted, mode, out);
    if (rest.starts_with(":") && rest.size() > 1 && std::isdigit(static_cast<unsigned char>(rest[1])) != 0) {
      const std::size_t colon = rest.find(':', 1);
      const auto from = arithmetic(expand_text(rest.substr(1, colon == std::string_view::npos ? colon : colon - 1)));
      const auto many =
          colon == std::string_view::npos ? std::nullopt : arithmetic(expand_text(rest.substr(colon + 1)));
      const std::size_t skip =
          static_cast<std::size_t>(std::max<std::int64_t>(0, from.value_or(0) - (is_arguments ? 1 : 0)));
      values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(skip, values.size())));
      if (many && *many >= 0 && static_cast<std::size_t>(*many) < values.size())
        values.resize(static_cast<std::size_t>(*many));
    } else if (!rest.empty()) {
      const bool any = is_arguments ? !values.empty() : is_set(name);
      for (std::string& value : values) value = modified(name, value, any, rest, quoted);
      if (values.empty()) values.push_back(modified(name, "", false, rest, quoted));
    }
    return put_list(values, quoted, separate, mode, out);
  }
  bool set_already = is_set(name);
  std::string value;
  if (!index.empty() && name != "BASH_SOURCE") {
    const auto found = variables_.find(name);
    value = found == variables_.end() ? hole_for(name + "[" + index + "]") : "";
    if (found != variables_.end()) {
      const std::string key = index_of(index, found->second);
      const auto element = found->second.elements.find(key);
      set_already = element != found->second.elements.end();
      if (set_already) value = element->second;
      if (index == "0" && !found->second.is_array) value = value_of(name), set_already = true;
      if (has_hole(key)) value = hole_for(name + "[" + with_dollars(key) + "]");
    }
  } else {
    value = value_of(name);
  }
  if (counts) {
    if (has_hole(value)) return put(hole_for("#" + name), quoted, mode, out);
    return put(std::to_string(value.size()), quoted, mode, out);
  }
  if (rest.empty()) return put(value, quoted, mode, out);
  put(modified(name, value, set_already, rest, quoted), quoted, mode, out);
}

std::string Interpreter::with_default(const std::string& name, const std::string& value, bool is_set_already, char kind,
                                      bool colon, std::string_view word) {
  const bool is_hole = !is_set_already && has_hole(value);
  // A scheduler sets it, to what only a run knows.
  const bool runs_know = (is_hole && is_of_run(name)) ||
                         (is_set_already && has_hole(value) && value.front() == kHoleBegin &&
                          value.find(kHoleEnd) + 1 == value.size() && is_of_run(with_dollars(value).substr(1)));
  const bool missing = !is_set_already || (colon && value.empty());
  if (runs_know && kind != '+') return value;
  if (kind == '+') return missing ? "" : expand_text(word);
  if (!missing) return value;
  if (kind == '?') return is_hole ? value : hole_for(name);
  const std::string otherwise = expand_text(word);
  if (kind == '=') set(name, otherwise);
  return otherwise;
}

// What follows the name in ${NAME…}.
std::string Interpreter::modified(const std::string& name, std::string value, bool is_set_already, std::string_view how,
                                  bool quoted) {
  const bool colon =
      how.size() > 1 && how.front() == ':' && std::string_view("-=+?").find(how[1]) != std::string_view::npos;
  const char kind = how[colon ? 1 : 0];
  if (std::string_view("-=+?").find(kind) != std::string_view::npos) {
    std::string_view word = how.substr(colon ? 2 : 1);
    // In double quotes, single ones are only themselves.
    if (quoted && word.find('\'') != std::string_view::npos) {
      return with_default(name, value, is_set_already, kind, colon, "\"" + std::string(word) + "\"");
    }
    return with_default(name, value, is_set_already, kind, colon, word);
  }
  if (has_hole(value)) return hole_for(name + std::string(how));
  const bool twice = how.size() > 1 && how[1] == kind;
  const std::string_view word = how.substr(twice ? 2 : 1);
  switch (kind) {
    case '#':
      return without_prefix(value, expand_pattern(word), twice);
    case '%':
      return without_suffix(value, expand_pattern(word), twice);
    case '^':
      return upper_or_lower(std::move(value), true, twice);
    case ',':
      return upper_or_lower(std::move(value), false, twice);
    case '/': {
      std::size_t slash = word.find('/');
      while (slash != std::string_view::npos && slash > 0 && word[slash - 1] == '\\') slash = word.find('/', slash + 1);
      const std::string by = slash == std::string_view::npos ? "" : expand_text(word.substr(slash + 1));
      return replaced(value, expand_pattern(word.substr(0, slash)), by, twice);
    }
    case ':': {
      const std::size_t next = how.find(':', 1);
      const auto from = arithmetic(expand_text(how.substr(1, next == std::string_view::npos ? next : next - 1)));
      const auto many = next == std::string_view::npos
                            ? std::optional<std::int64_t>(static_cast<std::int64_t>(value.size()))
                            : arithmetic(expand_text(how.substr(next + 1)));
      if (!from || !many) return hole_for(name + std::string(how));
      const auto size = static_cast<std::int64_t>(value.size());
      const std::int64_t begin = std::clamp<std::int64_t>(*from < 0 ? size + *from : *from, 0, size);
      const std::int64_t end =
          std::clamp<std::int64_t>(*many < 0 ? size + *many : begin + std::min(*many, size), begin, size);
      return value.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    }
    default:
      fail("${" + name + std::string(how) + "} is not understood");
  }
}

}  // namespace trivium::planner::launch::shell
