// Tensor parallelism at its smallest: one matrix product split over ranks by columns and by rows of the weight.

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kRows = 12, kIn = 48, kOut = 32;

/// Columns [begin, begin + count) of a row-major matrix.
std::vector<double> columns(const std::vector<double>& x, std::int64_t rows, std::int64_t width, std::int64_t begin,
                            std::int64_t count) {
  std::vector<double> part;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = begin; c < begin + count; ++c) part.push_back(x[static_cast<std::size_t>(r * width + c)]);
  }
  return part;
}

std::vector<double> product(const std::vector<double>& x, const std::vector<double>& w, std::int64_t n,
                            std::int64_t k) {
  std::vector<double> y = zeros(kRows * n);
  Call(OpKind::kMatmul, kRows, n, k).in(0, x).in(1, w).out(0, y).run<double>();
  return y;
}

// Megatron's two ways to split y = x W over R ranks (Shoeybi et al. 2019, arXiv 1909.08053, section 3):
//
//   by columns   W = [W_1 | … | W_R]          every rank has all of x;  y_r = x W_r is its own columns of y.
//                                             Nothing is communicated; y stays split by columns.
//   by rows      x = [x_1 | … | x_R],         every rank has the columns of x that meet its rows of W;
//                W = [W_1; …; W_R] stacked    y = x_1 W_1 + … + x_R W_R: partial products, summed by one all-reduce.
//
// A column split leaves exactly the input that a row split wants, so the pair of layers in an MLP (and QKV with the
// attention output) costs one all-reduce per pass instead of two.
//
// Tolerance: a sum of k products in another order differs by about sqrt(k) u sum |x||w| with u = 1.1e-16; sqrt(48) u is
// 8e-16, so 1e-15 of sum |x||w|.
TEST(TensorSplit, TheColumnAndTheRowSplitOfASingleMatrixProduct) {
  const std::vector<double> x = numbers(kRows * kIn, 1), w = numbers(kIn * kOut, 2);
  const std::vector<double> whole = product(x, w, kOut, kIn);
  std::vector<double> x_size, w_size;
  for (const double value : x) x_size.push_back(std::fabs(value));
  for (const double value : w) w_size.push_back(std::fabs(value));
  const std::vector<double> size = product(x_size, w_size, kOut, kIn);

  for (const std::int64_t ranks : {2, 4}) {
    std::vector<double> from_columns = zeros(kRows * kOut), from_rows = zeros(kRows * kOut);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t out = kOut / ranks, in = kIn / ranks;
      const std::vector<double> own = product(x, columns(w, kIn, kOut, rank * out, out), out, kIn);
      for (std::int64_t r = 0; r < kRows; ++r) {
        std::copy_n(own.begin() + r * out, out, from_columns.begin() + r * kOut + rank * out);
      }
      const std::vector<double> own_rows(w.begin() + rank * in * kOut, w.begin() + (rank + 1) * in * kOut);
      const std::vector<double> partial = product(columns(x, kRows, kIn, rank * in, in), own_rows, kOut, in);
      for (std::size_t i = 0; i < partial.size(); ++i) from_rows[i] += partial[i];
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_NEAR(from_columns[i], whole[i], 1e-15 * size[i]) << "column split over " << ranks << ", element " << i;
      ASSERT_NEAR(from_rows[i], whole[i], 1e-15 * size[i]) << "row split over " << ranks << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
