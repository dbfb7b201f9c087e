#include "runtime/microbench/host_link.h"

#include <algorithm>
#include <vector>

#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {

HostLinkTime time_host_link(Backend& device, std::int64_t bytes) {
  constexpr int kCopies = 7;
  constexpr double kSecondsPerNs = 1e-9;
  const Memory here = device.allocate_on_host(bytes), there = device.allocate(bytes);
  std::vector<double> slower;  // seconds
  for (const bool up : {true, false}) {
    std::vector<double> seconds;
    for (int i = 0; i <= kCopies; ++i) {
      device.start_clock(now_ns());
      const std::int32_t began = device.stamp(program::Lane::kCopy);
      device.upload(program::Lane::kCopy, up ? there.get() : here.get(), up ? here.get() : there.get(), bytes);
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
