// What adapters of frozen weights (Training::lora) mean for a job as a whole.
#pragma once

#include <optional>

#include "program/lower/lower.h"

namespace trivium::program {

/// Why a job's adapters cannot be lowered, with what to change.
std::optional<Infeasible> check_adapters(const Job& job);

/// Numbers of all adapters, those of every expert included; 0 without LoRA.
std::int64_t count_adapters(const Job& job);

/// Floating-point operations of a token. Frozen matrices have no gradient: of the three products that a trained one
/// takes (6 for each parameter and token) two are left (4); attention's core and the adapters count in full. The head's
/// matrix counts as the layers' do. Of packed documents attention's core counts the squares of their lengths.
models::FlopsPerToken flops_per_token(const Job& job);

}  // namespace trivium::program
