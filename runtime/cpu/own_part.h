// What a rank holds of a bucket: all of it, or with a sharded optimizer its shard (program::Bucket::own_begin).
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cpu/operands.h"

namespace trivium::runtime::cpu {

inline const program::Bucket& bucket_of(const KernelArguments& a) {
  return a.kind->buckets[static_cast<std::size_t>(a.op->bucket)];
}

/// Elements from the start of the chunk's parameters and gradients.
struct Range {
  std::int64_t begin = 0, end = 0;
};

inline Range own_run(const KernelArguments& a, int part) {
  const std::int64_t begin = bucket_of(a).own_begin(a.shard_rank, part);
  return {begin, begin + bucket_of(a).own_run()};
}

template <class T>
T* space(const KernelArguments& a, program::Space which) {
  return reinterpret_cast<T*>(a.chunk_base[static_cast<std::size_t>(which)]);
}

/// Calls visit(parameter, begin, end) for every parameter's elements within the range; what lies between parameters is
/// padding and is not visited.
template <class Visit>
void for_each_parameter(const KernelArguments& a, Range range, Visit visit) {
  for (const program::Parameter& parameter : a.kind->parameters) {
    const std::int64_t begin = std::max(range.begin, parameter.offset);
    const std::int64_t end = std::min(range.end, parameter.offset + parameter.local_rows * parameter.local_columns);
    if (begin < end) visit(parameter, begin, end);
  }
}

}  // namespace trivium::runtime::cpu
