#include "runtime/microbench/host_link.h"

#include <algorithm>
#include <vector>

#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

program::Op copy_of(program::OpKind kind, std::int64_t bytes) {
  program::Op op;
  op.kind = kind;
  op.elements = bytes;
  return op;
}

}  // namespace

HostLinkTime time_host_link(Backend& device, std::int64_t bytes) {
  constexpr int kCopies = 7;
  constexpr double kSecondsPerNs = 1e-9;
  const Memory here = device.allocate_on_host(bytes), there = device.allocate(bytes);
  // Those of offloading: an upload goes by way of other memory of the host.
  program::ChunkTemplate kind;
  kind.parameters.emplace_back().value = 0;
  kind.buffers.push_back({"parameter", program::Space::kParameter, program::DType::kFp32, 1, 0});
  const program::Op fetches = copy_of(program::OpKind::kFetch, bytes), stores = copy_of(program::OpKind::kStore, bytes);
  const StepValues values;
  KernelArguments fetch, store;
  fetch.kind = store.kind = &kind;
  fetch.values = store.values = &values;
  fetch.op = &fetches, fetch.in[0] = here.get(), fetch.out[0] = there.get();
  store.op = &stores, store.in[0] = there.get(), store.out[0] = here.get();
  std::vector<double> slower;  // seconds
  for (const bool up : {true, false}) {
    std::vector<double> seconds;
    for (int i = 0; i <= kCopies; ++i) {
      device.start_clock(now_ns());
      const std::int32_t began = device.stamp(program::Lane::kCopy);
      device.run(up ? fetch : store, program::Lane::kCopy);
      const std::int32_t ended = device.stamp(program::Lane::kCopy);
      device.finish();
      const auto ns = std::max<std::int64_t>(1, device.since_start_ns(ended) - device.since_start_ns(began));
      if (i > 0) seconds.push_back(static_cast<double>(ns) * kSecondsPerNs);  // the first warms up
    }
    if (quantile(seconds, 0.5) > quantile(slower, 0.5)) slower = std::move(seconds);
  }
  return {base::BytesPerSecond(static_cast<double>(bytes) / quantile(slower, 0.5)), spread(slower)};
}

}  // namespace trivium::runtime::microbench
