#include "runtime/microbench/all_reduce_times.h"

#include <numeric>
#include <span>
#include <vector>

#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

/// Seconds of one all-reduce on the slowest member, of every batch of `repetitions`.
std::vector<double> time_batches(Communicator& communicator, Backend& device, int group, std::byte* data,
                                 std::int64_t bytes, int repetitions) {
  constexpr int kBatches = 5;
  constexpr double kSecondsPerNs = 1e-9;
  const auto reduce = [&] {
    communicator.all_reduce(group, data, bytes / size_of(program::DType::kFp32), program::DType::kFp32,
                            program::Reduction::kSum);
  };
  reduce();  // connects
  device.finish();
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    communicator.barrier(group);
    const std::int64_t began = now_ns();
    for (int i = 0; i < repetitions; ++i) reduce();
    device.finish();
    double seconds = static_cast<double>(now_ns() - began) * kSecondsPerNs / repetitions;
    communicator.all_reduce(group, &seconds, 1, program::DType::kFp64, program::Reduction::kMax);
    batches.push_back(seconds);
  }
  return batches;
}

}  // namespace

AllReduceTimes time_all_reduces(Communicator& communicator, Backend& device, std::int64_t bytes) {
  constexpr int kLarge = 1, kSmall = 20;  // repetitions a batch
  constexpr std::int64_t kSmallBytes = 8;
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> sizes;
  for (int size = 2; size < communicator.size(); size *= 2) sizes.push_back(size);
  if (communicator.size() > 1) sizes.push_back(communicator.size());
  const int world = communicator.make_group(ranks);
  const Memory memory = device.allocate(bytes);
  device.enter(program::Lane::kData);
  AllReduceTimes times;
  for (const int size : sizes) {
    communicator.barrier(world);  // those who are not of it stay out of the way
    if (communicator.rank() >= size) continue;
    const std::span<const int> members(ranks.data(), static_cast<std::size_t>(size));
    const int group = size == communicator.size() ? world : communicator.make_group(members);
    const auto small = time_batches(communicator, device, group, memory.get(), kSmallBytes, kSmall),
               large = time_batches(communicator, device, group, memory.get(), bytes, kLarge);
    times.latency[size] = base::Seconds(quantile(small, 0.5));
    times.latency_spread[size] = spread(small);
    times.bus[size] = base::BytesPerSecond(2.0 * (size - 1) / size * static_cast<double>(bytes) / quantile(large, 0.5));
    times.bus_spread[size] = spread(large);
  }
  return times;
}

}  // namespace trivium::runtime::microbench
