// Lengths of documents as a file has them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include "program/plan/training.h"

namespace trivium::program {

/// Documents by how many have which length (tokens), at least one: the count is the weight of its length. Of more than
/// 1,024 different lengths neighbours become their mean, each time as many to a group. Where a weight exceeds 2^24, all
/// are scaled so that the largest is 2^24, and none is below 1.
Documents documents_of(const std::map<std::int64_t, std::int64_t>& counted);

/// documents_of() lengths in tokens between white space, or in a JSON array.
/// Errors: Failure(kInput) where the file cannot be read, has no length or something else than lengths.
Documents read_document_lengths(const std::filesystem::path& path);

}  // namespace trivium::program
