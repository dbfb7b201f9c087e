// The host's side of a kernel: how many kernels an op is, and what the host's time does to the device's.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/mesh.h"
#include "program/ir/op.h"
#include "program/plan/stack.h"

namespace trivium::simulator {

/// Kernels the host issues for an op, in units of a forward kernel's issue time (backward: .75 each, as the autograd
/// engine issues them without Python). A Megatron layer sums to 26 forward and 48 x .75 backward.
double kernels_of(const program::Op& op, const program::StackTraits& stack);

/// Whether an unfused attention cannot use the stack's fused mask-softmax: samples x heads do not divide by what its
/// blocks hold, and softmax runs in fp32, kernel by kernel (Megatron-LM, fused_softmax.py, forward_torch_softmax).
bool softmax_falls_back(const program::Op& op, const program::StackTraits& stack);

/// Traffic that this adds: conversions, scale, mask and softmax in fp32 (32 B a score forward, 16 backward).
double unfused_softmax_bytes(const program::Op& op, const program::StackTraits& stack);

/// Additional host time of every tensor collective in a pipeline, by the stack (docs/explanation/cost-model.md).
base::Seconds pipelined_issue(const program::Mesh& mesh, const program::StackTraits& stack);

/// Host time to issue the op.
base::Seconds issue_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack);

/// Time of work that takes the device `device` and the host `host`: (device^p + host^p)^(1/p), never below either.
base::Seconds combine(base::Seconds device, base::Seconds host, double exponent);

}  // namespace trivium::simulator
