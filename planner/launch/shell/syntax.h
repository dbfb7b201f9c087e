// The syntax tree of a shell script: the part of bash's grammar that launch scripts use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::planner::launch::shell {

enum class Kind : std::uint8_t {
  kSimple,         ///< assigned, words, redirections
  kPipeline,       ///< parts; negated
  kAnd,            ///< two parts
  kOr,             ///< two parts
  kSequence,       ///< parts
  kGroup,          ///< one part in braces
  kSubshell,       ///< one part in brackets
  kIf,             ///< condition, body, condition, body, …; an odd last part is the else
  kFor,            ///< text: the variable; words: the items, if `has_items`; one part
  kArithmeticFor,  ///< words: start, condition, step; one part
  kWhile,          ///< condition, body; `negated` for until
  kCase,           ///< text: the word; arms
  kFunction,       ///< text: the name; one part
  kCondition,      ///< [[ words ]]
  kArithmetic,     ///< (( text ))
};

struct Redirection {
  std::string operation;    ///< ">", ">>", "<", "<<", "<<<", "&>", ">&", …
  std::string target;       ///< a word as written; of "<<" the body of the here-document
  bool is_literal = false;  ///< of "<<": its delimiter was quoted, so nothing in it is expanded
  int descriptor = -1;      ///< as written before the operator; -1: none
};

/// `name=value`, `name+=value`, `name[index]=value`, `name=(elements)`; words as written, quotes and all.
struct Assigned {
  std::string name, index, value;
  bool is_append = false;
  bool is_array = false;
  std::vector<std::string> elements;
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct CaseArm {
  std::vector<std::string> patterns;
  NodePtr body;
  std::string end;  ///< ";;", ";&" or ";;&"
};

struct Node {
  Kind kind = Kind::kSimple;
  int line = 0;
  std::vector<Assigned> assigned;
  std::vector<std::string> words;
  std::vector<Redirection> redirections;
  std::vector<NodePtr> parts;
  std::vector<CaseArm> arms;
  std::string text;
  bool negated = false;
  bool has_items = false;
};

/// What is wrong with a script, and where: for errors and for assumptions.
struct SyntaxError {
  int line = 0;
  std::string what;
};

/// The tree of a whole script. Throws SyntaxError.
NodePtr parse(std::string_view text, int first_line = 1);

/// Ends of quoted parts, one past the closing character. Precondition: text[at] opens one. Throw SyntaxError (line 0)
/// where it is never closed.
std::size_t end_of_single(std::string_view text, std::size_t at);
std::size_t end_of_double(std::string_view text, std::size_t at);
std::size_t end_of_backticks(std::string_view text, std::size_t at);
/// `$NAME`, `${…}`, `$(…)`, `$((…))`, `$'…'`, `$1`, `$@`; at + 1 where the dollar is only itself.
std::size_t end_of_dollar(std::string_view text, std::size_t at);

bool is_name_start(char c);
bool is_name_part(char c);

}  // namespace trivium::planner::launch::shell
