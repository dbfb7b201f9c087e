// Lengths of documents as a file has them.
#pragma once

#include <filesystem>

#include "program/plan/training.h"

namespace trivium::program {

/// Lengths in tokens, between white space, or a JSON array of them, counted: equal ones become one length with its
/// weight; of more than 1,024 different ones neighbours become their mean, each time as many to a group.
/// Errors: Failure(kInput) where the file cannot be read, has no length or something else than lengths.
Documents read_document_lengths(const std::filesystem::path& path);

}  // namespace trivium::program
