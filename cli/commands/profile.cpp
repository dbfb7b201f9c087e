// trivium profile: this machine measured, and kept as the profile `this-machine`.
#include "runtime/microbench/profile.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/json_text.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/options/gpu_options.h"
#include "cli/options/values.h"
#include "cli/process/interrupts.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "runtime/cuda/loader.h"
#include "runtime/microbench/gpu_profile.h"
#include "runtime/session/gpu_ranks.h"

namespace trivium::cli {
namespace {

struct ProfileOptions {
  std::string output, device = "cpu", like = "h200";
  int ranks = 0;
  bool quick = false;
  bool json = false;
};

/// Every GPU has a process while NCCL is timed; the first goes on to its kernels. Empty in the others.
std::optional<hardware::Node> profile_of_gpu(const ProfileOptions& options, const runtime::ProfileOptions& how) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 30;
  const std::vector<std::string> devices = runtime::cuda::describe_devices().value_or_throw();
  runtime::session::GpuRank here = runtime::session::open_gpu_rank(rank_options({.timing = "auto"}));
  const auto all_reduces = runtime::microbench::time_all_reduces(*here.communicator, *here.backend, kLargest);
  const bool first = here.communicator->rank() == 0;
  here.communicator.reset();  // all at once
  if (!first) return std::nullopt;
  return runtime::profile_gpu(*here.backend, fmt::format("{}, timed by {}", devices.front(), here.timing),
                              static_cast<int>(devices.size()), options.like, all_reduces, how);
}

/// The exit code.
int run(const ProfileOptions& options) {
  if (options.device == "cuda" && options.output.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "this-machine means its cores: say with -o where the GPU's profile goes");
  }
  runtime::ProfileOptions how;
  how.quick = options.quick;
  how.ranks = options.ranks;
  how.progress = [](const std::string& line) { base::say("{}\n", line); };
  std::optional<hardware::Node> measured;
  if (options.device == "cuda") {
    const Interrupts interrupts;
    const auto gpus = static_cast<int>(runtime::cuda::describe_devices().value_or_throw().size());
    if (gpus > 1 && !runtime::session::started_as_rank())
      return runtime::session::start_ranks(gpus, interrupts.token());
    measured = profile_of_gpu(options, how);
    if (!measured) return 0;
  } else {
    measured = runtime::profile_this_machine(how);
  }
  const nlohmann::json node = hardware::to_json(*measured);
  const std::string output = options.output.empty() ? hardware::this_machine_path() : options.output;
  base::write_file_atomically(output, base::json_text(node, 2) + "\n");
  if (options.json) {
    print_json(node);
  } else {
    print(fmt::format("wrote {}\n", output));
  }
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command =
      app.add_subcommand("profile", "Measure this machine's cores or GPU and keep the profile this-machine");
  command->add_option("--device", options->device, "What is measured")
      ->check(one_of({"cpu", "cuda"}))
      ->capture_default_str();
  CLI::Option* like =
      command->add_option("--like", options->like, "GPU: the shipped profile whose links and peaks it takes over")
          ->capture_default_str();
  command->add_flag("--quick", options->quick, "Fewer shapes and repetitions: under 20 s");
  command->add_option("--ranks", options->ranks, "Ranks that run at once; 0: one per core");
  add_output(*command, "-o,--output", options->output, "Where the profile goes; default: the user's data folder",
             OutputKind::kProfile);
  command->add_flag("--json", options->json, "The profile on stdout");
  command->callback([options, like, &exit_code] {
    if (like->count() > 0 && options->device == "cpu") {
      throw base::Failure(base::ErrorKind::kUsage, "--like is of a GPU's profile; add --device cuda, or leave it out");
    }
    exit_code = run(*options);
  });
}

}  // namespace trivium::cli
