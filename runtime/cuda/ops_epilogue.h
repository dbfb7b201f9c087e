// An MLP's product and GELU in one, both forward and backward, or one after the other where the launcher has no
// algorithm that does both. What is kept for the backward is the input of GELU with its bias.
#pragma once

#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

/// kMatmul and kActivation: the product's output takes the kept input.
template <class T, class Launcher>
void matmul_activation(Launcher& l, const KernelArguments& product, const KernelArguments& activated) {
  Gemm g = matmul_of<T>(product);
  g.bias = activated.in[1];
  Gemm both = g;
  both.epilogue = Epilogue::kGelu, both.aux = g.c, both.c = activated.out[0];
  if (l.try_gemm(both)) return;
  l.gemm(g);
  KernelArguments unbiased = activated;
  unbiased.in[1] = nullptr;
  activation<T>(l, unbiased);
}

/// kActivationBackward where the kept input holds the bias; the bias has its gradient all the same.
template <class T, class Launcher>
void unbiased_activation_backward(Launcher& l, const KernelArguments& a) {
  KernelArguments unbiased = a;
  unbiased.in[1] = nullptr;
  activation_backward<T>(l, unbiased);
}

/// kMatmulDgrad and kActivationBackward. The bias's gradient is summed apart, in fp32: the epilogue that sums it as
/// well (CUBLASLT_EPILOGUE_DGELU_BGRAD) gives it the 16 bits of the output.
template <class T, class Launcher>
void matmul_dgrad_activation(Launcher& l, const KernelArguments& product, const KernelArguments& activated) {
  const Gemm g = matmul_dgrad_of<T>(product);
  Gemm both = g;
  both.epilogue = Epilogue::kGeluGradient, both.aux = activated.in[0], both.c = activated.out[0];
  if (!l.try_gemm(both)) {
    l.gemm(g);
    return unbiased_activation_backward<T>(l, activated);
  }
  value_sums(l, static_cast<const T*>(output<T>(activated, 0)), g.n, g.m, g.n, output<float>(activated, 1));
}

template <class T, class Launcher>
PairOperation<Launcher> pair_operation(const program::Op& activation) {
  return activation.kind == program::OpKind::kActivation ? matmul_activation<T, Launcher>
                                                         : matmul_dgrad_activation<T, Launcher>;
}

}  // namespace trivium::runtime::cuda
