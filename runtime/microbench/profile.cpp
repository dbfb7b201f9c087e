#include "runtime/microbench/profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "hardware_profiles/load.h"
#include "hardware_profiles/this_machine.h"
#include "runtime/executor/host_facts.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/core_sharing.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/link_times.h"
#include "runtime/microbench/set_rates.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime {
namespace {

using program::OpKind;

/// What every measured number is told to come from: date, machine and versions.
std::string origin(int ranks, bool quick) {
  std::map<std::string, std::string> facts = host_facts();
  return fmt::format("trivium profile{} on {:%Y-%m-%d}: {}, {} ranks at once, {}, {}, {}", quick ? " --quick" : "",
                     fmt::gmtime(std::time(nullptr)), facts["processor"], ranks, facts["compiler"], facts["library"],
                     facts["system"]);
}

/// Best over shapes of work per second.
template <class Work>
double best(const microbench::KernelTimes& times, OpKind kind, Work work) {
  double rate = 0;
  const auto found = times.shapes.find({kind});
  if (found == times.shapes.end()) return 0;
  for (const auto& shape : found->second) rate = std::max(rate, work(shape) / shape.seconds);
  return rate;
}

/// How far single times of a kind lie apart, as its rate tells it too.
std::string spread_of(const hardware::Node& node, OpKind kind) {
  const auto rate = node.device.op_rates.find(std::string(program::name_of(kind)));
  return rate == node.device.op_rates.end() ? "" : microbench::spread_words(rate->second.spread);
}

/// Physics for kinds that were not timed; they have no efficiency apart from what was reached.
void set_physics(hardware::Node& node, const microbench::KernelTimes& times, const std::string& from) {
  hardware::Device& device = node.device;
  const double flops = best(times, OpKind::kMatmul, [](const auto& s) { return s.flops; });
  const double bytes = best(times, OpKind::kAdamW, [](const auto& s) { return s.bytes; });
  if (flops > 0) {
    // fp64 has half the lanes of fp32 in every vector unit.
    device.peak = {{hardware::Arithmetic::kFp32, base::FlopsPerSecond(flops)},
                   {hardware::Arithmetic::kFp64, base::FlopsPerSecond(flops / 2)}};
    device.gemm_efficiency = 1;
    node.sources["/device/peak"] =
        from + "; the fastest product of matrices, fp64 at half of it" + spread_of(node, OpKind::kMatmul);
    node.sources["/device/gemm_efficiency"] = "definition: the peak is what was reached";
  }
  if (bytes > 0) {
    device.memory_bandwidth = base::BytesPerSecond(bytes);
    device.memory_efficiency = 1;
    node.sources["/device/memory_bandwidth"] = from + "; the fastest optimizer step" + spread_of(node, OpKind::kAdamW);
    node.sources["/device/memory_efficiency"] = "definition: the bandwidth is what was reached";
  }
  device.kernel_issue = base::Seconds(times.host_gap);
  node.sources["/device/kernel_issue"] =
      from + "; median time between two ops, contained in the rates" + microbench::spread_words(times.host_gap_spread);
}

int checked_ranks(int asked) {
  const int cores = hardware::machine_cores();
  if (asked < 0 || asked > cores) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("ranks {}: this machine has {} cores; give 1 to {}, or 0 for "
                                    "all",
                                    asked, cores, cores));
  }
  return asked == 0 ? cores : asked;
}

}  // namespace

std::string doubt_about(const hardware::Node& measured) {
  constexpr double kBusy = 0.6;  // idle machines: 0.1 to 0.3
  const auto rate = measured.device.op_rates.find(std::string(program::name_of(OpKind::kMatmul)));
  if (rate == measured.device.op_rates.end() || rate->second.spread < kBusy) return "";
  return fmt::format(
      "note: products of matrices differ by {:.0f} % from one time to the next, as on a busy machine; profile "
      "again when nothing else runs",
      100 * rate->second.spread);
}

hardware::Node profile_this_machine(const ProfileOptions& options) {
  const int ranks = checked_ranks(options.ranks);
  const auto say = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  const std::string from = origin(ranks, options.quick);
  hardware::Node node = hardware::load_node("generic-cpu");
  node.name = "this-machine";
  node.device.name = host_facts()["processor"] + " core";
  node.devices = ranks;
  node.sources["/devices"] = "trivium profile: ranks that were measured at once";
  node.host_memory = hardware::machine_memory();
  node.device.memory = node.host_memory / static_cast<double>(ranks);
  node.sources["/device/memory"] = "read from the system: physical memory over ranks";

  const int steps = options.quick ? 5 : 11;
  const auto times =
      microbench::time_kernels(microbench::bench_programs(options.quick), ranks, steps, options.progress);
  microbench::set_rates(node, times, from);
  set_physics(node, times, from);
  if (ranks > 1) {
    say(fmt::format("collectives and transfers between 2 to {} threads", ranks));
    const microbench::LinkTimes links = microbench::time_links(ranks, options.quick);
    node.intra = links.link;
    node.collective_skew = links.skew;
    const std::string fit = fmt::format("{}; mean error of the affine law {:.0f} %{}", from, 100 * links.fit_error,
                                        microbench::spread_words(links.spread));
    node.sources["/intra/bandwidth"] = node.sources["/intra/latency"] = fit;
    node.sources["/intra/efficiency"] = "definition: the bandwidth is what was reached";
    node.sources["/collective_skew"] = from + "; mean wait at the collectives of a training split over tensor ranks" +
                                       microbench::spread_words(links.skew_spread);
    node.host_link = links.link.bandwidth;
    node.sources["/host_link"] = fit + "; as between ranks: the same memory";
  }
  if (ranks == hardware::machine_cores()) {
    say(fmt::format("{} ranks that take turns on {} cores", 2 * ranks, ranks));
    const std::vector<double> turns = microbench::time_small_all_reduces(2 * ranks, options.quick);
    constexpr double kUndisturbed = 0.1;  // whatever else runs delays the ranks that sleep, for many turns
    node.allreduce_latency[2 * ranks] = base::Seconds(microbench::quantile(turns, kUndisturbed));
    node.sources[fmt::format("/allreduce_latency/{}", 2 * ranks)] =
        from + "; lower tenth of all-reduces of 16 KiB, two ranks a core" +
        microbench::spread_words(microbench::spread(turns));
    for (const microbench::CoreSharing& one : microbench::time_core_sharing(ranks, options.quick)) {
      node.core_sharing[one.bytes_per_core] = std::max(0.0, microbench::quantile(one.slowdowns, 0.5));
      node.sources[fmt::format("/core_sharing/{}", one.bytes_per_core)] =
          from +
          fmt::format("; ops of data-parallel ranks, two a core over one a core; spread {:.0f} % of their time",
                      100 * microbench::quantile(one.slowdowns, 0.9) - 100 * microbench::quantile(one.slowdowns, 0.1));
    }
  }
  say(fmt::format("done: {} op kinds, {}, links {} and {}", node.device.op_rates.size(),
                  base::to_text(node.device.peak.at(hardware::Arithmetic::kFp32)), base::to_text(node.intra.latency),
                  base::to_text(node.intra.bandwidth)));
  if (const std::string doubt = doubt_about(node); !doubt.empty()) say(doubt);
  return node;
}

}  // namespace trivium::runtime
