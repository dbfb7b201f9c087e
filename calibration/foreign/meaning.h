// Names of foreign kernels and operators to what they do, before shapes and callers are looked at.
#pragma once

#include <string>

namespace trivium::calibration::foreign {

enum class Meaning {
  kUnknown,
  kNoWork,  ///< views, allocations, bookkeeping of the framework: the host's time
  kCollective,
  kFusedAttention,
  kSoftmax,  ///< of scores or of logits: shapes tell
  kProduct,  ///< with a matrix of the model, or with batches of matrices: shapes tell
  kBatched,  ///< of batches of matrices
  kNorm,
  kRotary,
  kActivation,
  kEmbedding,
  kLoss,
  kAdd,
  kCopy,
  kElementwise,
  kOptimizer,
  kGradientNorm,
  kZero,
  kAccumulate,  ///< gradients into what is kept of them
  kBucketCopy,  ///< parameters and gradients into and out of the buffers that collectives read
  kRouting
};

/// Of an operator of PyTorch ("aten::mm"), a range, or a node of its autograd ("…: AddmmBackward0").
Meaning meaning_of_operator(const std::string& name);

/// Whether an operator computes itself. Nodes of autograd, calls of c10d and the like have operators do it.
bool works(const std::string& name);

/// Of a kernel of a GPU: cuBLAS, cuDNN, CUTLASS, FlashAttention, Transformer Engine, apex, Triton, PyTorch's own.
Meaning meaning_of_kernel(const std::string& name);

/// Whether the name is that of a backward kernel, or of a node of autograd.
bool is_backward(const std::string& name);

}  // namespace trivium::calibration::foreign
