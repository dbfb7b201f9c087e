// Settings of a launch that only the notes of a published run give.
#pragma once

#include <optional>
#include <vector>

#include "calibration/measurements/csv.h"
#include "program/plan/modules.h"

namespace trivium::calibration {

/// `recompute` of runs that recompute the whole mixture layer.
inline constexpr std::string_view kSelectiveMixture = "selective-moe";

/// The modules that selective recomputation drops, as notes name them ("modules:layernorm+moe_act", "recompute modules
/// mlp"). Empty without a note; nothing where the plan has no such module.
std::optional<std::vector<program::Module>> modules_of(const CsvTable::Row& row);

/// Dispatchers of tokens to experts: DeepEP, and any but the all-to-all.
bool notes_deepep(const CsvTable::Row& row);
bool notes_flex_dispatcher(const CsvTable::Row& row);

/// Whether exchanges with the experts overlap with another micro-batch's pass.
bool notes_paired_passes(const CsvTable::Row& row);

/// Modules of multi-token prediction that the run trains ("MTP 1 layer"); 0 without a note.
std::int64_t noted_mtp(const CsvTable::Row& row);

/// Layers of every chunk by Megatron's pipeline layout (core/transformer/pipeline_parallel_layer_layout.py), in the
/// notes after the word "layout": E embedding, t a layer, m a module of multi-token prediction, L the loss, | the end
/// of a chunk; x*n repeats a letter or a group in parentheses. Empty without a note, or for a layout that is none.
std::vector<int> noted_layout(const CsvTable::Row& row);

}  // namespace trivium::calibration
