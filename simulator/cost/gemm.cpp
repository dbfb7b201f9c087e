#include "simulator/cost/gemm.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace trivium::simulator {
namespace {

struct Tile {
  double rows, columns;
  double rate;  // of the largest tiles': smaller ones reload their operands more often
};

// Tiles of the cuBLAS kernels; rates from published training runs, tested on SimuMax's A100 GEMMs
// (tests/simulator/cost).
constexpr std::array<Tile, 6> kTiles = {
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.86}, {128, 64, 0.70}, {64, 128, 0.70}, {64, 64, 0.44}}};
constexpr std::array<double, 3> kSplits = {1, 2, 4};
constexpr double kWaveRounding = 0.93;   // of the idle rest of the last wave
constexpr double kMemoryShare = 0.8;     // of memory bandwidth, reached by a product bound by it
constexpr double kSplitOverhead = 3e-6;  // s, the reduction kernel of split-K
constexpr double kSplitTraffic = 8;      // bytes per element of the result and split: fp32, written and read

/// Waves of `blocks` tiles over the multiprocessors: the last one counts .93 of its idle rest.
double waves(double blocks, double multiprocessors) {
  const double exact = blocks / multiprocessors;
  return exact + kWaveRounding * (std::ceil(exact) - exact);
}

}  // namespace

hardware::Arithmetic arithmetic_on(const hardware::Device& device, program::DType type) {
  if (device.kind == hardware::DeviceKind::kCpu && program::is_half(type)) return hardware::Arithmetic::kFp32;
  switch (type) {
    case program::DType::kFp64:
      return hardware::Arithmetic::kFp64;
    case program::DType::kBf16:
      return hardware::Arithmetic::kBf16;
    case program::DType::kFp16:
      return hardware::Arithmetic::kFp16;
    default:
      return hardware::Arithmetic::kFp32;
  }
}

base::FlopsPerSecond peak_of(const hardware::Device& device, program::DType type) {
  const auto arithmetic = arithmetic_on(device, type);
  assert(device.peak.contains(arithmetic));
  return device.peak.at(arithmetic);
}

GemmRates gemm_rates(const hardware::Device& device, program::DType type, double efficiency) {
  GemmRates rates;
  rates.sustained = peak_of(device, type) * (device.sustained_scale() * device.gemm_efficiency * efficiency);
  rates.memory = device.memory_bandwidth * kMemoryShare;
  rates.multiprocessors = std::max(1, device.multiprocessors);
  rates.ramp = device.physics.product_ramp;
  rates.operand_size = rates.result_size = static_cast<double>(program::size_of(type));
  return rates;
}

// t = min over tiles and splits of max(waves · 2 tm tn (k/splits + ramp) / (rate/SMs), bytes / .8 HBM) + split-K's
// reduction. Omitted: clocks under load (the profile's compute_scale), cache reuse between tiles, cuBLAS's misses of
// its best kernel.
base::Seconds gemm_time(const GemmShape& shape, const GemmRates& rates) {
  const auto [m, n, k, batch] = shape;
  const double moved = batch * (rates.operand_size * (m * k + k * n) + rates.result_size * m * n);
  const double memory = moved / rates.memory.value();
  const double per_processor = rates.sustained.value() / rates.multiprocessors;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    for (const double splits : kSplits) {
      const double blocks = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch * splits;
      const double block = 2 * tile.rows * tile.columns * (k / splits + rates.ramp) /
                           (per_processor * (rates.tiles_alike ? 1 : tile.rate));
      double time = std::max(waves(blocks, rates.multiprocessors) * block, memory);
      if (splits > 1) time += kSplitOverhead + kSplitTraffic * splits * batch * m * n / rates.memory.value();
      best = std::min(best, time);
    }
  }
  return base::Seconds(best);
}

}  // namespace trivium::simulator
