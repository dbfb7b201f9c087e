#include "runtime/microbench/gpu_profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "hardware_profiles/load.h"
#include "runtime/executor/library_facts.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/host_link.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/set_rates.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime {

namespace {

/// Of a table by group size what the node's devices can be, with the sources of that.
void keep_groups(hardware::Node& node, const std::string& name, auto& table) {
  std::erase_if(table, [&](const auto& entry) { return entry.first > node.devices; });
  std::erase_if(node.sources, [&](const auto& source) {
    const std::string& of = source.first;
    if (of == name) return table.empty();
    if (!of.starts_with(name + "/")) return false;
    const auto is_it = [&](const auto& entry) { return of == fmt::format("{}/{}", name, entry.first); };
    return std::none_of(table.begin(), table.end(), is_it);
  });
}

}  // namespace

hardware::Node gpus_like(const std::string& like, int devices) {
  hardware::Node node = hardware::load_node(like);
  node.name = "this-gpu";
  node.devices = devices;
  if (node.devices_per_host_link > devices) {
    node.devices_per_host_link = devices;
    node.sources.erase("/devices_per_host_link");
  }
  if (node.host_devices >= devices) {
    node.host_devices = 0;  // all of them
    node.sources.erase("/host_devices");
  }
  keep_groups(node, "/allreduce_bus", node.allreduce_bus);
  keep_groups(node, "/gather_bus", node.gather_bus);
  keep_groups(node, "/allreduce_latency", node.allreduce_latency);
  return node;
}

hardware::Node profile_gpu(Backend& device, const std::string& description, int devices, const std::string& like,
                           const microbench::AllReduceTimes& all_reduces, const ProfileOptions& options) {
  const auto facts = gpu_facts(description);
  const auto driver = facts.find("driver");
  const std::string from = fmt::format("trivium profile --device cuda{} on {:%Y-%m-%d}: {}{}",
                                       options.quick ? " --quick" : "", fmt::gmtime(std::time(nullptr)), description,
                                       driver == facts.end() ? "" : fmt::format(", kernel module {}", driver->second));
  hardware::Node node = gpus_like(like, devices);
  node.sources["/devices"] = "trivium profile --device cuda: GPUs that were found";
  const int steps = options.quick ? 3 : 8;
  const auto times =
      microbench::time_kernels_on(device, microbench::gpu_bench_programs(options.quick), steps, options.progress);
  microbench::set_rates(node, times, from);
  node.device.kernel_issue = base::Seconds(times.host_gap);
  node.sources["/device/kernel_issue"] =
      from + "; median time between two ops, contained in the rates" + microbench::spread_words(times.host_gap_spread);
  constexpr std::int64_t kCopied = std::int64_t{128} << 20;
  const microbench::HostLinkTime copies = microbench::time_host_link(device, kCopied);
  node.host_link = copies.rate;
  node.sources["/host_link"] =
      from + "; copies of 128 MiB, the slower direction" + microbench::spread_words(copies.spread);
  for (const auto& [size, bus] : all_reduces.bus) {
    node.allreduce_bus[size] = bus;
    node.sources[fmt::format("/allreduce_bus/{}", size)] =
        from + "; NCCL, the largest message" + microbench::spread_words(all_reduces.bus_spread.at(size));
  }
  for (const auto& [size, latency] : all_reduces.latency) {
    node.allreduce_latency[size] = latency;
    node.sources[fmt::format("/allreduce_latency/{}", size)] =
        from + "; NCCL, eight bytes" + microbench::spread_words(all_reduces.latency_spread.at(size));
  }
  if (options.progress) options.progress(fmt::format("done: {} op kinds", node.device.op_rates.size()));
  return node;
}

}  // namespace trivium::runtime
