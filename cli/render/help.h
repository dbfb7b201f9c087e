// Help of the program and its commands: what most people need on one screen, all of it with --help-all.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace trivium::cli {

/// Options by group in the order of help, without those of help itself; positional ones in a group without a name.
std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> options_by_group(const CLI::App& command);

/// "-o, --output", "--model", "PLAN".
std::string names_of(const CLI::Option& option);

/// "Plan file" and its default: "… [op]".
std::string description_of(const CLI::Option& option);

/// The words after "trivium": "plan", "checkpoint inspect"; empty for the program.
std::string command_line_of(const CLI::App& command);

/// Commands of it that help lists.
std::vector<const CLI::App*> listed_commands(const CLI::App& app);

/// "trivium plan [PLAN] [OPTIONS]".
std::string usage_of(const CLI::App& command);

/// What --help prints, or with `whole` --help-all.
std::string help_text(const CLI::App& command, bool whole);

/// Makes --help and --help-all of the program and all commands print that. After all commands are added.
void settle_help(CLI::App& app);

}  // namespace trivium::cli
