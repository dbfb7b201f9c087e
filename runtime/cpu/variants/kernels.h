// Kernels that are compiled once per instruction set (namespace v2, v3, v4), T = float and double.
// Shapes and operand order: program/ir/op.h.
#pragma once

#include "runtime/cpu/kernel_table.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// OptimizerLoops::newton_schulz.
void newton_schulz(float* x, float* room, std::int64_t m, std::int64_t n, std::int64_t iterations);
void newton_schulz(double* x, double* room, std::int64_t m, std::int64_t n, std::int64_t iterations);

void add_activations(KernelTable& table);
void add_attention(KernelTable& table);
void add_attention_backward(KernelTable& table);
void add_attention_blocks(KernelTable& table);
void add_expert_products(KernelTable& table);
void add_latents(KernelTable& table);
void add_losses(KernelTable& table);
void add_norms(KernelTable& table);
void add_products(KernelTable& table);
void add_residuals(KernelTable& table);
void add_rotary(KernelTable& table);

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
