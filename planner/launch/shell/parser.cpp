// Recursive descent over bash's grammar (POSIX.1-2017, Shell Command Language, 2.10, with bash's [[, ((, arrays and
// function). Words stay as written; expansion reads them again.
#include <algorithm>
#include <array>
#include <cctype>

#include "planner/launch/shell/cursor.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr int kDeepestSyntax = 60;

class Parser : private Cursor {
 public:
  using Cursor::Cursor;

  NodePtr whole() {
    NodePtr all = list({});
    blank_lines();
    if (at_ < text_.size()) fail("\"" + std::string(1, text_[at_]) + "\" is not expected");
    return all;
  }

 private:
  bool ends_list(const std::vector<std::string_view>& until) {
    if (at_ >= text_.size() || peek() == ')' || starts(";;") || starts(";&")) return true;
    return std::ranges::find(until, next_word()) != until.end();
  }

  NodePtr list(const std::vector<std::string_view>& until) {
    if (++depth_ > kDeepestSyntax) fail("commands nest too deep");
    auto all = node(Kind::kSequence);
    for (blank_lines(); !ends_list(until); blank_lines()) {
      all->parts.push_back(and_or());
      blanks();
      if (starts(";;") || starts(";&")) break;
      if (peek() == ';' || peek() == '&') {
        ++at_;
      } else if (at_ < text_.size() && peek() != '\n' && peek() != ')') {
        fail("\"" + std::string(1, peek()) + "\" is not expected");
      }
    }
    --depth_;
    return all;
  }

  NodePtr and_or() {
    NodePtr left = pipeline();
    for (blanks(); starts("&&") || starts("||"); blanks()) {
      auto both = node(starts("&&") ? Kind::kAnd : Kind::kOr);
      at_ += 2;
      blank_lines();
      both->parts = {left, pipeline()};
      left = both;
    }
    return left;
  }

  NodePtr pipeline() {
    auto all = node(Kind::kPipeline);
    while (accept("!")) all->negated = !all->negated;
    if (next_word() == "time") accept("time");
    all->parts.push_back(command());
    for (blanks(); peek() == '|' && peek(1) != '|'; blanks()) {
      at_ += peek(1) == '&' ? 2 : 1;
      blank_lines();
      all->parts.push_back(command());
    }
    if (all->parts.size() == 1 && !all->negated) return all->parts.front();
    return all;
  }

  NodePtr command() {
    blanks();
    if (starts("((")) {
      if (NodePtr found = arithmetic()) return found;
    }
    std::shared_ptr<Node> made;
    if (peek() == '(') {
      ++at_;
      made = node(Kind::kSubshell);
      made->parts.push_back(list({}));
      close(')');
    } else {
      made = compound(next_word());
    }
    if (!made) return simple();
    while (redirection(made)) {
    }
    return made;
  }

  void close(char c) {
    blank_lines();
    if (peek() != c) fail("\"" + std::string(1, c) + "\" is missing");
    ++at_;
  }

  std::shared_ptr<Node> compound(std::string_view name) {
    if (name == "if") return conditional();
    if (name == "for" || name == "select") return loop_over(name);
    if (name == "while" || name == "until") {
      auto made = node(Kind::kWhile);
      made->negated = accept("until");
      if (!made->negated) accept("while");
      made->parts.push_back(list({"do"}));
      expect("do");
      made->parts.push_back(list({"done"}));
      expect("done");
      return made;
    }
    if (name == "case") return selection();
    if (name == "{") {
      accept("{");
      auto made = node(Kind::kGroup);
      made->parts.push_back(list({"}"}));
      expect("}");
      return made;
    }
    if (name == "[[") return condition();
    if (name == "function" || is_function()) return function();
    return nullptr;
  }

  std::shared_ptr<Node> conditional() {
    auto made = node(Kind::kIf);
    accept("if");
    for (bool more = true; more;) {
      made->parts.push_back(list({"then"}));
      expect("then");
      made->parts.push_back(list({"elif", "else", "fi"}));
      blank_lines();
      more = accept("elif");
    }
    if (accept("else")) made->parts.push_back(list({"fi"}));
    expect("fi");
    return made;
  }

  std::shared_ptr<Node> loop_over(std::string_view name) {
    auto made = node(Kind::kFor);
    accept(name);
    blanks();
    if (starts("((")) {
      made->kind = Kind::kArithmeticFor;
      const std::size_t end = end_of_double_bracket() - at_;
      if (end < 4) fail("for (( is never closed");
      const std::string inside(text_.substr(at_ + 2, end - 4));
      std::size_t from = 0;
      for (int i = 0; i < 3; ++i) {
        const std::size_t semicolon = i < 2 ? inside.find(';', from) : inside.size();
        if (semicolon == std::string::npos) fail("for (( )) needs two semicolons");
        made->words.push_back(inside.substr(from, semicolon - from));
        from = semicolon + 1;
      }
      at_ += end;
    } else {
      made->text = word();
      blank_lines();
      if (accept("in")) {
        made->has_items = true;
        for (blanks(); at_ < text_.size() && peek() != ';' && peek() != '\n'; blanks()) {
          std::string item = word();
          if (item.empty()) fail("the items of a loop are no words");
          made->words.push_back(std::move(item));
        }
      }
    }
    blanks();
    if (peek() == ';') ++at_;
    blank_lines();
    const bool braces = accept("{");
    if (!braces) expect("do");
    made->parts.push_back(list({braces ? "}" : "done"}));
    expect(braces ? "}" : "done");
    return made;
  }

  std::shared_ptr<Node> selection() {
    auto made = node(Kind::kCase);
    accept("case");
    made->text = word();
    expect("in");
    for (blank_lines(); !accept("esac"); blank_lines()) {
      if (at_ >= text_.size()) fail("\"esac\" is missing");
      CaseArm arm;
      if (peek() == '(') ++at_;
      for (bool more = true; more;) {
        arm.patterns.push_back(word());
        blanks();
        more = peek() == '|';
        if (more) ++at_;
      }
      if (peek() != ')') fail("\")\" is missing after a pattern");
      ++at_;
      arm.body = list({"esac"});
      blank_lines();
      for (const std::string_view end : {";;&", ";;", ";&"}) {
        if (!starts(end)) continue;
        arm.end = end;
        at_ += end.size();
        break;
      }
      made->arms.push_back(std::move(arm));
    }
    return made;
  }

  std::shared_ptr<Node> condition() {
    auto made = node(Kind::kCondition);
    accept("[[");
    while (!accept("]]")) {
      blanks();
      if (at_ >= text_.size()) fail("\"]]\" is missing");
      if (peek() == '\n') {
        newline();
        continue;
      }
      const bool pattern = !made->words.empty() && (made->words.back() == "=~");
      if (!pattern && (starts("&&") || starts("||"))) {
        made->words.emplace_back(text_.substr(at_, 2));
        at_ += 2;
      } else if (!pattern && std::string_view("()<>").find(peek()) != std::string_view::npos) {
        made->words.emplace_back(1, text_[at_++]);
      } else {
        made->words.push_back(pattern ? expression_word() : word());
        if (made->words.back().empty()) fail("[[ ]] is not understood");
      }
    }
    return made;
  }

  /// The right side of =~: brackets belong to it.
  std::string expression_word() {
    const std::size_t begin = at_;
    int open = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '(') ++open;
      if (c == ')') --open;
      if (c == '\n' || (open <= 0 && (c == ' ' || c == '\t'))) break;
      part();
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// Of `((…))`, which begins here; where it begins if it is none.
  std::size_t end_of_double_bracket() const {
    try {
      const std::size_t end = end_of_dollar(text_, at_ - 1);  // reads from the character after that position on
      return end - at_ >= 4 && text_[end - 2] == ')' ? end : at_;
    } catch (const SyntaxError&) {
      return at_;
    }
  }

  NodePtr arithmetic() {
    const std::size_t end = end_of_double_bracket() - at_;
    if (end < 4) return nullptr;
    auto made = node(Kind::kArithmetic);
    made->text = text_.substr(at_ + 2, end - 4);
    line_ += static_cast<int>(std::ranges::count(made->text, '\n'));
    at_ += end;
    return made;
  }

  bool is_function() {
    std::size_t end = at_;
    while (end < text_.size() && (is_name_part(text_[end]) || text_[end] == '-' || text_[end] == '.')) ++end;
    if (end == at_) return false;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
    if (end >= text_.size() || text_[end] != '(') return false;
    ++end;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
    return end < text_.size() && text_[end] == ')';
  }

  std::shared_ptr<Node> function() {
    auto made = node(Kind::kFunction);
    accept("function");
    made->text = word();
    blanks();
    if (peek() == '(') {
      ++at_;
      close(')');
    }
    blank_lines();
    if (++depth_ > kDeepestSyntax) fail("functions nest too deep");
    made->parts.push_back(command());
    --depth_;
    return made;
  }

  NodePtr simple() {
    auto made = node(Kind::kSimple);
    while (true) {
      blanks();
      if (at_ >= text_.size()) break;
      if (redirection(made)) continue;
      if (kMeta.find(peek()) != std::string_view::npos) break;
      const bool declares = !made->words.empty() && is_declaration(made->words.front());
      if ((made->words.empty() || declares) && assignment(*made, declares)) continue;
      made->words.push_back(word());
    }
    if (made->words.empty() && made->assigned.empty() && made->redirections.empty()) {
      fail(at_ < text_.size() ? "\"" + std::string(1, peek()) + "\" is not expected" : "a command is missing");
    }
    return made;
  }

  static bool is_declaration(std::string_view name) {
    constexpr std::array<std::string_view, 5> kNames{"export", "declare", "local", "readonly", "typeset"};
    return std::ranges::find(kNames, name) != kNames.end();
  }

  bool assignment(Node& made, bool) {
    std::size_t end = at_;
    if (end >= text_.size() || !is_name_start(text_[end])) return false;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    Assigned assigned;
    assigned.name = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '[') {
      const std::size_t close = text_.find(']', end);
      if (close == std::string_view::npos) return false;
      assigned.index = text_.substr(end + 1, close - end - 1);
      if (assigned.index.find('\n') != std::string::npos) return false;
      end = close + 1;
    }
    if (text_.substr(end).starts_with("+=")) {
      assigned.is_append = true;
      ++end;
    }
    if (end >= text_.size() || text_[end] != '=') return false;
    at_ = end + 1;
    if (peek() == '(') {
      assigned.is_array = true;
      ++at_;
      for (blank_lines(); peek() != ')'; blank_lines()) {
        if (at_ >= text_.size()) fail("the array " + assigned.name + " is never closed");
        std::string element = word();
        if (element.empty()) fail("the array " + assigned.name + " has \"" + std::string(1, peek()) + "\" in it");
        assigned.elements.push_back(std::move(element));
      }
      ++at_;
    } else if (at_ < text_.size() && (kMeta.find(peek()) == std::string_view::npos || peek() == '<') &&
               !starts("\\\n")) {
      assigned.value = word();
    }
    made.assigned.push_back(std::move(assigned));
    return true;
  }

  bool redirection(const std::shared_ptr<Node>& made) {
    blanks();
    std::size_t digits = at_;
    while (digits < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digits])) != 0) ++digits;
    const std::string_view rest = text_.substr(digits);
    constexpr std::array<std::string_view, 10> kRedirections{"<<<", "<<-", "<<", "&>>", "&>",
                                                             ">>",  ">&",  "<&", ">|",  "<>"};
    std::string operation;
    for (const std::string_view known : kRedirections) {
      if (rest.starts_with(known) && (known.front() != '&' || digits == at_)) {
        operation = known;
        break;
      }
    }
    if (operation.empty() && (rest.starts_with(">") || rest.starts_with("<")) && !rest.substr(1).starts_with("(")) {
      operation = rest.substr(0, 1);
    }
    if (operation.empty() || digits > at_ + 2) return false;
    Redirection made_one;
    if (digits > at_) made_one.descriptor = std::stoi(std::string(text_.substr(at_, digits - at_)));
    at_ = digits + operation.size();
    std::string target = word();
    if (target.empty()) fail("nothing follows " + operation);
    const bool is_document = operation == "<<" || operation == "<<-";
    if (is_document) {
      made_one.is_literal = target.find_first_of("'\"\\") != std::string::npos;
      std::erase_if(target, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
      documents_.push_back({made, made->redirections.size(), target, operation == "<<-"});
      operation = "<<";
    } else {
      made_one.target = std::move(target);
    }
    made_one.operation = std::move(operation);
    made->redirections.push_back(std::move(made_one));
    return true;
  }

  int depth_ = 0;
};

}  // namespace

NodePtr parse(std::string_view text, int first_line) { return Parser(text, first_line).whole(); }

}  // namespace trivium::planner::launch::shell
