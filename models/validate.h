// What every way of reading a model asks of the result.
#pragma once

#include "base/json_reader.h"
#include "models/model.h"

namespace trivium::models {

/// Largest accepted value of each dimension: beyond every published model, and products of a few still fit in doubles.
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostWidth = 16'777'216;  // hidden, ffn_hidden
constexpr std::int64_t kMostHeads = 65'536;      // heads, head_dim
constexpr std::int64_t kMostVocab = 67'108'864;
constexpr std::int64_t kMostPositions = 134'217'728;
constexpr std::int64_t kMostExperts = 1'048'576;
constexpr std::int64_t kMostModules = 64;  // of multi-token prediction

/// Completes `model` with its defaults (kv_heads, head_dim, ffn_hidden where zero) and checks the invariant of Model.
/// Errors: Failure(kInput) at `reader`, the document the model came from.
void complete_and_validate(Model& model, const base::JsonReader& reader);

}  // namespace trivium::models
