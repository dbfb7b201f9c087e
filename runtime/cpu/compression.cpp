// Gradients on their way between replicas: in 16 bits, or the largest of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "program/ir/op_views.h"
#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {

namespace {

/// What goes before in the order of size; numbers that are none go first, so that they reach everyone.
template <class T>
T magnitude_of(T x) {
  return std::isnan(x) ? std::numeric_limits<T>::infinity() : std::abs(x);
}

/// One element on the wire: its value, then its number in the bucket.
template <class T>
constexpr std::int64_t kSent = sizeof(T) + sizeof(std::uint32_t);

// What is not sent is added to the next step's gradient, so nothing is lost (Stich et al. 2018, arXiv 1809.07599,
// algorithm 1). Equal sizes go by their place, so that equal gradients choose the same elements.
template <class T>
void send_largest(const KernelArguments& a) {
  const std::int64_t count = a.op->elements, sent = program::elements_sent(*a.op);
  const T* gradient = input<T>(a, 0);
  T* residual = output<T>(a, 1);
  std::byte* wire = output<std::byte>(a, 0);
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  // Adding a zero would lose the sign of a zero, and with it the equality with what is not compressed.
  for (std::int64_t i = 0; i < count; ++i) residual[i] = residual[i] == 0 ? gradient[i] : gradient[i] + residual[i];
  std::nth_element(order.begin(), order.begin() + sent - 1, order.end(), [&](std::uint32_t x, std::uint32_t y) {
    const T first = magnitude_of(residual[x]), second = magnitude_of(residual[y]);
    return first != second ? first > second : x < y;
  });
  std::sort(order.begin(), order.begin() + sent);
  for (std::int64_t i = 0; i < sent; ++i) {
    const std::uint32_t chosen = order[static_cast<std::size_t>(i)];
    const std::uint32_t number = chosen + static_cast<std::uint32_t>(program::first_number(*a.op));
    std::memcpy(wire + i * kSent<T>, &residual[chosen], sizeof(T));
    std::memcpy(wire + i * kSent<T> + sizeof(T), &number, sizeof number);
    residual[chosen] = 0;
  }
}

// Members in their order, as sums of whole buckets are; the first that sends an element sets it.
template <class T>
void sum_largest(const KernelArguments& a) {
  const std::byte* wire = input<std::byte>(a, 0);
  T* gradient = output<T>(a, 0);
  std::vector<bool> reached(static_cast<std::size_t>(a.op->elements), false);
  std::fill_n(gradient, a.op->elements, T(0));
  for (std::int64_t i = 0; i < a.op->parts * program::elements_sent(*a.op); ++i) {
    T value;
    std::uint32_t number;
    std::memcpy(&value, wire + i * kSent<T>, sizeof value);
    std::memcpy(&number, wire + i * kSent<T> + sizeof(T), sizeof number);
    gradient[number] = reached[number] ? gradient[number] + value : value;
    reached[number] = true;
  }
}

}  // namespace

// To fp32 first: what an fp64 run rounds twice, an fp32 run rounds once.
template <class T>
static void compress(const KernelArguments& a) {
  if (program::elements_sent(*a.op) > 0) return send_largest<T>(a);
  const T* gradient = input<T>(a, 0);
  std::uint16_t* wire = output<std::uint16_t>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) wire[i] = reduction::fp16_of_float(static_cast<float>(gradient[i]));
}

template <class T>
static void decompress(const KernelArguments& a) {
  if (program::elements_sent(*a.op) > 0) return sum_largest<T>(a);
  const std::uint16_t* wire = input<std::uint16_t>(a, 0);
  T* gradient = output<T>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) gradient[i] = static_cast<T>(reduction::float_of_fp16(wire[i]));
}

static void copy_half(const KernelArguments& a) {
  std::memcpy(a.out[0], a.in[0], static_cast<std::size_t>(a.op->elements) * sizeof(std::uint16_t));
}

void add_compression(KernelTable& table) {
  table.add(program::OpKind::kCompress, compress<float>, compress<double>);
  table.add(program::OpKind::kDecompress, decompress<float>, decompress<double>);
  for (const auto kind : {program::OpKind::kCompress, program::OpKind::kDecompress}) table.add_half(kind, copy_half);
}

}  // namespace trivium::runtime::cpu
