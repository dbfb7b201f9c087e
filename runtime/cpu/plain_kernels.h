// Kernels bound by memory or by bookkeeping: compiled once, for every processor, T = float and double.
#pragma once

#include "runtime/kernel.h"

namespace trivium::runtime::cpu {

template <class T>
void embedding(const KernelArguments& a);
template <class T>
void embedding_backward(const KernelArguments& a);
template <class T>
void position(const KernelArguments& a);
template <class T>
void position_backward(const KernelArguments& a);
template <class T>
void add(const KernelArguments& a);
template <class T>
void split_kv(const KernelArguments& a);
template <class T>
void join_kv(const KernelArguments& a);
template <class T>
void pack_heads(const KernelArguments& a);
template <class T>
void unpack_heads(const KernelArguments& a);
template <class T>
void pack_tokens(const KernelArguments& a);
template <class T>
void unpack_tokens(const KernelArguments& a);
template <class T>
void route(const KernelArguments& a);
template <class T>
void route_backward(const KernelArguments& a);
template <class T>
void spill(const KernelArguments& a);
template <class T>
void dispatch(const KernelArguments& a);
template <class T>
void dispatch_backward(const KernelArguments& a);
template <class T>
void combine(const KernelArguments& a);
template <class T>
void combine_backward(const KernelArguments& a);
template <class T>
void compress(const KernelArguments& a);
template <class T>
void decompress(const KernelArguments& a);
template <class T>
void zero_gradients(const KernelArguments& a);
template <class T>
void gradient_norm(const KernelArguments& a);
template <class T>
void adamw(const KernelArguments& a);

// 16-bit parameters, with fp32 moments and master copy. Gradients are fp32, or of the stack's habit fp16.
void adamw_half(const KernelArguments& a);
void gradient_norm_half(const KernelArguments& a);
void zero_gradients_half(const KernelArguments& a);
/// fp16 gradients to their own type.
void copy_half(const KernelArguments& a);

/// Any other kind on 16-bit operands: memory holds 16 bits, arithmetic is the fp32 kernel's, results are rounded to
/// nearest even when they are stored. What the buffers of the op's kind are decides which operands have 16 bits.
void widened(const KernelArguments& a);

/// Whole rows of any type from one place to another: spilled rows of a mixture.
void place_rows(const KernelArguments& a);
void pick_rows(const KernelArguments& a);

/// Fetches and stores: `elements` bytes.
void copy(const KernelArguments& a);

}  // namespace trivium::runtime::cpu
