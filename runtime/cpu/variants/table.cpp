// All kernels of one instruction set.

#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

void add_kernels(KernelTable& table);  // called by dispatch.cpp

void add_kernels(KernelTable& table) {
  add_activations(table);
  add_attention(table);
  add_attention_backward(table);
  add_attention_blocks(table);
  add_expert_products(table);
  add_latents(table);
  add_losses(table);
  add_norms(table);
  add_products(table);
  add_residuals(table);
  add_rotary(table);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
