// Shapes of operators as PyTorch's profiler and its NVTX ranges tell them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::imports {

/// batch x (m,k) · (k,n).
struct Product {
  double m = 0, n = 0, k = 0, batch = 1;
  int operand_bytes = 4;
};

/// Bytes of an element of PyTorch's names of types, in operators ("c10::BFloat16") and collectives ("BFloat16").
int bytes_of_type(const std::string& name);

/// "Input Dims" of a trace, or the sizes of an NVTX range: empty of inputs that are no tensor, of lists
/// of tensors that of the first.
Shapes shapes_from(const nlohmann::json& dims);

/// What mm, addmm, bmm, baddbmm, linear and their like multiply: the first two inputs that are matrices.
std::optional<Product> product_of(const std::string& name, const Shapes& shapes);

}  // namespace trivium::calibration::imports
