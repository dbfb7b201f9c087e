// What help and manual pages say of a command in addition to its options: how it is meant, the options most people
// need, and examples that work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trivium::cli {

struct Example {
  std::string command;  ///< as it is typed
  std::string does;
};

struct Manual {
  std::string command;             ///< "plan", "checkpoint inspect"; empty: the program itself
  std::string about;               ///< a paragraph
  std::vector<std::string> usual;  ///< options of the short help, "--model"; empty: all of them
  std::vector<Example> examples;   ///< run in this order they work in a folder that holds text.txt alone
};

/// The program's own first, then commands in the order of help, which is an order in which their examples work.
const std::vector<Manual>& manuals();

/// Null where nothing is said of the command.
const Manual* find_manual(std::string_view command);

}  // namespace trivium::cli
