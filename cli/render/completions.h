// Scripts that complete commands, options and their values in a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trivium::cli {

std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace trivium::cli
