// How much a checkpoint of a training holds, and how long its nodes take to write it.
#pragma once

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"

namespace trivium::simulator {

/// Parameters as they are kept, two moments, and with 16-bit parameters their fp32 copy: 14 B a parameter, else 3
/// values; 4 B less with moments in bf16. Layers that Muon steps have one moment in fp32 (their biases and router
/// counts, a thousandth, with them). Of adapters (LoRA) the frozen parameters alone.
base::Bytes checkpoint_size(const program::Job& job);

/// Nodes that hold ranks of the plan: they write the checkpoint together.
int nodes_of(const program::Plan& plan, const hardware::Cluster& cluster);

}  // namespace trivium::simulator
