#include "models/family_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/quote.h"

namespace trivium::models {
namespace {

using Json = nlohmann::json;

enum class Sort { kNumber, kText, kName, kSign, kEnd };

struct Token {
  Sort sort = Sort::kEnd;
  std::string text;
};

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Signs of two characters, before those of one.
std::string sign_at(const std::string& text, std::size_t at) {
  static const std::array<std::string, 6> kPairs = {"??", "==", "!=", "<=", ">=", "//"};
  const std::string two = text.substr(at, 2);
  return std::ranges::find(kPairs, two) != kPairs.end() ? two : text.substr(at, 1);
}

std::vector<Token> tokens_of(const std::string& text, const base::JsonReader& where) {
  std::vector<Token> tokens;
  const auto take_while = [&](std::size_t from, const auto& holds) {
    std::size_t end = from;
    while (end < text.size() && holds(text[end])) ++end;
    return end;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t end = at + 1;
    if (c == ' ') {
      at = end;
      continue;
    }
    Sort sort = Sort::kSign;
    if (begins_name(c)) {
      sort = Sort::kName;
      end = take_while(at, [](char one) { return begins_name(one) || is_digit(one); });
    } else if (is_digit(c)) {
      sort = Sort::kNumber;
      end = take_while(at, [](char one) { return is_digit(one) || one == '.' || one == 'e'; });
    } else if (c == '\'') {
      const std::size_t closing = text.find('\'', at + 1);
      if (closing == std::string::npos) where.fail("has a text without its closing '");
      tokens.push_back({Sort::kText, text.substr(at + 1, closing - at - 1)});
      at = closing + 1;
      continue;
    } else {
      end = at + sign_at(text, at).size();
    }
    tokens.push_back({sort, text.substr(at, end - at)});
    at = end;
  }
  tokens.push_back({});
  return tokens;
}

bool holds(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

/// Evaluates while it parses. What a condition leaves out is parsed with `live_` false: names are noted, not looked up.
class Interpreter {
 public:
  Interpreter(const std::string& text, const Lookup& lookup, const base::JsonReader& where)
      : tokens_(tokens_of(text, where)), lookup_(lookup), where_(where) {}

  Json value() {
    Json result = choice();
    if (token().sort != Sort::kEnd) fail("an operator");
    return result;
  }
  Json names_only() {
    live_ = false;
    return value();
  }
  const std::set<std::string>& names() const { return names_; }

 private:
  const Token& token() const { return tokens_[at_]; }
  bool is(const char* text) const {
    return (token().sort == Sort::kSign || token().sort == Sort::kName) && token().text == text;
  }
  bool skip(const char* text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void demand(const char* text) {
    if (!skip(text)) fail(text);
  }
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found = token().sort == Sort::kEnd ? "its end" : base::quote(token().text);
    where_.fail(fmt::format("is no expression: {} where {} should stand", found, expected));
  }

  /// Parses by `part`, and evaluates it only where `wanted`.
  template <class Part>
  Json only_if(bool wanted, const Part& part) {
    const bool before = live_;
    live_ = live_ && wanted;
    Json result = part();
    live_ = before;
    return result;
  }

  Json choice() {
    if (!skip("if")) return either();
    const bool chosen = holds(either());
    demand("then");
    Json first = only_if(chosen, [&] { return choice(); });
    demand("else");
    Json second = only_if(!chosen, [&] { return choice(); });
    return chosen ? first : second;
  }

  Json either() {
    Json left = both();
    while (skip("or")) {
      const bool known = holds(left);
      const Json right = only_if(!known, [&] { return both(); });
      left = known || holds(right);
    }
    return left;
  }

  Json both() {
    Json left = negation();
    while (skip("and")) {
      const bool open = holds(left);
      const Json right = only_if(open, [&] { return negation(); });
      left = open && holds(right);
    }
    return left;
  }

  Json negation() {
    if (skip("not")) return !holds(negation());
    return comparison();
  }

  Json comparison() {
    const Json left = fallback();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
      if (skip(sign)) return compared(left, sign, fallback());
    }
    return left;
  }

  Json compared(const Json& left, const std::string& sign, const Json& right) const {
    if (!live_) return nullptr;
    if (sign == "==") return left == right;
    if (sign == "!=") return left != right;
    if (sign == "in") return std::ranges::find(right, left) != right.end();
    if (left.is_null() || right.is_null()) return false;
    if (sign == "<=") return left <= right;
    if (sign == ">=") return left >= right;
    return sign == "<" ? left < right : left > right;
  }

  Json fallback() {
    Json left = sum();
    while (skip("??")) {
      const bool missing = left.is_null();
      Json right = only_if(missing, [&] { return sum(); });
      if (missing) left = std::move(right);
    }
    return left;
  }

  Json sum() {
    Json left = product();
    while (is("+") || is("-")) {
      const std::string sign = tokens_[at_++].text;
      left = computed(left, sign, product());
    }
    return left;
  }

  Json product() {
    Json left = unary();
    while (is("*") || is("/") || is("//") || is("%")) {
      const std::string sign = tokens_[at_++].text;
      left = computed(left, sign, unary());
    }
    return left;
  }

  Json unary() {
    if (skip("-")) return computed(0, "-", unary());
    Json value = primary();
    while (is(".") || is("[")) {
      if (skip(".")) {
        const std::string member = tokens_[at_++].text;
        value = live_ && value.is_object() && value.contains(member) ? value[member] : Json();
      } else {
        demand("[");
        const Json index = choice();
        demand("]");
        const bool there = live_ && value.is_array() && index.is_number_integer() && index >= 0 && index < value.size();
        value = there ? value[index.get<std::size_t>()] : Json();
      }
    }
    return value;
  }

  Json computed(const Json& left, const std::string& sign, const Json& right) const {
    if (!live_ || left.is_null() || right.is_null()) return nullptr;
    if (!left.is_number() || !right.is_number()) {
      where_.fail(fmt::format("computes with {} and {}, which are not both numbers", left.dump(), right.dump()));
    }
    if (left.is_number_integer() && right.is_number_integer() && sign != "/") {
      return whole(left.get<std::int64_t>(), sign, right.get<std::int64_t>());
    }
    const double a = left.get<double>(), b = right.get<double>();
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (b == 0) where_.fail("divides by 0");
    if (sign == "/") return a / b;
    return sign == "//" ? std::floor(a / b) : a - std::floor(a / b) * b;
  }

  Json whole(std::int64_t a, const std::string& sign, std::int64_t b) const {
    std::int64_t result = 0;
    bool beyond = false;
    if (sign == "+") {
      beyond = __builtin_add_overflow(a, b, &result);
    } else if (sign == "-") {
      beyond = __builtin_sub_overflow(a, b, &result);
    } else if (sign == "*") {
      beyond = __builtin_mul_overflow(a, b, &result);
    } else {
      if (b <= 0) where_.fail("divides by a number that is not above 0");
      result = sign == "//" ? a / b : a % b;
    }
    if (beyond) where_.fail("leaves 64 bits");
    return result;
  }

  Json primary() {
    if (token().sort == Sort::kEnd) fail("a value");
    const Token taken = tokens_[at_++];
    if (taken.sort == Sort::kText) return taken.text;
    if (taken.sort == Sort::kNumber) return number(taken.text);
    if (taken.sort == Sort::kName) return named(taken.text);
    if (taken.text == "(") {
      Json value = choice();
      demand(")");
      return value;
    }
    if (taken.text == "[") return list("]");
    --at_;
    fail("a value");
  }

  Json number(const std::string& text) const {
    const Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) where_.fail(fmt::format("has a number that is none: {}", base::quote(text)));
    return value;
  }

  /// Values up to the closing sign.
  Json list(const char* closing) {
    Json values = Json::array();
    while (!skip(closing)) {
      if (!values.empty()) demand(",");
      values.push_back(choice());
    }
    return values;
  }

  Json named(const std::string& name) {
    if (name == "true" || name == "false") return name == "true";
    if (name == "null") return nullptr;
    if (skip("(")) return name == "each" ? each() : called(name, list(")"));
    if (name == "layer") return layer_;
    names_.insert(name);
    return live_ ? lookup_(name) : Json();
  }

  /// each(N, VALUE): the value for every `layer` below N.
  Json each() {
    const Json count = choice();
    demand(",");
    const std::size_t start = at_;
    Json values = Json::array();
    only_if(false, [&] { return choice(); });
    const std::size_t end = at_;
    constexpr std::int64_t kMost = 10'000;
    const std::int64_t most = live_ && count.is_number_integer() ? std::min(count.get<std::int64_t>(), kMost) : 0;
    for (std::int64_t one = 0; one < most; ++one) {
      at_ = start, layer_ = one;
      values.push_back(choice());
    }
    at_ = end, layer_ = nullptr;
    demand(")");
    return values;
  }

  Json called(const std::string& name, const Json& given) {
    if (!live_) return nullptr;
    const std::size_t arguments = given.size();
    const auto first = arguments > 0 ? given[0] : Json();
    if (name == "len" && arguments == 1) return first.size();
    if (name == "is_list" && arguments == 1) return first.is_array();
    if (name == "count" && arguments == 2) return std::count(first.begin(), first.end(), given[1]);
    if (std::ranges::any_of(given, [](const Json& one) { return one.is_null(); })) return nullptr;
    if (!std::ranges::all_of(given, [](const Json& one) { return one.is_number(); })) {
      where_.fail(fmt::format("calls {} with something that is no number", base::quote(name)));
    }
    if (name == "sqrt" && arguments == 1) return std::sqrt(first.get<double>());
    if (name == "floor" && arguments == 1) return static_cast<std::int64_t>(std::floor(first.get<double>()));
    if (name == "ceil" && arguments == 1) return static_cast<std::int64_t>(std::ceil(first.get<double>()));
    if (name == "min" && arguments > 0) return *std::ranges::min_element(given);
    if (name == "max" && arguments > 0) return *std::ranges::max_element(given);
    where_.fail(fmt::format("calls {} with {} values, which is no function", base::quote(name), arguments));
  }

  std::vector<Token> tokens_;
  const Lookup& lookup_;
  const base::JsonReader& where_;
  std::size_t at_ = 0;
  bool live_ = true;
  Json layer_;
  std::set<std::string> names_;
};

}  // namespace

Json evaluate(const std::string& expression, const Lookup& lookup, const base::JsonReader& where) {
  return Interpreter(expression, lookup, where).value();
}

std::set<std::string> names_of(const std::string& expression, const base::JsonReader& where) {
  const Lookup nothing = [](const std::string&) { return Json(); };
  Interpreter interpreter(expression, nothing, where);
  interpreter.names_only();
  return interpreter.names();
}

}  // namespace trivium::models
