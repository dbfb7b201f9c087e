// Parameters that are kept and gathered in 8 bits alone (fp8 primary weights): which, and what a plan can have.
#pragma once

#include <optional>

#include "program/ir/program.h"
#include "program/lower/lower.h"

namespace trivium::program {

/// One of the layers' matrices whose products are in 8 bits.
bool is_cast(const Parameter& p);

/// Numbers of those in the bucket.
std::int64_t cast_numbers(const ChunkTemplate& kind, const Bucket& bucket);

/// Whether matrices are kept in 8 bits alone, as Transformer Engine's primary weights are.
bool keeps_parameters_in_8_bits(const Plan& plan, const StackTraits& stack);
/// Whether they also travel so. MXFP8's are gathered in 16 bits: each way of summing has scales of its own.
bool gathers_in_8_bits(const Plan& plan, const StackTraits& stack);

/// Why a plan cannot keep and gather them in 8 bits, where it says that it does.
std::optional<Infeasible> check_parameter_gather(const Job& job);

}  // namespace trivium::program
