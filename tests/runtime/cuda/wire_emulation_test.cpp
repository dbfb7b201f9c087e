// The largest gradients and what is left of them, by the kernels as they are written, run on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {
namespace {

/// Eighths between -1 and 1, so that many are equally large.
std::vector<float> eighths(std::int64_t count, unsigned seed) {
  std::vector<float> values;
  for (const double x : uniform(count, seed)) values.push_back(static_cast<float>(std::round(8 * x) / 8));
  return values;
}

std::vector<Sent> send(std::vector<float> gradient, std::vector<float>& residual, std::int64_t k, std::int64_t first) {
  std::vector<Sent> wire(static_cast<std::size_t>(k));
  program::Op op;
  op.kind = program::OpKind::kCompress;
  op.elements = static_cast<std::int64_t>(gradient.size()), op.k = k, op.n = first;
  KernelArguments a;
  a.op = &op;
  a.in[0] = reinterpret_cast<std::byte*>(gradient.data());
  a.out[0] = reinterpret_cast<std::byte*>(wire.data());
  a.out[1] = reinterpret_cast<std::byte*>(residual.data());
  HostLauncher launcher;
  compress(launcher, a);
  return wire;
}

/// The same by sorting: sizes from the largest, equal ones by their place; then by place.
void expect_largest(const std::vector<float>& gradient, const std::vector<float>& before, std::int64_t k) {
  std::vector<float> residual = before, left;
  for (std::size_t i = 0; i < gradient.size(); ++i) left.push_back(gradient[i] + before[i]);
  const auto size = [&](std::size_t i) {
    return std::isnan(left[i]) ? std::numeric_limits<float>::infinity() : std::abs(left[i]);
  };
  std::vector<std::size_t> order(left.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return size(x) > size(y); });
  order.resize(static_cast<std::size_t>(k));
  std::sort(order.begin(), order.end());
  const auto wire = send(gradient, residual, k, 1000);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(wire[i].number, 1000 + order[i]) << i;
    ASSERT_EQ(wire[i].value, left[order[i]]) << i;
    left[order[i]] = 0;
  }
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_EQ(residual[i], left[i]) << i;
}

// 9,000 elements are three blocks; nearly all, one and all of few are the ends of what k may be.
TEST(LargestEmulation, SendsWhatSortingFindsAndKeepsTheRest) {
  for (const std::int64_t k : {1, 90, 4000, 8999}) expect_largest(eighths(9000, 1), eighths(9000, 2), k);
  expect_largest(eighths(7, 3), eighths(7, 4), 7);
  std::vector<float> broken = eighths(500, 5);
  broken[77] = std::numeric_limits<float>::quiet_NaN();
  broken[499] = -std::numeric_limits<float>::infinity();
  std::vector<float> residual(500, 0.0F);
  const auto wire = send(broken, residual, 2, 0);
  EXPECT_EQ(wire[0].number, 77U);
  EXPECT_EQ(wire[1].number, 499U);
}

// Members 0 to 2 send two elements each: sums by number, the others are 0.
TEST(LargestEmulation, AddsWhatTheMembersSent) {
  const std::vector<Sent> wire{{1.5F, 3}, {2.0F, 0}, {0.25F, 3}, {-1.0F, 4}, {0.5F, 3}, {-2.0F, 0}};
  std::vector<float> gradient(6, 9.0F);
  program::Op op;
  op.kind = program::OpKind::kDecompress;
  op.elements = 6, op.k = 2, op.parts = 3;
  KernelArguments a;
  a.op = &op;
  a.in[0] = reinterpret_cast<std::byte*>(const_cast<Sent*>(wire.data()));
  a.out[0] = reinterpret_cast<std::byte*>(gradient.data());
  HostLauncher launcher;
  decompress(launcher, a);
  EXPECT_EQ(gradient, (std::vector<float>{0, 0, 0, 2.25F, -1, 0}));
}

}  // namespace
}  // namespace trivium::runtime::cuda
