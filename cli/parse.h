// From the words of the command line to a command that ran, and its errors to one line each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace trivium::cli {

/// Parses and runs; returns the exit code. Help and version go to stdout, every error is one line on stderr.
int parse_and_run(int argc, const char* const* argv);

/// `help plan`, and `plan help` where no file is called help, as `plan --help`.
std::vector<std::string> help_asked(std::vector<std::string> words);

/// `--sequence-parallel true` as `--sequence-parallel=true`: flags take a value only after an equals sign, people write
/// both. `words` are the arguments without the program's name.
std::vector<std::string> join_flag_values(std::vector<std::string> words);

/// What to say of a command line that does not parse: one line, with the nearest subcommand or option where the user
/// named one that does not exist.
std::string complaint(const CLI::App& app, const CLI::ParseError& error);

}  // namespace trivium::cli
