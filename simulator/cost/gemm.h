// Time of a product of matrices on a GPU by tiles and waves.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/dtype.h"

namespace trivium::simulator {

/// batch x (m,k) · (k,n).
struct GemmShape {
  double m = 0, n = 0, k = 0;
  double batch = 1;
};

/// What a product reaches on a device.
struct GemmRates {
  base::FlopsPerSecond sustained;  ///< inside a full wave of the largest tiles
  base::BytesPerSecond memory;
  double multiprocessors = 1;
  double operand_size = 2;   ///< bytes of an element of the inputs
  double result_size = 2;    ///< bytes moved per element of the result
  double ramp = 70;          ///< steps of k that filling and draining a tile's pipeline costs
  bool tiles_alike = false;  ///< small tiles reach what large ones do
};

/// Rates of a device for one dtype; `efficiency` multiplies the device's own of a dense product.
GemmRates gemm_rates(const hardware::Device& device, program::DType type, double efficiency);

base::Seconds gemm_time(const GemmShape& shape, const GemmRates& rates);

/// The arithmetic that a device does on numbers of a type. Cores hold 16-bit numbers in memory and compute in fp32.
hardware::Arithmetic arithmetic_on(const hardware::Device& device, program::DType type);

/// Arithmetic of a dtype; throws std::out_of_range (a programmer error) for a dtype that the device does not support.
base::FlopsPerSecond peak_of(const hardware::Device& device, program::DType type);

}  // namespace trivium::simulator
