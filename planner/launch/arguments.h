// Command-line arguments as launch scripts hold them: read from shell text, written back as shell text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/launch/shell/reading.h"

namespace trivium::planner::launch {

/// `--name value value`, the name without dashes and with '-' for '_'.
struct Argument {
  std::string name;
  std::vector<std::string> values;  ///< none: a switch
  int line = 0;                     ///< of a file of settings; 0: not known
  bool operator==(const Argument&) const = default;
};

/// What a launch script says.
struct Script {
  std::vector<Argument> arguments;           ///< of the training that it starts, in order
  std::vector<std::string> overrides;        ///< `name=value` without dashes
  std::vector<std::string> command, prefix;  ///< its words, and those of what runs it (srun, mpirun)
  int line = 0;                              ///< where it is started
  std::map<std::string, std::string> batch;  ///< of the header of a batch script: "nodes" -> "4"
  std::map<std::string, std::string> files;  ///< that the script writes
  std::vector<shell::Assumption> assumptions;
  std::map<std::string, std::string> variables;  ///< NAME=value
  std::vector<std::string> documents;            ///< bodies of here-documents
  bool assigns = false;                          ///< `name = value` instead of `--name value`
  bool is_dump = false;  ///< the table of arguments that Megatron logs: every setting there is, defaults too
};

/// Reads shell text as bash would run it (shell/reading.h): the arguments of the training that it starts; what only a
/// run can tell stays as `$NAME`. A log with Megatron's table of arguments is read as such. Errors: Failure(kInput)
/// naming the file `where` and the line, for what is no shell script and for limits on loops and expansion (`A=$A$A`).
Script read_script(std::string_view text, const std::string& where, const shell::Surroundings& around = {});

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
