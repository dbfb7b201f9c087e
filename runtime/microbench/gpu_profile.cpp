#include "runtime/microbench/gpu_profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "hardware_profiles/load.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/host_link.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/set_rates.h"

namespace trivium::runtime {

hardware::Node gpus_like(const std::string& like, int devices) {
  hardware::Node node = hardware::load_node(like);
  node.name = "this-gpu";
  node.devices = devices;
  const auto too_large = [&](const auto& entry) { return entry.first > devices; };
  std::erase_if(node.allreduce_bus, too_large);
  std::erase_if(node.allreduce_latency, too_large);
  return node;
}

hardware::Node profile_gpu(Backend& device, const std::string& description, int devices, const std::string& like,
                           const microbench::AllReduceTimes& all_reduces, const ProfileOptions& options) {
  const std::string from = fmt::format("trivium profile --device cuda{} on {:%Y-%m-%d}: {}",
                                       options.quick ? " --quick" : "", fmt::gmtime(std::time(nullptr)), description);
  hardware::Node node = gpus_like(like, devices);
  node.sources["/devices"] = "trivium profile --device cuda: GPUs that were found";
  const int steps = options.quick ? 3 : 8;
  const auto times =
      microbench::time_kernels_on(device, microbench::gpu_bench_programs(options.quick), steps, options.progress);
  microbench::set_rates(node, times, from);
  node.device.kernel_issue = edge::Seconds(times.host_gap);
  node.sources["/device/kernel_issue"] = from + "; median time between two ops, contained in the rates";
  constexpr std::int64_t kCopied = std::int64_t{128} << 20;
  node.host_link = microbench::time_host_link(device, kCopied);
  node.sources["/host_link"] = from + "; copies of 128 MiB, the slower direction";
  for (const auto& [size, bus] : all_reduces.bus) {
    node.allreduce_bus[size] = bus;
    node.sources[fmt::format("/allreduce_bus/{}", size)] = from + "; NCCL, the largest message";
  }
  for (const auto& [size, latency] : all_reduces.latency) {
    node.allreduce_latency[size] = latency;
    node.sources[fmt::format("/allreduce_latency/{}", size)] = from + "; NCCL, eight bytes";
  }
  if (options.progress) options.progress(fmt::format("done: {} op kinds", node.device.op_rates.size()));
  return node;
}

}  // namespace trivium::runtime
