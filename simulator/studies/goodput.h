// What failures leave of a training: goodput, the best checkpoint interval, calendar time.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace trivium::simulator {

/// Failures of a training's devices and what they cost. One failed device stops all of them.
struct Failures {
  base::Seconds device_mtbf;  ///< mean time between failures of one device
  int devices = 1;
  base::Seconds checkpoint;  ///< training stands still while the state is written
  base::Seconds restart;     ///< from a failure to the first step after it: noticing, replacing, reading the state
  base::Seconds mtbf() const { return device_mtbf / devices; }  ///< of the whole
};

/// First-order optimum sqrt(2 C M) for checkpoint cost C and mean time M between failures (Young, CACM 17(9), 1974).
base::Seconds young_interval(const Failures& failures);

/// Daly's higher-order estimate (FGCS 22(3), 2006): sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, or M
/// where C >= 2 M.
base::Seconds daly_interval(const Failures& failures);

/// The interval of work between checkpoints that makes `goodput` largest: the root of e^((t + C) / M) (1 - t / M) = 1,
/// which lies between 0 and M (the derivative of `goodput`). Zero where checkpoints cost nothing.
base::Seconds best_interval(const Failures& failures);

/// Share of the calendar time that is work kept, with a checkpoint after every `interval` of work, failures a Poisson
/// process that spares neither checkpoints nor restarts: t / (M e^(R / M) (e^((t + C) / M) - 1)) (Daly 2006).
double goodput(const Failures& failures, base::Seconds interval);

/// The same share from failures drawn one by one: what remains of `work` after failures, checkpoints and restarts.
/// Takes time by the number of failures, however short the interval; ends after a million of them, whatever was done by
/// then.
double simulated_goodput(const Failures& failures, base::Seconds interval, base::Seconds work, std::uint64_t seed);

/// Bytes that one node writes to shared storage per second: 2 TB/s sustained for 2,048 nodes (Llama 3, arXiv
/// 2407.21783, §3.3.1).
constexpr base::BytesPerSecond kCheckpointBandwidth{1e9};
/// 419 unexpected interruptions of 16,384 GPUs in 54 days: 54 · 24 h · 16,384 / 419 (Llama 3, §3.3.4).
constexpr base::Seconds kDeviceMtbf{50'700.0 * 3600};
/// Detection and diagnosis take less than ten minutes on average (MegaScale, arXiv 2402.15627, §4).
constexpr base::Seconds kRestart{600};

}  // namespace trivium::simulator
