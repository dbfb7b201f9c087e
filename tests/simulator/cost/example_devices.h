// Devices with round figures for tests of the cost rules; free of the shipped profiles, so that refitting them moves
// nothing.
#pragma once

#include "hardware_profiles/hardware.h"

namespace trivium::simulator {

/// A100-SXM4-80GB: 312 TFLOP/s, 2,039 GB/s, 108 multiprocessors. The host issues nothing unless a test says so.
inline hardware::Device a100() {
  hardware::Device device;
  device.name = "a100";
  device.peak = {{hardware::Arithmetic::kFp16, base::FlopsPerSecond(312e12)},
                 {hardware::Arithmetic::kBf16, base::FlopsPerSecond(312e12)},
                 {hardware::Arithmetic::kFp32, base::FlopsPerSecond(19.5e12)}};
  device.memory_bandwidth = base::BytesPerSecond(2039e9);
  device.multiprocessors = 108;
  device.flash_attention = true;
  return device;
}

/// A core: 32 GFLOP/s in fp32 at 60 %, 5 GB/s at 70 %, 2 us to dispatch an op.
inline hardware::Device core() {
  hardware::Device device;
  device.name = "core";
  device.kind = hardware::DeviceKind::kCpu;
  device.peak = {{hardware::Arithmetic::kFp32, base::FlopsPerSecond(32e9)}};
  device.memory_bandwidth = base::BytesPerSecond(5e9);
  device.multiprocessors = 1;
  device.gemm_efficiency = 0.6;
  device.wgrad_efficiency = 1.0;
  device.memory_efficiency = 0.7;
  device.kernel_issue = base::Seconds(2e-6);
  return device;
}

}  // namespace trivium::simulator
