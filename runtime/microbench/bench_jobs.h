// The small trainings whose kernels are timed.
#pragma once

#include <vector>

#include "program/verify/verified.h"

namespace trivium::runtime::microbench {

/// Programs of one rank's work: hidden 64 to 384, several micro-batches, whole and as one of two tensor ranks, with the
/// ops of both GPT and Llama layers, then as one of two context ranks and with mixtures of experts, in host order.
/// `quick`: a spread of few.
std::vector<program::Program> bench_programs(bool quick);

/// The same for a GPU, in bf16 with fused attention: hidden 768 to 4,096, as many tokens as fill it; then two in 8
/// bits.
std::vector<program::Program> gpu_bench_programs(bool quick);

/// As bench_programs for one rank of `ranks` that split a layer: what is run for real to see how late ranks come to
/// collectives.
program::VerifiedProgram tensor_program(int ranks);

/// As bench_programs, of `ranks` that split the batch: each has a whole layer of that width and the same samples.
program::VerifiedProgram data_program(std::int64_t hidden, int ranks);

/// Order of the tasks as they stand in the role, each as soon as what it waits for is done. Precondition: one stage.
void order_by_dependencies(program::Program& program);

}  // namespace trivium::runtime::microbench
