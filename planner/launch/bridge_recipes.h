// Megatron-Bridge's recipes by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/launch/arguments.h"

namespace trivium::planner::launch {

/// A recipe that a file calls: what it and the call's keywords set, as assignments to `cfg`, and the shipped model.
struct CalledRecipe {
  std::string name;
  std::string_view model;
  Script settings;
};

/// Whether the text calls a function of Megatron-Bridge's recipes, or names one after `--recipe`.
bool calls_recipe(std::string_view text);

/// The first known recipe that Python calls, `llama3_70b_pretrain_config(tensor_model_parallel_size=4)`; nothing where
/// the text calls none. A keyword that no member is known for stays as `recipe.NAME`.
std::optional<CalledRecipe> called_recipe(std::string_view text);

/// The recipe of a command, `--recipe llama3_70b_pretrain_config model.tensor_model_parallel_size=8`.
std::optional<CalledRecipe> recipe_of_command(const Script& command);

}  // namespace trivium::planner::launch
