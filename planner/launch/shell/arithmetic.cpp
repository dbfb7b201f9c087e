#include "planner/launch/shell/arithmetic.h"

#include <array>
#include <cctype>
#include <utility>

#include "planner/launch/shell/reading.h"
#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::shell {
namespace {

using Value = std::optional<std::int64_t>;
constexpr int kMostDeep = 40;

// Wraps around, as bash's does.
std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) throw SyntaxError{0, "an exponent is below 0"};
  std::uint64_t result = 1;
  for (std::uint64_t square = bits(base); exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return wrapped(result);
}

std::int64_t divided(std::int64_t a, std::int64_t b, bool rest) {
  if (b == 0) throw SyntaxError{0, "division by zero"};
  if (b == -1) return rest ? 0 : wrapped(0 - bits(a));
  return rest ? a % b : a / b;
}

std::int64_t applied(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "+") return wrapped(bits(a) + bits(b));
  if (op == "-") return wrapped(bits(a) - bits(b));
  if (op == "*") return wrapped(bits(a) * bits(b));
  if (op == "/") return divided(a, b, false);
  if (op == "%") return divided(a, b, true);
  if (op == "**") return power(a, b);
  if (op == "<<") return wrapped(bits(a) << (bits(b) & 63U));
  if (op == ">>") return a >> (bits(b) & 63U);
  if (op == "<") return a < b ? 1 : 0;
  if (op == ">") return a > b ? 1 : 0;
  if (op == "<=") return a <= b ? 1 : 0;
  if (op == ">=") return a >= b ? 1 : 0;
  if (op == "==") return a == b ? 1 : 0;
  if (op == "!=") return a != b ? 1 : 0;
  if (op == "&") return a & b;
  if (op == "^") return a ^ b;
  if (op == "|") return a | b;
  if (op == "&&") return a != 0 && b != 0 ? 1 : 0;
  return a != 0 || b != 0 ? 1 : 0;
}

struct Operator {
  std::string_view text;
  int level;  ///< binds tighter where higher
};
// Longer ones first, so that the first that fits is the one.
constexpr std::array<Operator, 19> kOperators{{{"**", 11},
                                               {"<<", 8},
                                               {">>", 8},
                                               {"<=", 7},
                                               {">=", 7},
                                               {"==", 6},
                                               {"!=", 6},
                                               {"&&", 2},
                                               {"||", 1},
                                               {"+", 9},
                                               {"-", 9},
                                               {"*", 10},
                                               {"/", 10},
                                               {"%", 10},
                                               {"<", 7},
                                               {">", 7},
                                               {"&", 5},
                                               {"^", 4},
                                               {"|", 3}}};

class Evaluator {
 public:
  Evaluator(std::string_view text, const Names& names, int depth) : text_(text), names_(names), depth_(depth) {
    if (depth_ > kMostDeep) throw SyntaxError{0, "arithmetic nests too deep"};
  }

  Value whole() {
    skip();
    if (at_ >= text_.size()) return 0;
    const Value value = comma();
    if (at_ < text_.size()) throw SyntaxError{0, "arithmetic \"" + with_dollars(text_) + "\" is not understood"};
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '"'))
      ++at_;
  }
  bool accept(std::string_view part) {
    skip();
    if (!text_.substr(at_).starts_with(part)) return false;
    at_ += part.size();
    return true;
  }

  Value comma() {
    Value value = assignment();
    while (accept(",")) value = assignment();
    return value;
  }

  std::string name() {
    skip();
    std::size_t end = at_;
    if (end < text_.size() && is_name_start(text_[end])) {
      while (end < text_.size() && is_name_part(text_[end])) ++end;
    }
    return std::string(text_.substr(at_, end - at_));
  }

  Value assignment() {
    const std::size_t begin = at_;
    const std::string target = name();
    if (!target.empty()) {
      at_ += target.size();
      skip();
      for (const std::string_view op : {"<<", ">>", "+", "-", "*", "/", "%", "&", "^", "|", ""}) {
        const std::string whole = std::string(op) + "=";
        const std::string_view rest = text_.substr(at_);
        if (!rest.starts_with(whole) || rest.substr(whole.size()).starts_with("=")) continue;
        at_ += whole.size();
        const Value right = assignment();
        const Value old = op.empty() ? Value(0) : variable(target);
        const Value value = right && old ? Value(op.empty() ? *right : applied(op, *old, *right)) : Value();
        store(target, value);
        return value;
      }
      at_ = begin;
    }
    return choice();
  }

  void store(const std::string& target, Value value) {
    names_.set(target, value ? std::to_string(*value) : std::string(1, kHoleBegin) + target + kHoleEnd);
  }

  Value variable(const std::string& wanted) { return evaluate(names_.get(wanted), names_, depth_ + 1); }

  Value choice() {
    const Value condition = binary(1);
    if (!accept("?")) return condition;
    if (++depth_ > kMostDeep) throw SyntaxError{0, "arithmetic nests too deep"};
    const Value yes = assignment();
    if (!accept(":")) throw SyntaxError{0, "\":\" is missing in arithmetic"};
    const Value no = assignment();
    --depth_;
    if (!condition) return yes == no ? yes : Value();
    return *condition != 0 ? yes : no;
  }

  const Operator* next_operator() {
    skip();
    for (const Operator& op : kOperators) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with(op.text)) return &op;
    }
    return nullptr;
  }

  Value binary(int level) {
    Value left = unary();
    for (const Operator* op = next_operator(); op != nullptr && op->level >= level; op = next_operator()) {
      at_ += op->text.size();
      if (++depth_ > kMostDeep) throw SyntaxError{0, "arithmetic nests too deep"};
      const Value right = binary(op->text == "**" ? op->level : op->level + 1);
      --depth_;
      left = left && right ? Value(applied(op->text, *left, *right)) : Value();
    }
    return left;
  }

  Value unary() {
    if (++depth_ > kMostDeep) throw SyntaxError{0, "arithmetic nests too deep"};
    const Value value = unary_inside();
    --depth_;
    return value;
  }

  Value unary_inside() {
    if (accept("++") || accept("--")) {
      const bool up = text_[at_ - 1] == '+';
      const std::string target = name();
      if (target.empty()) return unary();
      at_ += target.size();
      const Value old = variable(target);
      const Value value = old ? Value(applied(up ? "+" : "-", *old, 1)) : Value();
      store(target, value);
      return value;
    }
    if (accept("!")) return negated(unary(), '!');
    if (accept("~")) return negated(unary(), '~');
    if (accept("-")) return negated(unary(), '-');
    if (accept("+")) return unary();
    return primary();
  }

  static Value negated(Value value, char how) {
    if (!value) return value;
    if (how == '!') return *value == 0 ? 1 : 0;
    return how == '~' ? ~*value : wrapped(0 - bits(*value));
  }

  Value primary() {
    skip();
    if (accept("(")) {
      const Value value = comma();
      if (!accept(")")) throw SyntaxError{0, "\")\" is missing in arithmetic"};
      return value;
    }
    if (at_ < text_.size() && text_[at_] == kHoleBegin) {
      at_ = std::min(text_.find(kHoleEnd, at_), text_.size() - 1) + 1;
      skip();
      return {};
    }
    const std::string target = name();
    if (!target.empty()) {
      at_ += target.size();
      const Value value = variable(target);
      if (accept("++") || accept("--")) {
        const bool up = text_[at_ - 1] == '+';
        store(target, value ? Value(applied(up ? "+" : "-", *value, 1)) : Value());
      }
      return value;
    }
    return number();
  }

  Value number() {
    std::size_t end = at_;
    while (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end])) != 0) ++end;
    std::string digits(text_.substr(at_, end - at_));
    if (digits.empty()) throw SyntaxError{0, "arithmetic \"" + with_dollars(text_) + "\" is not understood"};
    at_ = end;
    std::uint64_t base = 10;
    if (at_ < text_.size() && text_[at_] == '#') throw SyntaxError{0, "numbers with a base are not understood"};
    if (digits.size() > 1 && digits.front() == '0') {
      const bool hex = digits[1] == 'x' || digits[1] == 'X';
      base = hex ? 16 : 8;
      digits.erase(0, hex ? 2 : 1);
    }
    std::uint64_t value = 0;
    for (const char c : digits) {
      const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      const auto digit =
          static_cast<std::uint64_t>(is_digit ? c - '0' : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10);
      if (digit >= base) throw SyntaxError{0, "\"" + digits + "\" is no number"};
      value = value * base + digit;
    }
    skip();
    return wrapped(value);
  }

  std::string_view text_;
  const Names& names_;
  int depth_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate(std::string_view text, const Names& names, int depth) {
  return Evaluator(text, names, depth).whole();
}

}  // namespace trivium::planner::launch::shell
