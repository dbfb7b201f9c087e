#include "hardware_profiles/physics.h"

#include <array>

namespace trivium::hardware {

std::span<const PhysicsField> physics_fields() {
  static constexpr std::array<PhysicsField, 10> kFields = {{
      {"batched_efficiency", &Physics::batched_efficiency, 0.1, 1},
      {"unaligned_head", &Physics::unaligned_head, 1, 30},
      {"unaligned_product", &Physics::unaligned_product, 0.05, 1},
      {"flash_forward", &Physics::flash_forward, 0.1, 1},
      {"flash_backward", &Physics::flash_backward, 0.05, 1},
      {"flash_ramp", &Physics::flash_ramp, 0, 4096},
      {"product_ramp", &Physics::product_ramp, 0, 2048},
      {"issue_exponent", &Physics::issue_exponent, 1, 20},
      {"collective_bus", &Physics::collective_bus, 0.2, 1.5},
      {"collective_latency", &Physics::collective_latency, 0.1, 3},
  }};
  return kFields;
}

}  // namespace trivium::hardware
