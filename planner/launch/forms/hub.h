// Models by the names that Hugging Face's hub gives them.
#pragma once

#include <optional>
#include <string>

#include "planner/launch/import_parts.h"

namespace trivium::planner::launch::forms {

/// The shipped model of a repository: "meta-llama/Llama-3.1-8B-Instruct" is llama3.1-8b, whoever has a copy of it.
/// Nothing where no shipped model has its shape.
std::optional<models::Model> model_of_hub(const std::string& repository);

/// The request's model, else the one that the setting names: `config.json` in a folder of that name next to the file,
/// else by its name on the hub. Errors: Failure(kInput) naming the setting's line, for a name that is neither.
models::Model named_model(Settings& settings, const Argument& name, const ImportRequest& request);

}  // namespace trivium::planner::launch::forms
