// trivium profile: this machine measured, and kept as the profile `this-machine`.
#include "runtime/microbench/profile.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/render.h"
#include "edge/files.h"
#include "hardware_profiles/load.h"
#include "runtime/cuda/loader.h"
#include "runtime/microbench/gpu_profile.h"

namespace trivium::cli {
namespace {

struct Options {
  std::string output, device = "cpu", like = "h200";
  int ranks = 0;
  bool quick = false;
  bool json = false;
};

hardware::Node profile_of_gpu(const Options& options, const runtime::ProfileOptions& how) {
  const std::vector<std::string> devices = runtime::cuda::describe_devices().value_or_throw();
  const auto device = runtime::cuda::open_device(0).value_or_throw();
  return runtime::profile_gpu(*device, devices.front(), static_cast<int>(devices.size()), options.like, how);
}

void run(const Options& options) {
  if (options.device == "cuda" && options.output.empty()) {
    throw edge::Failure(edge::ErrorKind::kUsage,
                        "this-machine means its cores: say with -o where the GPU's profile goes");
  }
  runtime::ProfileOptions how;
  how.quick = options.quick;
  how.ranks = options.ranks;
  how.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const nlohmann::json node =
      hardware::to_json(options.device == "cuda" ? profile_of_gpu(options, how) : runtime::profile_this_machine(how));
  const std::string output = options.output.empty() ? hardware::this_machine_path() : options.output;
  edge::write_file_atomically(output, node.dump(2) + "\n");
  if (options.json) {
    print_json(node);
  } else {
    print(fmt::format("wrote {}\n", output));
  }
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("profile", "Measure this machine's cores or GPU and keep the profile this-machine");
  command->add_option("--device", options->device, "What is measured")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--like", options->like, "GPU: the shipped profile whose links and peaks it takes over")
      ->capture_default_str();
  command->add_flag("--quick", options->quick, "Fewer shapes and repetitions: under 20 s");
  command->add_option("--ranks", options->ranks, "Ranks that run at once; 0: one a core");
  command->add_option("-o,--output", options->output, "Where the profile goes; default: the user's data folder")
      ->check(output_file());
  command->add_flag("--json", options->json, "The profile on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
