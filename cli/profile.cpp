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

namespace trivium::cli {
namespace {

struct Options {
  std::string output;
  int ranks = 0;
  bool quick = false;
  bool json = false;
};

void run(const Options& options) {
  runtime::ProfileOptions how;
  how.quick = options.quick;
  how.ranks = options.ranks;
  how.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const nlohmann::json node = hardware::to_json(runtime::profile_this_machine(how));
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
  CLI::App* command = app.add_subcommand("profile", "Measure this machine's cores and keep the profile this-machine");
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
