// Time of the attention core on a GPU, unfused or flash, without the traffic of its pointwise kernels.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"

namespace trivium::simulator {

/// Products of kAttention or kAttentionBackward. `op.bytes` (softmax, mask, dropout, transposes) is not in it.
/// `flash_rate`: StackTraits::flash_rate.
base::Seconds attention_products(const program::Op& op, const hardware::Device& device, double flash_rate = 1);

}  // namespace trivium::simulator
