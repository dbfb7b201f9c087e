// The model of a line of a table of published runs.
#pragma once

#include <optional>
#include <string>

#include "calibration/measurements/csv.h"
#include "models/model.h"

namespace trivium::calibration {

/// The model that the columns name. Columns of tables before 2024 (layers, hidden, heads, vocab) mean a GPT-2 block;
/// `gated_mlp` yes a Llama block (RMS norms, rotary positions, no biases, untied); `model` names the families that are
/// neither. Columns that a table lacks are as if they were empty. Precondition: why_no_model() is empty. Errors:
/// Failure(kInput) for malformed numbers.
models::Model published_model(const CsvTable::Row& row);

/// Why the shape cannot be told from the row, or cannot be said by a Model: columns that it leaves empty, layers that
/// are not alike, attention that is not multi-head.
std::optional<std::string> why_no_model(const CsvTable::Row& row);

}  // namespace trivium::calibration
