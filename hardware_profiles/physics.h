// Constants of the cost rules that all machines with one kind of device share.
#pragma once

#include <span>
#include <string_view>

namespace trivium::hardware {

/// What iteration times identify beyond the constants of one machine. The defaults are the priors of
/// `trivium calibrate --runs`; device files hold fitted values with their source. Pure factors but where said.
struct Physics {
  double batched_efficiency = 0.56;  ///< of a dense product's: QK^T and PV of unfused attention
  double unaligned_head = 7;         ///< times: those products where head_dim is not a multiple of 8
  double unaligned_product = 0.35;   ///< of an aligned product's rate: n or k not a multiple of 8 in 16 bit
  double flash_forward = 0.53;       ///< of peak, on causal FLOPs
  double flash_backward = 0.26;      ///< of peak, on causal FLOPs
  double flash_ramp = 240;           ///< tokens at which flash attention reaches half of its rate
  double product_ramp = 70;          ///< steps of k that filling and draining a tile of a product costs
  double issue_exponent = 3;         ///< p of (device^p + host^p)^(1/p)
  double collective_bus = 0.92;      ///< of the benchmark's bus bandwidth, during a training step
  double collective_latency = 0.67;  ///< of the benchmark's latency, on warm channels
};

/// A member of Physics by its name in device files, with the bounds that make sense for it.
struct PhysicsField {
  std::string_view name;
  double Physics::*value;
  double low, high;
};

/// Every member, in the order of the struct.
std::span<const PhysicsField> physics_fields();

}  // namespace trivium::hardware
