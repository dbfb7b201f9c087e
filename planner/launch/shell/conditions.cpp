// test, [ and [[.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "planner/launch/shell/interpreter.h"
#include "planner/launch/shell/pattern.h"

namespace trivium::planner::launch::shell {

std::optional<std::string> Interpreter::known(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kHoleBegin) {
      result += text[i];
      continue;
    }
    const std::size_t end = std::min(text.find(kHoleEnd, i), text.size() - 1);
    const std::string name = text.substr(i + 1, end - i - 1);
    const bool is_name = !name.empty() && std::ranges::all_of(name, is_name_part) && is_name_start(name.front());
    if (!is_name || is_of_run(name)) return std::nullopt;
    assume(fmt::format("${} is not set in the file; taken as unset", name));
    guessed_ = true;
    i = end;
  }
  return result;
}

namespace {

Status status_of(bool holds) { return holds ? 0 : 1; }

bool is_binary(const std::string& op) {
  static const std::vector<std::string> kAll{"=",   "==",  "!=",  "=~",  "<",   ">",   "-eq", "-ne",
                                             "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"};
  return std::ranges::find(kAll, op) != kAll.end();
}

bool is_unary(const std::string& op) {
  return op.size() == 2 && op.front() == '-' && std::isalpha(static_cast<unsigned char>(op[1])) != 0;
}

}  // namespace

/// The grammar of conditions: or, and, not, brackets, comparisons.
struct Interpreter::Test {
  Interpreter& shell;
  const std::vector<std::string>& words;  ///< expanded, but of [[ as written
  bool raw;
  std::size_t at = 0;
  int depth = 0;

  bool at_end() const { return at >= words.size(); }
  bool accept(std::string_view word) {
    if (at_end() || words[at] != word) return false;
    ++at;
    return true;
  }
  std::string text(const std::string& word) const { return raw ? shell.expand_text(word) : word; }

  Status either() {
    if (++depth > 30) shell.fail("a condition nests too deep");
    Status left = both();
    while (accept("||") || accept("-o")) {
      const Status right = both();
      left = left == 0 || right == 0 ? 0 : left == kUnknown || right == kUnknown ? kUnknown : 1;
    }
    --depth;
    return left;
  }
  Status both() {
    Status left = one();
    while (accept("&&") || accept("-a")) {
      const Status right = one();
      left = left > 0 || right > 0 ? 1 : left == kUnknown || right == kUnknown ? kUnknown : 0;
    }
    return left;
  }
  Status one() {
    if (at_end()) return 1;
    const bool compares = at + 2 < words.size() + 0 && is_binary(words[at + 1]);
    if (!compares && accept("!")) {
      const Status inner = one();
      return inner == kUnknown ? inner : inner == 0 ? 1 : 0;
    }
    if (!compares && accept("(")) {
      const Status inner = either();
      accept(")");
      return inner;
    }
    if (compares) {
      const std::string left = text(words[at]), op = words[at + 1];
      const std::string& right = words[at + 2];
      at += 3;
      if (raw && (op == "=" || op == "==" || op == "!=")) {
        return shell.compare(left, op, shell.expand_pattern(right), true);
      }
      return shell.compare(left, op, text(right), false);
    }
    if (at + 1 < words.size() && is_unary(words[at])) {
      const std::string op = words[at];
      const std::string operand = text(words[at + 1]);
      at += 2;
      return shell.check(op, operand);
    }
    const auto value = shell.known(text(words[at++]));
    return value ? status_of(!value->empty()) : kUnknown;
  }
};

Status Interpreter::test(const std::vector<std::string>& words) { return Test{*this, words, false}.either(); }

Status Interpreter::condition(const Node& node) { return Test{*this, node.words, true}.either(); }

Status Interpreter::check(const std::string& op, const std::string& operand) {
  if (op == "-v") return status_of(is_set(operand));
  if (op == "-z" || op == "-n") {
    // What a scheduler sets, and what a program prints, is not empty.
    const auto value = known(operand);
    const bool empty = value && value->empty();
    if (!value) assume(fmt::format("{} is taken as not empty", operand));
    return status_of(empty == (op == "-z"));
  }
  if (has_hole(operand)) {
    if (const auto value = known(operand); value && value->empty()) return 1;
    return kUnknown;
  }
  if ((op == "-f" || op == "-e" || op == "-r" || op == "-s") && reading_.files.contains(operand)) return 0;
  return kUnknown;
}

Status Interpreter::compare(const std::string& left, const std::string& op, const std::string& right, bool patterns) {
  const auto a = known(left), b = known(right);
  if (!a || !b) return kUnknown;
  if (op == "=" || op == "==") return status_of(patterns ? matches(*b, *a) : *a == *b);
  if (op == "!=") return status_of(patterns ? !matches(*b, *a) : *a != *b);
  if (op == "<") return status_of(*a < *b);
  if (op == ">") return status_of(*a > *b);
  if (op == "=~") {
    if (a->size() > 1000 || b->size() > 200) return kUnknown;
    try {
      return status_of(std::regex_search(*a, std::regex(*b, std::regex::extended)));
    } catch (const std::regex_error&) {
      return kUnknown;
    }
  }
  if (op == "-nt" || op == "-ot" || op == "-ef") return kUnknown;
  std::optional<std::int64_t> x, y;
  try {
    x = arithmetic(*a), y = arithmetic(*b);
  } catch (const SyntaxError&) {
    return 2;  // as test says of what is no number
  }
  if (!x || !y) return kUnknown;
  if (op == "-eq") return status_of(*x == *y);
  if (op == "-ne") return status_of(*x != *y);
  if (op == "-lt") return status_of(*x < *y);
  if (op == "-le") return status_of(*x <= *y);
  if (op == "-gt") return status_of(*x > *y);
  return status_of(*x >= *y);
}

}  // namespace trivium::planner::launch::shell
