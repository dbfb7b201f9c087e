// The CUDA backend's ops, run on the host.
#pragma once

#include "runtime/cuda/epilogues.h"
#include "runtime/kernel.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {

/// Runs the op with the kernels that a device, with products of warpgroups or without, has for the precision.
void run_emulation(const KernelArguments& a, program::DType precision, Turns turns = Turns::kAscending,
                   bool warpgroups = false, ScaledProducts scaled = ScaledProducts::kNone);

/// A product with its activation, or an activation's gradient alone (runtime/cuda/epilogues.h), in 16 bits. `fuses`:
/// whether there is an algorithm that does both.
void run_emulation_epilogue(EpiloguePart part, const KernelArguments& product, const KernelArguments& activation,
                            program::DType precision, bool fuses);

}  // namespace trivium::runtime::cuda
