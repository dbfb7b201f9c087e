#include "runtime/microbench/gpu_profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "hardware_profiles/load.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/set_rates.h"

namespace trivium::runtime {

hardware::Node profile_gpu(Backend& device, const std::string& description, int devices, const std::string& like,
                           const ProfileOptions& options) {
  const std::string from = fmt::format("trivium profile --device cuda{} on {:%Y-%m-%d}: {}",
                                       options.quick ? " --quick" : "", fmt::gmtime(std::time(nullptr)), description);
  hardware::Node node = hardware::load_node(like);
  node.name = "this-gpu";
  node.devices = devices;
  node.sources["/devices"] = "trivium profile --device cuda: GPUs that were found";
  const int steps = options.quick ? 3 : 8;
  const auto times =
      microbench::time_kernels_on(device, microbench::gpu_bench_programs(options.quick), steps, options.progress);
  microbench::set_rates(node, times, from);
  node.device.kernel_issue = edge::Seconds(times.host_gap);
  node.sources["/device/kernel_issue"] = from + "; median time between two ops, contained in the rates";
  if (options.progress) options.progress(fmt::format("done: {} op kinds", node.device.op_rates.size()));
  return node;
}

}  // namespace trivium::runtime
