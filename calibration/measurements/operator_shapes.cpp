#include "calibration/measurements/operator_shapes.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace trivium::calibration::imports {

int bytes_of_type(const std::string& name) {
  if (name.find("BFloat16") != std::string::npos || name.find("Half") != std::string::npos) return 2;
  if (name.find("Double") != std::string::npos || name == "double" || name.find("Long") != std::string::npos) return 8;
  if (name.find("Byte") != std::string::npos || name.find("Float8") != std::string::npos) return 1;
  return 4;
}

namespace {

std::vector<std::int64_t> sizes_from(const nlohmann::json& input) {
  std::vector<std::int64_t> sizes;
  if (!input.is_array()) return sizes;
  if (!input.empty() && input.front().is_array()) return sizes_from(input.front());
  for (const auto& size : input) {
    if (size.is_number_integer()) sizes.push_back(size.get<std::int64_t>());
  }
  return sizes;
}

}  // namespace

Shapes shapes_from(const nlohmann::json& dims) {
  Shapes shapes;
  if (!dims.is_array()) return shapes;
  for (const auto& input : dims) shapes.push_back(sizes_from(input));
  return shapes;
}

std::optional<Product> product_of(const std::string& name, const Shapes& shapes) {
  static constexpr std::array<std::string_view, 6> kProducts{"aten::mm",      "aten::addmm",  "aten::bmm",
                                                             "aten::baddbmm", "aten::linear", "aten::_scaled_mm"};
  if (std::find(kProducts.begin(), kProducts.end(), name) == kProducts.end()) return std::nullopt;
  std::vector<const std::vector<std::int64_t>*> matrices;
  for (const auto& sizes : shapes) {
    if (sizes.size() >= 2) matrices.push_back(&sizes);
  }
  const bool adds = name.find("add") != std::string::npos && matrices.size() > 2;  // the matrix that is added to
  if (matrices.size() < (adds ? 3U : 2U)) return std::nullopt;
  const auto &a = *matrices[adds ? 1 : 0], &b = *matrices[adds ? 2 : 1];
  Product product;
  product.m = product.batch = 1;
  product.k = static_cast<double>(a.back());
  const bool batched = name.find("bmm") != std::string::npos;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    (batched && i == 0 ? product.batch : product.m) *= static_cast<double>(a[i]);
  }
  const bool transposed = name == "aten::linear";  // its weight is (n, k)
  product.n = static_cast<double>(transposed ? b.front() : b.back());
  const auto inner = static_cast<double>(transposed ? b.back() : b[b.size() - 2]);
  if (inner != product.k || product.m <= 0 || product.n <= 0 || product.k <= 0) return std::nullopt;
  return product;
}

}  // namespace trivium::calibration::imports
