// Manual pages, made of what the program says of itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trivium::cli {

/// "trivium", "trivium-plan", "trivium-checkpoint-inspect".
std::string man_name(const CLI::App& command);

/// The page of a command, or of the program itself, for man(1). `date`: "2026-11-23".
std::string man_page(const CLI::App& command, const std::string& date);

}  // namespace trivium::cli
