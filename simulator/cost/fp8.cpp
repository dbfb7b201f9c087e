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

bool reads_codes_back(const hardware::Device& device, Fp8 recipe, const program::StackTraits& stack) {
  const bool blocks = recipe == Fp8::kBlock || recipe == Fp8::kMxfp8;
  return blocks && stack.reads_codes_back && device.kind == hardware::DeviceKind::kGpu &&
         device.peak.contains(hardware::Arithmetic::kFp8) && !device.fp8.products.empty() && !has_fp8(device, recipe);
}

base::Seconds read_back_time(const program::Op& op, const hardware::Device& device) {
  constexpr double kBytes = 3;  // a number: a byte is read, two are written
  const bool wgrad = op.kind == program::OpKind::kMatmulWgrad || op.kind == program::OpKind::kExpertMatmulWgrad;
  const bool dgrad = op.kind == program::OpKind::kMatmulDgrad || op.kind == program::OpKind::kExpertMatmulDgrad;
  const double m = static_cast<double>(op.m), n = static_cast<double>(op.n), k = static_cast<double>(op.k);
  const double numbers = wgrad ? m * (k + n) : dgrad ? n * (m + k) : k * (m + n);
  return base::Bytes(kBytes * std::max(1, op.experts) * numbers) / (device.memory_bandwidth * device.memory_efficiency);
}

GemmRates fp8_rates(const hardware::Device& device, Fp8 recipe, program::DType result, double efficiency) {
  const auto found = device.fp8.products.find(scaling_of(recipe));
  if (found == device.fp8.products.end()) return gemm_rates(device, result, efficiency);
  const hardware::ScaledProduct& product = found->second;
  GemmRates rates = gemm_rates(device, result, 1);
  rates.sustained = device.peak.at(arithmetic_of(recipe)) *
                    (device.sustained_scale() * device.gemm_efficiency * product.efficiency * efficiency);
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
