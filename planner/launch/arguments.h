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
  bool is_dump = false;  ///< the table of arguments that Megatron logs: every setting there is, defaults too
};

/// Reads shell text: comments, quotes, continued lines, arrays, `NAME=value` and `$NAME`; arithmetic and what comes
/// from outside the file stay as they are, with their `$`. A log with Megatron's table of arguments is read as such.
/// Errors: Failure(kInput) naming the file `where`, for variables that grow without measure (`A=$A$A`).
Script read_script(std::string_view text, const std::string& where);

/// Arguments as continued lines of shell, indented by two blanks and broken near 110 characters.
std::string shell_lines(const std::vector<Argument>& arguments);

}  // namespace trivium::planner::launch
