// trivium program: what one rank does, as text.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/render/render.h"
#include "program/ir/text.h"

namespace trivium::cli {
namespace {

struct ProgramOptions {
  JobOptions job;
  int rank = 0;
};

void run(const ProgramOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  const simulator::Prepared prepared = prepare(request, true);
  if (options.rank < 0 || options.rank >= prepared.program().mesh.size()) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--rank {}: the plan has ranks 0 to {}", options.rank,
                                                             prepared.program().mesh.size() - 1));
  }
  print(program::text_of(prepared.program(), options.rank));
}

}  // namespace

void add_program(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ProgramOptions>();
  CLI::App* command = app.add_subcommand("program", "Print the Program of one rank: memory, tasks, order and ops");
  add_job_options(*command, options->job);
  command->add_option("--rank", options->rank, "The rank")->capture_default_str();
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
