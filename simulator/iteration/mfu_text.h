// Which peak utilisations are shares of, where it is not obvious.
#pragma once

#include <string>

#include "program/plan/plan.h"

namespace trivium::simulator {

/// " of the bf16 peak" for a plan that multiplies in 8 or 4 bits: its MFU and HFU are shares of the peak of the
/// precision that everything else has, as published figures are, and may exceed 100 %. Empty for other plans.
std::string mfu_peak_text(const program::Plan& plan);

/// "83.8 % of the bf16 peak", or "55.3 %".
std::string mfu_text(double mfu, const program::Plan& plan);

/// Title of a column of such shares: "MFU", or "MFU of bf16 peak". `name`: MFU or HFU.
std::string mfu_title(const char* name, const program::Plan& plan);

}  // namespace trivium::simulator
