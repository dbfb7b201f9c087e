// Kernels bound by memory or by bookkeeping: compiled once, for every processor, T = float and double.
// Shapes and operand order: program/ir/op.h.
#pragma once

#include "runtime/cpu/kernel_table.h"

namespace trivium::runtime::cpu {

void add_casts(KernelTable& table);
void add_compression(KernelTable& table);
void add_context(KernelTable& table);
void add_embeddings(KernelTable& table);
void add_mixtures(KernelTable& table);
void add_muon(KernelTable& table);
void add_optimizer(KernelTable& table);

/// Any kind on 16-bit operands that has no kernel of its own for them: memory holds 16 bits, arithmetic is the fp32
/// kernel's, results are rounded to nearest even when they are stored. What the buffers of the op's kind are decides
/// which operands have 16 bits.
void widened(const KernelArguments& a);

/// A product of operands in 8 bits whose result is of the type (quantize.cpp).
Kernel fp8_product(program::DType type);

}  // namespace trivium::runtime::cpu
