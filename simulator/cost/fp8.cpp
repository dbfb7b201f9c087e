#include "simulator/cost/fp8.h"

#include <algorithm>

namespace trivium::simulator {

using program::Fp8;

hardware::Scaling scaling_of(Fp8 recipe) {
  switch (recipe) {
    case Fp8::kBlock:
      return hardware::Scaling::kBlock;
    case Fp8::kMxfp8:
      return hardware::Scaling::kMxfp8;
    case Fp8::kNvfp4:
      return hardware::Scaling::kNvfp4;
    default:
      return hardware::Scaling::kTensor;
  }
}

hardware::Arithmetic arithmetic_of(Fp8 recipe) {
  return recipe == Fp8::kNvfp4 ? hardware::Arithmetic::kFp4 : hardware::Arithmetic::kFp8;
}

bool has_fp8(const hardware::Device& device, Fp8 recipe) {
  if (device.kind == hardware::DeviceKind::kCpu) return recipe != Fp8::kNvfp4;
  return device.peak.contains(arithmetic_of(recipe)) && device.fp8.products.contains(scaling_of(recipe));
}

GemmRates fp8_rates(const hardware::Device& device, Fp8 recipe, program::DType result, double efficiency) {
  const hardware::ScaledProduct& product = device.fp8.products.at(scaling_of(recipe));
  GemmRates rates = gemm_rates(device, result, 1);
  rates.sustained = device.peak.at(arithmetic_of(recipe)) *
                    (device.compute_scale * device.gemm_efficiency * product.efficiency * efficiency);
  rates.operand_size = recipe == Fp8::kNvfp4 ? 0.5 : 1;
  rates.ramp = product.ramp;
  rates.tiles_alike = true;
  return rates;
}

// What a tensor's largest number takes is apart: a kernel that reads it all, before the cast can begin.
base::Seconds cast_time(const program::Op& op, const hardware::Device& device) {
  const hardware::Fp8Rates& rates = device.fp8;
  const double read = static_cast<double>(op.m) * static_cast<double>(op.n) * static_cast<double>(size_of(op.dtype));
  const bool looks_first = op.fp8 == Fp8::kCurrent;
  base::Seconds time = rates.cast_latency + base::Bytes(op.bytes - (looks_first ? read : 0)) /
                                                (device.memory_bandwidth * rates.cast_efficiency);
  if (looks_first) {
    time += rates.amax_latency + base::Bytes(read) / (device.memory_bandwidth * rates.amax_efficiency);
  }
  return time;
}

}  // namespace trivium::simulator
