// Ops of a GPT layer and head under tensor parallelism, as Megatron runs them: input for tests of the cost rules.
#pragma once

#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"

namespace trivium::simulator {

struct MegatronShape {
  std::int64_t tokens = 0;  // of a micro-batch
  int samples = 1;
  std::int64_t hidden = 0;
  int heads = 0, tensor = 1;
};

std::vector<program::Op> layer_forward(const MegatronShape& shape, program::Pass pass);
std::vector<program::Op> layer_backward(const MegatronShape& shape);
/// Final norm, logits of 51,200 words and loss, forward and backward.
std::vector<program::Op> head(const MegatronShape& shape);

/// Ops one after the other with the stack of megatron; tensor collectives among 8 devices of the node.
double time_of(const std::vector<program::Op>& ops, const hardware::Node& node);

}  // namespace trivium::simulator
