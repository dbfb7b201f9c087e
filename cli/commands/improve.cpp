// trivium improve: what a launch file gains by the best plan of its own trainer, and the file changed for it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/say.h"
#include "base/unified_diff.h"
#include "cli/options/command.h"
#include "cli/options/launch_options.h"
#include "cli/options/options.h"
#include "cli/options/space_options.h"
#include "cli/process/interrupts.h"
#include "cli/render/improvement.h"
#include "cli/render/output.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

constexpr const char* kOldMegatron = "megatron";  // whose scripts name nothing of Megatron-Core

struct ImproveOptions {
  LaunchOptions launch;
  SpaceOptions space;
  std::string output;
  int threads = 0;
  bool patch = false, all = false, json = false;
};

/// The search of `plan --for` on the job of the file, with its software and its processes.
planner::SearchRequest request_of(const ImproveOptions& options, const LaunchFile& read) {
  SpaceOptions space = options.space;
  space.trainer = launch::version_of(read.trainer).name;
  JobRequest request;
  request.file.job = read.imported.job;
  request.cluster = read.cluster;
  request.fixed = {"stack"};
  const program::Plan today = read.imported.job.plan;
  request.ranks = today.ranks();
  for (std::string& feature : planner::features_of(today)) {
    if (std::ranges::find(space.forbid, feature) == space.forbid.end()) space.allow.push_back(std::move(feature));
  }
  if (today.stack == kOldMegatron) {
    if (today.zero_stage <= 1) space.max.emplace_back("zero_stage=1");
    if (today.context == 1) space.max.emplace_back("context=1");
  }
  planner::SearchRequest wanted = search_request(space, request);
  wanted.best = 1;
  wanted.gap = planner::kAnswerGap;
  return wanted;
}

planner::SearchResult search_for(const planner::SearchRequest& wanted, int threads, const Interrupts& interrupts) {
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  return planner::search(wanted, threads, interrupts.token(), [&](std::int64_t, std::int64_t, double best_s) {
    const double so_far = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    line.show(fmt::format("searching for {}{}", seconds(so_far), best_s > 0 ? ", best " + seconds(best_s) : ""));
  });
}

/// The name with which `patch -p0` finds the file: from the current folder, or from the file's own where that is
/// elsewhere.
std::string name_in_patch(const std::string& file) {
  const std::filesystem::path path(file);
  const bool is_below = path.is_relative() && !file.starts_with("..");
  return is_below ? path.lexically_normal().generic_string() : path.filename().string();
}

void describe(const LaunchFile& read, ImprovementAnswer& answer) {
  const planner::Improvement& found = answer.found;
  if (!found.best || (found.today && found.gain_s() <= 0)) return;
  const auto job_of = [&](const program::Plan& plan) {
    program::Job job = answer.today;
    job.plan = plan;
    return job;
  };
  launch::patch::FileSettings own = launch::patch::file_settings(read.request, read.trainer);
  for (const planner::ImprovementStep& step : found.steps) {
    answer.settings.push_back(launch::changes_between(own, read.request, read.trainer, job_of(step.before),
                                                      job_of(step.after), read.cluster));
    launch::patch::apply(answer.settings.back(), own);
  }
  answer.patch = launch::patch_launch(read.request, read.trainer, answer.today, job_of(found.best->plan), read.cluster);
  if (!is_whole(answer.patch) || !found.is_worth_trying()) return;
  answer.diff = base::unified_diff(read.request.text, answer.patch.text, name_in_patch(answer.file));
}

void run(const ImproveOptions& options) {
  const LaunchFile read = read_launch(options.launch);
  if (options.all) say_losses(read.imported.losses);
  const planner::SearchRequest wanted = request_of(options, read);
  const Interrupts interrupts;
  const planner::Effort effort{options.threads, interrupts.token()};
  planner::SearchResult result = search_for(wanted, options.threads, interrupts);
  if (interrupts.happened() && result.best.empty()) {
    throw base::Failure(base::ErrorKind::kInterrupted, "interrupted before any plan was simulated");
  }
  ImprovementAnswer answer;
  if (result.best.empty()) answer.no_plan = nothing_fits(wanted, result, {});
  answer.file = options.launch.file;
  answer.trainer = read.trainer;
  answer.today = read.imported.job;
  answer.cluster = read.cluster.name;
  answer.found = planner::improvement(read.imported.job, read.cluster, wanted, std::move(result), effort);
  if (!answer.found.best && !answer.found.today) {
    throw base::Failure(base::ErrorKind::kNoPlan,
                        fmt::format("today's plan cannot run: {}; {}", answer.found.refused, answer.no_plan));
  }
  describe(read, answer);
  const bool patches = options.patch || !options.output.empty();
  if (patches && answer.diff.empty()) base::say("{}", improvement_report(answer, options.all));
  if (!options.output.empty() && !answer.diff.empty()) base::write_file_atomically(options.output, answer.diff);
  if (options.json) return print_json(improvement_json(answer));
  if (options.patch && options.output.empty()) return print_as_it_is(answer.diff);
  if (!patches || !answer.diff.empty()) print(improvement_report(answer, options.all));
}

}  // namespace

void add_improve(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImproveOptions>();
  CLI::App* command = app.add_subcommand("improve", "Say what a launch file gains by the best plan, and write a patch");
  add_launch_options(*command, options->launch);
  add_bound_options(*command, options->space);
  command->add_flag("--patch", options->patch, "Print the change as a unified diff for patch -p0, and nothing else");
  add_output(*command, "-o,--output", options->output, "Write the change there as a unified diff", OutputKind::kLaunch);
  command->add_option("--threads", options->threads, "Threads of the search; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_flag("--all", options->all, "All changes, and what of the file has no place in a plan");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
