#include "cli/gpu_options.h"

#include "edge/error.h"

namespace trivium::cli {

void add_gpu_options(CLI::App& command, GpuOptions& options) {
  constexpr int kMostGpus = 1024;
  command.add_option("--gpus", options.gpus, "GPUs of this host that the ranks share; 0: all")
      ->check(CLI::Range(0, kMostGpus))
      ->capture_default_str();
  command.add_option("--timing", options.timing, "GPUs: time ops by events, or by CUPTI's records of their kernels")
      ->check(CLI::IsMember({"events", "cupti", "auto"}))
      ->capture_default_str();
  command.add_option("--cuda-epilogues", options.epilogues, "Matrix products and GELU in one kernel, in 16 bits")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
}

runtime::cuda::DeviceOptions device_options(const GpuOptions& options) {
  return {.kernel_records = options.timing != "events", .epilogues = options.epilogues == "on"};
}

void require_gpu(const GpuOptions& options, const std::string& backend) {
  if (backend == "cuda") return;
  if (options.timing != "events") {
    throw edge::Failure(edge::ErrorKind::kUsage, "--timing cupti records kernels of GPUs; add --backend cuda");
  }
  if (options.epilogues == "on") {
    throw edge::Failure(edge::ErrorKind::kUsage, "--cuda-epilogues on needs GPUs; add --backend cuda");
  }
}

}  // namespace trivium::cli
