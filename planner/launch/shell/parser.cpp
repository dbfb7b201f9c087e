// Recursive descent over bash's grammar (POSIX.1-2017, Shell Command Language, 2.10, with bash's [[, ((, arrays and
// function). Words stay as written; expansion reads them again.
#include <algorithm>
#include <array>
#include <cctype>

#include "planner/launch/shell/reading.h"
#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr int kDeepestSyntax = 60;
constexpr std::string_view kMeta = " \t\r\n;&|<>()";

class Parser {
 public:
  Parser(std::string_view text, int line) : text_(text), line_(line) {}

  NodePtr whole() {
    NodePtr all = list({});
    blank_lines();
    if (at_ < text_.size()) fail("\"" + std::string(1, text_[at_]) + "\" is not expected");
    return all;
  }

 private:
  struct Document {
    std::shared_ptr<Node> owner;
    std::size_t index;
    std::string until;
    bool strips;
  };

  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError{line_, what}; }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts(std::string_view part) const { return text_.substr(at_).starts_with(part); }

  /// Blanks, continued lines and a comment, up to the end of the line.
  void blanks() {
    while (at_ < text_.size()) {
      if (starts("\\\n") || starts("\\\r\n")) {
        at_ += starts("\\\n") ? 2 : 3;
        ++line_;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r') {
        ++at_;
      } else if (peek() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  void newline() {
    ++at_;
    ++line_;
    std::vector<Document> pending;
    pending.swap(documents_);
    for (const Document& document : pending) read_document(document);
  }

  void blank_lines() {
    for (blanks(); peek() == '\n'; blanks()) newline();
  }

  void read_document(const Document& document) {
    std::string body;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view row = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      if (row.ends_with('\r')) row.remove_suffix(1);
      if (document.strips) row.remove_prefix(std::min(row.find_first_not_of('\t'), row.size()));
      if (row == document.until) break;
      body += std::string(row) + "\n";
    }
    document.owner->redirections[document.index].target = std::move(body);
  }

  /// A word as written; empty where none begins here.
  std::string word() {
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if ((c == '<' || c == '>') && peek(1) == '(') {  // process substitution
        at_ = checked([&] { return end_of_dollar(text_, at_); });
        continue;
      }
      if (c == '<' && placeholder()) continue;
      if (kMeta.find(c) != std::string_view::npos) break;
      part();
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// `<Specify path>` where a value belongs: of templates, which bash itself refuses.
  bool placeholder() {
    if (at_ == 0 || (text_[at_ - 1] != '=' && text_[at_ - 1] != '/' && text_[at_ - 1] != '-')) return false;
    const std::size_t end = text_.find_first_of(">\n;&|$'\"", at_ + 1);
    if (end == std::string_view::npos || text_[end] != '>' || end == at_ + 1) return false;
    at_ = end + 1;
    return true;
  }

  template <typename Find>
  std::size_t checked(Find find) const {
    try {
      return find();
    } catch (SyntaxError& error) {
      error.line = line_;
      throw;
    }
  }

  /// One character or one quoted part of a word.
  void part() {
    const std::size_t begin = at_;
    at_ = checked([&]() -> std::size_t {
      switch (text_[at_]) {
        case '\\':
          return std::min(at_ + 2, text_.size());
        case '\'':
          return end_of_single(text_, at_);
        case '"':
          return end_of_double(text_, at_);
        case '`':
          return end_of_backticks(text_, at_);
        case '$':
          return end_of_dollar(text_, at_);
        case kHoleBegin:
          return std::min(text_.find(kHoleEnd, at_), text_.size() - 1) + 1;
        default:
          return at_ + 1;
      }
    });
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  }

  /// The word that begins here, without reading it: reserved words are plain.
  std::string_view next_word() {
    blanks();
    std::size_t end = at_;
    while (end < text_.size() && kMeta.find(text_[end]) == std::string_view::npos) ++end;
    return text_.substr(at_, end - at_);
  }

  bool accept(std::string_view reserved) {
    if (next_word() != reserved) return false;
    at_ += reserved.size();
    return true;
  }

  void expect(std::string_view reserved) {
    blank_lines();
    if (!accept(reserved)) fail("\"" + std::string(reserved) + "\" is missing");
  }

  std::shared_ptr<Node> node(Kind kind) const {
    auto made = std::make_shared<Node>();
    made->kind = kind;
    made->line = line_;
    return made;
  }

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
    } else if (at_ < text_.size() && (kMeta.find(peek()) == std::string_view::npos || peek() == '<') && !starts("\\\n")) {
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
    constexpr std::array<std::string_view, 10> kRedirections{"<<<", "<<-", "<<", "&>>", "&>", ">>", ">&", "<&", ">|", "<>"};
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

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  int depth_ = 0;
  std::vector<Document> documents_;
};

}  // namespace

NodePtr parse(std::string_view text, int first_line) { return Parser(text, first_line).whole(); }

}  // namespace trivium::planner::launch::shell
