// The optimizer's kernels over one bucket: clear gradients, norm of the gradients, AdamW.
// A rank works on its part of the bucket: all of it, or with a sharded optimizer [begin + shard_rank * shard, +shard),
// wherever the chunk keeps it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/cpu/double_double.h"
#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"

namespace trivium::runtime::cpu {
namespace {

using program::Parameter;
using program::Space;

const program::Bucket& bucket_of(const KernelArguments& a) {
  return a.kind->buckets[static_cast<std::size_t>(a.op->bucket)];
}

/// Elements from the start of the chunk's parameters and gradients.
struct Range {
  std::int64_t begin = 0, end = 0;
};

Range own_part(const KernelArguments& a) {
  const std::int64_t begin = bucket_of(a).own_begin(a.shard_rank);
  return {begin, begin + bucket_of(a).shard};
}

template <class T>
T* space(const KernelArguments& a, Space which) {
  return reinterpret_cast<T*>(a.chunk_base[static_cast<std::size_t>(which)]);
}

/// Calls visit(parameter, begin, end) for every parameter's elements within the range; what lies between parameters is
/// padding and is not visited.
template <class Visit>
void for_each_parameter(const KernelArguments& a, Range range, Visit visit) {
  for (const Parameter& parameter : a.kind->parameters) {
    const std::int64_t begin = std::max(range.begin, parameter.offset);
    const std::int64_t end = std::min(range.end, parameter.offset + parameter.local_rows * parameter.local_columns);
    if (begin < end) visit(parameter, begin, end);
  }
}

/// Sum of squares in independent lanes, so that the processor need not wait for one addition to start the next.
template <class T>
DoubleDouble sum_of_squares(const T* x, std::int64_t count) {
  constexpr std::size_t kLanes = 8;
  std::array<DoubleDouble, kLanes> sum{};
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(kLanes) <= count; i += static_cast<std::int64_t>(kLanes)) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      sum[lane] = sum[lane] + exact_square(x[i + static_cast<std::int64_t>(lane)]);
  }
  for (; i < count; ++i) sum[0] = sum[0] + exact_square(x[i]);
  DoubleDouble total;
  for (const DoubleDouble& part : sum) total = total + part;
  return total;
}

}  // namespace

template <class T>
void zero_gradients(const KernelArguments& a) {
  if (a.out[0] != nullptr) {  // one buffer that lies outside all buckets: a tied weight's other gradient
    std::memset(a.out[0], 0, static_cast<std::size_t>(a.op->elements) * sizeof(T));
    return;
  }
  const program::Bucket& bucket = bucket_of(a);
  const bool shard = bucket.gradient_shard >= 0;
  T* gradients = space<T>(a, Space::kGradient) + (shard ? bucket.gradient_shard : bucket.begin + bucket.gradient_shift);
  std::memset(gradients, 0, static_cast<std::size_t>(shard ? bucket.shard : bucket.elements) * sizeof(T));
}

// Every element of the model counts once: a tied copy counts where the original is, a replicated parameter on the first
// rank of the tensor group.
template <class T>
void gradient_norm(const KernelArguments& a) {
  const program::Bucket& bucket = bucket_of(a);
  const bool sharded = bucket.shard < bucket.elements;
  if (sharded && a.shard_replica != 0) return;  // counted in the first shard group
  // The group that adds the norms up has the dense part once for every expert rank, unless it is sharded.
  if (!sharded && !bucket.expert && a.expert_rank != 0) return;
  const Range own = own_part(a);
  const T* gradient = space<T>(a, Space::kGradient) + bucket.own_gradients(a.shard_rank) - own.begin;
  double* norm = output<double>(a, 0);
  DoubleDouble total{norm[0], norm[1]};
  for_each_parameter(a, own, [&](const Parameter& parameter, std::int64_t begin, std::int64_t end) {
    if (parameter.tied_copy) return;
    if (parameter.split == program::Split::kReplicated && a.tensor_rank != 0) return;
    total = total + sum_of_squares(gradient + begin, end - begin);
  });
  norm[0] = total.hi;
  norm[1] = total.lo;
}

// AdamW (Loshchilov, Hutter 2019, arXiv 1711.05101, algorithm 2) with clipping by the global norm (Pascanu et al. 2013,
// arXiv 1211.5063):  g' = g min(1, clip / (norm + 1e-6)),  m = b1 m + (1 - b1) g',  v = b2 v + (1 - b2) g'^2,
//   p -= lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p),  t = step + 1.
// One element's arithmetic reads that element alone, so a result is bitwise the same however the bucket is shared out.
template <class T>
void adamw(const KernelArguments& a) {
  const program::Optimizer& o = *a.optimizer;
  const program::Bucket& bucket = bucket_of(a);
  const Range own = own_part(a);
  const double* pair = input<double>(a, 0);
  const double norm = std::sqrt(pair[0] + pair[1]);
  const double clip = o.clip_norm > 0 ? std::min(1.0, o.clip_norm / (norm + 1e-6)) : 1.0;
  const double steps = static_cast<double>(a.values->step + 1);
  const T factor = static_cast<T>(clip), rate = static_cast<T>(a.values->learning_rate);
  const T beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2), epsilon = static_cast<T>(o.epsilon);
  const T rest1 = static_cast<T>(1 - o.beta1), rest2 = static_cast<T>(1 - o.beta2);
  const T correct1 = static_cast<T>(1 / (1 - std::pow(o.beta1, steps)));
  const T correct2 = static_cast<T>(1 / (1 - std::pow(o.beta2, steps)));
  T* parameters = space<T>(a, Space::kParameter) + bucket.own_parameters(a.shard_rank) - own.begin;
  const T* gradients = space<T>(a, Space::kGradient) + bucket.own_gradients(a.shard_rank) - own.begin;
  std::byte* kept = a.chunk_base[static_cast<std::size_t>(Space::kOptimizer)] + bucket.optimizer_offset;
  T* moments = reinterpret_cast<T*>(a.in[1] != nullptr ? a.in[1] : kept);  // fetched, where it is offloaded
  for_each_parameter(a, own, [&](const Parameter& parameter, std::int64_t begin, std::int64_t end) {
    const T decay = parameter.decayed ? static_cast<T>(o.weight_decay) : T(0);
    T* __restrict p = parameters + begin;
    const T* __restrict g = gradients + begin;
    T* __restrict first = moments + (begin - own.begin);
    T* __restrict second = first + bucket.shard;
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const T clipped = g[i] * factor;
      first[i] = beta1 * first[i] + rest1 * clipped;
      second[i] = beta2 * second[i] + rest2 * clipped * clipped;
      const T direction = first[i] * correct1 / (std::sqrt(second[i] * correct2) + epsilon);
      p[i] -= rate * (direction + decay * p[i]);
    }
  });
}

void copy(const KernelArguments& a) { std::memcpy(a.out[0], a.in[0], static_cast<std::size_t>(a.op->elements)); }

template void zero_gradients<float>(const KernelArguments&);
template void zero_gradients<double>(const KernelArguments&);
template void gradient_norm<float>(const KernelArguments&);
template void gradient_norm<double>(const KernelArguments&);
template void adamw<float>(const KernelArguments&);
template void adamw<double>(const KernelArguments&);

}  // namespace trivium::runtime::cpu
