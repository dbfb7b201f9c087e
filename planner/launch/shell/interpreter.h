// The interpreter behind read(): the state of a shell and what its commands do to it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/launch/shell/reading.h"
#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::shell {

/// Of a command: 0, another number, or kUnknown where only a run can tell.
using Status = int;
inline constexpr Status kUnknown = -1;

struct Variable {
  std::map<std::string, std::string> elements;  ///< an array's by index, zero-padded where a number; a scalar: ""
  bool is_array = false;
};

class Interpreter {
 public:
  Interpreter(std::string where, const Surroundings& surroundings);
  void run_text(const std::string& text, int first_line);
  Reading finish();

 private:
  enum class Leaving : std::uint8_t { kNot, kBreak, kContinue, kReturn, kExit };
  enum class Mode : std::uint8_t { kFields, kText, kPattern };
  struct Field {
    std::string text;
    bool quoted = false;
  };
  /// Words under construction.
  struct Fields {
    std::vector<Field> done;
    Field open;
    bool has_open = false;
    void close();
  };

  // interpreter.cpp: control flow.
  Status run(const Node& node);
  Status run_kind(const Node& node);
  Status run_both(const Node& node);
  Status run_pipeline(const Node& node);
  Status run_if(const Node& node);
  Status run_for(const Node& node);
  Status run_arithmetic_for(const Node& node);
  Status run_while(const Node& node);
  Status run_case(const Node& node);
  Status run_subshell(const Node& node);
  Status run_simple(const Node& node);
  Status run_words(std::vector<std::string> words, const Node& node);
  Status call(const NodePtr& function, const std::vector<std::string>& words);
  bool leaves_body();
  void count_step();
  void count_bytes(std::size_t bytes);
  [[noreturn]] void fail(const std::string& what) const;
  void assume(const std::string& what);
  static bool has_exit(const Node& node);
  void redirect(const Node& node, const std::string& output);
  Status with_output(const Node& node, const std::function<Status()>& action);

  // expansion.cpp: words.
  std::vector<std::string> expand_words(const std::vector<std::string>& words);
  std::string expand_text(std::string_view word);
  std::string expand_pattern(std::string_view word);
  std::string expand_document(std::string_view text);
  void walk(std::string_view word, bool quoted, Mode mode, Fields& out);
  void put(const std::string& text, bool quoted, Mode mode, Fields& out);
  std::size_t walk_dollar(std::string_view word, std::size_t at, bool quoted, Mode mode, Fields& out);
  void put_list(const std::vector<std::string>& values, bool quoted, bool separate, Mode mode, Fields& out);
  void walk_braced(std::string_view inside, bool quoted, Mode mode, Fields& out);
  std::string arithmetic_text(std::string_view inside);
  std::string substitute(const std::string& command);
  std::string modified(const std::string& name, std::string value, bool is_set, std::string_view how, bool quoted);
  std::string with_default(const std::string& name, const std::string& value, bool is_set, char kind, bool colon,
                           std::string_view word);
  static std::vector<std::string> braces(const std::string& word, int depth = 0);

  // variables.cpp: names.
  bool is_set(const std::string& name) const;
  std::string value_of(const std::string& name);
  std::vector<std::string> values_of(const std::string& name);
  std::vector<std::string> keys_of(const std::string& name);
  std::string hole_for(const std::string& name) const;
  static bool is_of_run(std::string_view name);
  void set(const std::string& name, const std::string& value);
  void assign(const Assigned& assigned);
  std::string index_of(const std::string& index, const Variable& variable);
  std::optional<std::int64_t> arithmetic(const std::string& text);

  // conditions.cpp
  Status test(const std::vector<std::string>& words);
  Status condition(const Node& node);
  struct Test;
  Status compare(const std::string& left, const std::string& op, const std::string& right, bool patterns);
  Status check(const std::string& op, const std::string& operand);
  /// Unset variables read as empty, with an assumption; nothing where a hole of a run is in it.
  std::optional<std::string> known(const std::string& text);

  // builtins.cpp
  bool run_builtin(const std::vector<std::string>& words, const Node& node, Status& status);
  bool run_control(const std::vector<std::string>& words, Status& status);
  bool run_text_tool(const std::vector<std::string>& words, Status& status);
  Status echo(const std::vector<std::string>& words);
  Status print_formatted(const std::vector<std::string>& words);
  Status expr(const std::vector<std::string>& words);
  Status read_variable(const std::vector<std::string>& words);
  Status source(const std::vector<std::string>& words);
  void set_options(const std::vector<std::string>& words);
  void emit(const std::string& text);

  // programs.cpp
  Status run_program(std::vector<std::string> words);
  bool run_wrapper(const std::vector<std::string>& words, Status& status);
  Status run_shell(const std::vector<std::string>& words);
  bool run_file(const std::string& path, const std::vector<std::string>& arguments, bool own_shell);
  std::optional<std::string> content_of(const std::string& path);
  void start(std::vector<std::string> words);

  std::string where_;
  const Surroundings& surroundings_;
  Reading reading_;
  std::map<std::string, Variable> variables_;
  std::map<std::string, NodePtr> functions_;
  std::vector<std::string> arguments_;
  bool knows_arguments_ = false;
  std::set<std::string> unset_, read_unset_;
  int substituting_ = 0;              ///< command substitutions at hand
  std::string* output_ = nullptr;     ///< of the command substitution or pipeline at hand
  std::optional<std::string> input_;  ///< of the command at hand
  std::vector<std::string> prefix_;   ///< of the program at hand
  std::string file_, script_;
  Leaving leaving_ = Leaving::kNot;
  int leaving_loops_ = 0;
  Status last_ = 0;
  int line_ = 0;
  int depth_ = 0;
  bool guessed_ = false;  ///< whether the last condition was decided by an assumption
  std::size_t steps_ = 0, bytes_ = 0;
};

}  // namespace trivium::planner::launch::shell
