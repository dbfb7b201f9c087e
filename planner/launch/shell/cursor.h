// A place in the text of a script: characters, blanks, words, here-documents.
#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/launch/shell/reading.h"
#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::shell {

inline constexpr std::string_view kMeta = " \t\r\n;&|<>()";  ///< characters that end a word

class Cursor {
 public:
  Cursor(std::string_view text, int line) : text_(text), line_(line) {}

 protected:
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
      if (c == '<' && bracketed_name()) continue;
      if (kMeta.find(c) != std::string_view::npos) break;
      part();
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  /// `<Specify path>` where a value belongs: of templates, which bash itself refuses.
  bool bracketed_name() {
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

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  std::vector<Document> documents_;
};

}  // namespace trivium::planner::launch::shell
