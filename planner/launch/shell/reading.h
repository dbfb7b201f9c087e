// What a shell script would start, found by reading it: nothing is run and no file is written.
//
// The reader interprets the script as bash would, on variables that the script sets itself. What only a run can tell
// (variables of the environment, output of programs) stays in the text as a hole, "\x01name\x02", so that a number
// that depends on it is refused by name. Conditions over holes are decided by a stated assumption.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trivium::planner::launch::shell {

inline constexpr char kHoleBegin = '\x01';
inline constexpr char kHoleEnd = '\x02';

/// A command that starts processes of a training, as its final words.
struct Started {
  std::vector<std::string> words;   ///< "torchrun", "--nnodes", "4", …
  std::vector<std::string> prefix;  ///< what runs it: "srun", "--nodes", "4", …
  int line = 0;
};

/// What was taken for true without knowing.
struct Assumption {
  std::string file;  ///< empty: the script itself
  int line = 0;
  std::string text;
  bool operator==(const Assumption&) const = default;
};

struct Reading {
  std::vector<Started> started;
  std::map<std::string, std::string> variables;  ///< at the end; arrays joined by blanks
  std::map<std::string, int> variable_lines;     ///< where each was set last
  std::vector<std::string> documents;            ///< bodies of here-documents, in order
  std::map<std::string, std::string> files;      ///< that the script writes, by name
  std::vector<std::string> sourced;              ///< files that were read
  std::vector<Assumption> assumptions;
};

/// The content of a file that the script names, by the path as it stands there; nothing where there is none.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

struct Surroundings {
  ReadFile read_file;                        ///< empty: no file is read
  std::map<std::string, std::string> given;  ///< variables of the environment that are known
  std::vector<std::string> arguments;        ///< of the script
  bool has_arguments = false;                ///< whether `arguments` are known to be all
  std::string script;                        ///< its path, for $0
};

/// Errors: Failure(kInput) naming `where` and the line: grammar that is not bash's, or limits on loops and expansion.
Reading read(std::string_view text, const std::string& where, const Surroundings& surroundings);

/// Whether a hole is in the text, and the text with every hole as "$name".
bool has_hole(std::string_view text);
std::string with_dollars(std::string_view text);

}  // namespace trivium::planner::launch::shell
