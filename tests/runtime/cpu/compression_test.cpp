// The largest gradients: what is sent and what stays add up to what there was.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kEntry = 12;  // bytes: an fp64 value and its number

struct Replica {
  std::vector<double> residual;
  std::vector<std::byte> wire;
  void send(const std::vector<double>& gradient, std::int64_t k) {
    residual.resize(gradient.size());
    wire.resize(static_cast<std::size_t>(k * kEntry));
    Call call(OpKind::kCompress, 0, 0);
    call.op.elements = static_cast<std::int64_t>(gradient.size());
    call.op.k = k;
    call.in(0, gradient).in(1, residual).out(0, wire).out(1, residual).run<double>();
  }
};

std::vector<double> sum_of(const std::vector<Replica>& replicas, std::int64_t k, std::size_t elements) {
  std::vector<std::byte> wires;
  for (const Replica& r : replicas) wires.insert(wires.end(), r.wire.begin(), r.wire.end());
  std::vector<double> sum(elements, 77);
  Call call(OpKind::kDecompress, 0, 0);
  call.op.elements = static_cast<std::int64_t>(elements);
  call.op.k = k;
  call.op.parts = static_cast<std::int32_t>(replicas.size());
  call.in(0, wires).out(0, sum).run<double>();
  return sum;
}

// |-5| and |4| are the largest; of the equal 2s none has room, and next time the first goes before the second.
TEST(SendLargest, ChoosesByMagnitudeThenByPlaceAndKeepsTheRest) {
  std::vector<Replica> one(1);
  one[0].send({2, -5, 0, 2, 4}, 2);
  EXPECT_EQ(sum_of(one, 2, 5), (std::vector<double>{0, -5, 0, 0, 4}));
  EXPECT_EQ(one[0].residual, (std::vector<double>{2, 0, 0, 2, 0}));
  one[0].send({0, 1, 0, 0, 0}, 1);
  EXPECT_EQ(sum_of(one, 1, 5), (std::vector<double>{2, 0, 0, 0, 0}));
  EXPECT_EQ(one[0].residual, (std::vector<double>{0, 1, 0, 2, 0}));
}

// Quarters add up exactly, so that nothing but a lost gradient could show.
TEST(SendLargest, LosesNothingOverManySteps) {
  constexpr std::size_t kElements = 50;
  std::vector<Replica> replicas(3);
  std::vector<double> given(kElements), taken(kElements);
  for (unsigned step = 0; step < 20; ++step) {
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      std::vector<double> gradient = numbers(kElements, 100 * step + static_cast<unsigned>(r));
      for (double& g : gradient) g = std::round(g * 64) / 4;
      for (std::size_t i = 0; i < kElements; ++i) given[i] += gradient[i];
      replicas[r].send(gradient, 4);
    }
    const std::vector<double> sum = sum_of(replicas, 4, kElements);
    for (std::size_t i = 0; i < kElements; ++i) taken[i] += sum[i];
  }
  EXPECT_NE(taken, given);  // some of it is still unsent
  for (const Replica& r : replicas) {
    for (std::size_t i = 0; i < kElements; ++i) taken[i] += r.residual[i];
  }
  EXPECT_EQ(taken, given);
}

}  // namespace
}  // namespace trivium::runtime::cpu
