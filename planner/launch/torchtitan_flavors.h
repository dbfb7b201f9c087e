// torchtitan's own models and configurations, as tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/launch/arguments.h"

namespace trivium::planner::launch {

/// The shipped model that a flavor is, "llama3/8B" -> "llama3.1-8b"; empty for one that no shipped model is. Kinds of
/// attention ("_flex", "_varlen") do not change a shape.
std::string_view shipped_flavor(std::string_view flavor);

/// The call that makes a flavor, in the arguments of v0.2.2; empty for one that is not known.
std::string_view call_of_flavor(std::string_view flavor);

/// A function of config_registry.py, as v0.2.2's settings (`training.seq_len`); nothing for a name that is not known.
/// Those of the command line (`--training.steps 10`), in either version's names, come after them and win.
std::optional<Script> registered_config(const std::string& name, const Script& command);

/// Settings of the command line as those of a file: dotted names, with underscores.
void take_overrides(const Script& command, Script& settings);

}  // namespace trivium::planner::launch
