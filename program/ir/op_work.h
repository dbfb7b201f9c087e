// How much an op computes and moves: FLOPs and bytes from its kind and shapes (docs/cost-model.md, "Work").
#pragma once

#include "program/ir/op.h"

namespace trivium::program {

/// Sets op.flops and op.bytes from the other members. Byte counts are those of the reference kernels in 16 bit, scaled
/// by size / 2 for wider types; a stack's habits scale them later. Pointwise kinds count no FLOPs, so that the sum over
/// a body is what MFU and HFU count.
void fill_work(Op& op);

}  // namespace trivium::program
