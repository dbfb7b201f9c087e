#include "cli/options/gpu_options.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/say.h"
#include "cli/options/values.h"
#include "runtime/executor/replay.h"

namespace trivium::cli {

void add_gpu_options(CLI::App& command, GpuOptions& options) {
  constexpr int kMostGpus = 1024;
  command.add_option("--gpus", options.gpus, "GPUs of this host that the ranks share; 0: all")
      ->check(CLI::Range(0, kMostGpus))
      ->capture_default_str();
  command.add_option("--timing", options.timing, "GPUs: time ops by events, or by CUPTI's records of their kernels")
      ->check(one_of({"events", "cupti", "auto"}))
      ->capture_default_str();
  command.add_option("--cuda-epilogues", options.epilogues, "Matrix products and GELU in one kernel, in 16 bits")
      ->check(one_of({"on", "off"}))
      ->capture_default_str();
  auto* timed = command
                    .add_option("--time-cuda-products", options.time_products,
                                "Time algorithms of matrix products, for later runs to use")
                    ->type_name("DIR");
  command.add_option("--cuda-products", options.products, "Use the fastest algorithms that were timed")
      ->type_name("DIR")
      ->excludes(timed);
  command.add_option("--cuda-graphs", options.graphs, "Capture the work that repeats per micro-batch in CUDA graphs")
      ->check(one_of({"on", "off", "auto"}))
      ->capture_default_str();
}

bool use_graphs(const GpuOptions& options, const program::Program& program, int rank, bool keeps_timeline,
                bool speaks) {
  if (options.graphs == "off") return false;
  const runtime::Replays replays(program, program.role_of(rank));
  std::string why;
  if (keeps_timeline) {
    why = "steps whose timeline is kept run op by op; use --timeline-steps 0";
  } else if (replays.left_out() == replays.segments()) {
    why = replays.summary();
  }
  if (!why.empty() && options.graphs == "on") throw base::Failure(base::ErrorKind::kUsage, "no CUDA graphs: " + why);
  if (speaks) {
    base::say("note: {}: {}\n", why.empty() ? "CUDA graphs" : "no CUDA graphs", why.empty() ? replays.summary() : why);
  }
  return why.empty();
}

runtime::session::GpuRankOptions rank_options(const GpuOptions& options) {
  return {.gpus = options.gpus,
          .device = {.kernel_records = options.timing != "events",
                     .epilogues = options.epilogues == "on",
                     .products = options.products,
                     .times_products = options.time_products},
          .events_will_do = options.timing == "auto"};
}

void require_gpu(const GpuOptions& options, const std::string& backend) {
  if (backend == "cuda") return;
  if (options.timing != "events") {
    throw base::Failure(base::ErrorKind::kUsage, "--timing cupti records kernels of GPUs; add --backend cuda");
  }
  if (!options.products.empty() || !options.time_products.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--{}cuda-products is of GPUs; add --backend cuda",
                                                             options.products.empty() ? "time-" : ""));
  }
  if (options.graphs == "on" || options.epilogues == "on") {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--cuda-{} on needs GPUs; add --backend cuda",
                                                             options.graphs == "on" ? "graphs" : "epilogues"));
  }
}

}  // namespace trivium::cli
