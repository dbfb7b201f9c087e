// Configurations of Hugging Face, read by the file of their family.
#pragma once

#include <string>
#include <vector>

#include "models/family_files.h"
#include "models/hugging_face_parts.h"

namespace trivium::models {

struct FamilyModel {
  Model model;
  std::vector<std::string> ignored;  ///< keys that its family's file says change nothing
};

/// Precondition: the family lacks nothing. Keys that its file mentions are marked in `config`. Errors: Failure(kInput)
/// at keys that are missing, mistyped or refused, and at the file of the family where an expression of it is wrong.
FamilyModel read_by_family(const Family& family, const Config& config);

}  // namespace trivium::models
