// Kernels that are compiled once per instruction set (namespace v2, v3, v4), T = float and double.
// Shapes and operand order: program/ir/op.h.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

template <class T>
void norm(const KernelArguments& a);
template <class T>
void norm_backward(const KernelArguments& a);
template <class T>
void matmul(const KernelArguments& a);
template <class T>
void matmul_dgrad(const KernelArguments& a);
template <class T>
void matmul_wgrad(const KernelArguments& a);
template <class T>
void expert_matmul(const KernelArguments& a);
template <class T>
void expert_matmul_dgrad(const KernelArguments& a);
template <class T>
void expert_matmul_wgrad(const KernelArguments& a);
template <class T>
void rotary(const KernelArguments& a);
template <class T>
void rotary_backward(const KernelArguments& a);
template <class T>
void attention(const KernelArguments& a);
template <class T>
void attention_backward(const KernelArguments& a);
template <class T>
void attention_block(const KernelArguments& a);
template <class T>
void attention_block_backward(const KernelArguments& a);
template <class T>
void bias_residual(const KernelArguments& a);
template <class T>
void bias_residual_backward(const KernelArguments& a);
template <class T>
void activation(const KernelArguments& a);
template <class T>
void activation_backward(const KernelArguments& a);
template <class T>
void loss_max(const KernelArguments& a);
template <class T>
void loss_sums(const KernelArguments& a);
template <class T>
void loss(const KernelArguments& a);
template <class T>
void loss_backward(const KernelArguments& a);

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
