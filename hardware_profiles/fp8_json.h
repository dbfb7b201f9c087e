// The member `fp8` of a device profile: what products in 8 bits and the casts before them reach.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/sourced_reader.h"
#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

Fp8Rates read_fp8(const base::SourcedReader& from);
nlohmann::json fp8_to_json(const Fp8Rates& rates);

}  // namespace trivium::hardware
