// Functions of one number, the same on device and host but for the last bits.
#pragma once

#include <cmath>

#include "runtime/cuda/kernels/simt.h"

namespace trivium::runtime::cuda {

#if defined(__CUDA_ARCH__)
/// One instruction, where exp2f takes several for results below 2^-126: here those are 0.
TRIVIUM_DEVICE float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// As __expf, but for results below 2^-126, which are 0.
TRIVIUM_DEVICE float exp_of(float x) { return exp2_of(x * 1.4426950408889634F); }
TRIVIUM_DEVICE float log_of(float x) { return logf(x); }
TRIVIUM_DEVICE float root_of(float x) { return sqrtf(x); }
TRIVIUM_DEVICE float erf_of(float x) { return erff(x); }
/// 1 / x to a unit in the last place, for x between 2^-126 and 2^126, without the branches of an exact division.
TRIVIUM_DEVICE float inverse_of(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
TRIVIUM_DEVICE float exp_of(float x) { return std::exp(x); }
TRIVIUM_DEVICE float exp2_of(float x) { return std::exp2(x); }
TRIVIUM_DEVICE float log_of(float x) { return std::log(x); }
TRIVIUM_DEVICE float root_of(float x) { return std::sqrt(x); }
TRIVIUM_DEVICE float erf_of(float x) { return std::erf(x); }
TRIVIUM_DEVICE float inverse_of(float x) { return 1.0F / x; }
#endif

constexpr float kLowest = -3.402823466e+38F;

}  // namespace trivium::runtime::cuda
