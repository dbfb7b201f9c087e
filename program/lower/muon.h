// Muon: which parameters it steps, and with what a plan can train by it.
#pragma once

#include <optional>

#include "program/ir/program.h"
#include "program/lower/lower.h"

namespace trivium::program {

/// Whether the training's optimizer orthogonalises the parameter's momentum: a matrix of a layer. Embeddings, the
/// output matrix, norms and biases are stepped by AdamW.
bool is_orthogonalised(const Training& training, const Parameter& p);

/// What a job with Muon cannot have yet, by name.
std::optional<Infeasible> check_muon(const Job& job);

}  // namespace trivium::program
