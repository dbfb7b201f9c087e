// Command-line arguments as launch scripts hold them: read from shell text, written back as shell text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::planner::launch {

/// `--name value value`, the name without dashes and with '-' for '_'.
struct Argument {
  std::string name;
  std::vector<std::string> values;  ///< none: a switch
  bool operator==(const Argument&) const = default;
};

/// What a launch script says.
struct Script {
  std::vector<Argument> arguments;               ///< of all commands in it, in order
  std::map<std::string, std::string> variables;  ///< NAME=value
  std::vector<std::string> documents;            ///< bodies of here-documents
  bool assigns = false;                          ///< `name = value` instead of `--name value`
  bool is_dump = false;  ///< the table of arguments that Megatron logs: every setting there is, defaults too
};

/// Reads shell text: comments, quotes, continued lines, arrays, `NAME=value` and `$NAME`; arithmetic and what comes
/// from outside the file stay as they are, with their `$`. A log with Megatron's table of arguments is read as such.
/// Errors: Failure(kInput) naming the file `where`, for variables that grow without measure (`A=$A$A`).
Script read_script(std::string_view text, const std::string& where);

/// Reads `name = value` lines of TOML and Python: a section and what a Python object is a member of come before the
/// name (`parallelism.tensor_parallel_degree`, `cfg.model.num_layers`). Texts lose their quotes; lists and calls stay
/// as written, on one line. Indented lines are somebody's code and left out, as are comments. Errors: Failure(kInput)
/// naming the file `where`, for brackets that are never closed.
Script read_assignments(std::string_view text, const std::string& where);

/// `name=value` pairs inside the brackets of the first call of `function` in the text; empty where it is not called.
std::map<std::string, std::string> keywords_of(std::string_view text, std::string_view function);

/// Arguments as continued lines of shell, indented by two blanks and broken near 110 characters.
std::string shell_lines(const std::vector<Argument>& arguments);

}  // namespace trivium::planner::launch
