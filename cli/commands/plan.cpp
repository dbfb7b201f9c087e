// trivium plan: the fastest plans that fit, and why the others are not among them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/say.h"
#include "cli/commands/plan_studies.h"
#include "cli/commands/plan_trainers.h"
#include "cli/commands/plan_trials.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/space_options.h"
#include "cli/process/interrupts.h"
#include "cli/render/output.h"
#include "cli/render/plan_answer.h"
#include "cli/render/plan_beside.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "planner/launch/launch.h"

namespace trivium::cli {
namespace {

constexpr int kMostBest = 10'000;
constexpr int kOtherFamilies = 9;
constexpr std::size_t kRelaxationsSaid = 3;
constexpr double kWorthSaying = 0.01;  // of the iteration

struct PlanOptions {
  JobOptions job;
  SpaceOptions space;
  StudyOptions studies;
  TrialOptions trials;
  std::string output;
  int best = 0;  // not given
  int threads = 0;
  bool ignore_memory = false;
  bool distinct = false;
  bool all = false;
  bool show_space = false;
  bool json = false;
};

planner::SearchResult search(const planner::SearchRequest& wanted, const PlanOptions& options,
                             const Interrupts& interrupts) {
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  double bound_s = 0, apart = 1;  // how far the best is from what nothing can beat: it only shrinks
  planner::SearchRequest watched = wanted;
  watched.on_bound = [&](double rises_to) { bound_s = rises_to; };
  return planner::search(watched, options.threads, interrupts.token(), [&](std::int64_t, std::int64_t, double best_s) {
    const double so_far = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (best_s > 0 && bound_s > 0) apart = std::min(apart, std::max(0.0, 1 - bound_s / best_s));
    const std::string best =
        best_s == 0 ? ", no plan simulated yet"
                    : fmt::format(", best {}, at most {} above the optimum", seconds(best_s), percent(apart));
    line.show(fmt::format("searching for {}{}", seconds(so_far), best));
  });
}

/// Where the devices were counted by hand: whether one fewer, or the next power of two, would be faster.
std::string fewer_ranks(const planner::SearchRequest& wanted, const planner::SearchResult& result,
                        const planner::Effort& effort, nlohmann::json& json) {
  int power = 1;
  while (power * 2 < wanted.ranks) power *= 2;
  const bool one_less = wanted.ranks - 1 > power;
  for (const int ranks : {one_less ? wanted.ranks - 1 : power, power}) {
    if (ranks >= wanted.ranks) return "";
    planner::SearchRequest other = wanted;
    other.ranks = ranks;
    const auto best = planner::best_plan(other, effort);
    if (!best) continue;
    const double time = best->simulation.iteration_s;
    if (!result.best.empty() && time > result.best.front().simulation.iteration_s * (1 - kWorthSaying)) continue;
    json["hint"] = {{"ranks", ranks}, {"iteration_s", time}};
    return fmt::format("{} ranks {}, in {} an iteration", ranks, result.best.empty() ? "can run it" : "are faster",
                       seconds(time));
  }
  return "";
}

/// The best plan as the file of --for says it; nothing is lost where there is none, nor are steps that the job does not
/// say.
planner::launch::Launch launched(const planner::TrainerSpace& trainer, const JobRequest& request,
                                 const planner::SearchResult& result) {
  if (result.best.empty()) return {};
  program::Job job = request.file.job;
  job.plan = result.best.front().plan;
  const planner::launch::Trainer to = planner::launch::find_trainer(trainer.trainer)->trainer;
  planner::launch::Launch launch = planner::launch::export_plan(job, request.cluster, to, request.chosen);
  std::erase_if(launch.losses, [](const planner::launch::Loss& loss) { return loss.field == "total_tokens"; });
  return launch;
}

/// Whose file the plan is for: as a note on the page, and all of it.
struct LaunchText {
  std::string note, whole;
};

/// Member `for` of the result, and the same for people.
LaunchText for_trainer(const planner::SearchRequest& wanted, const JobRequest& request,
                       const planner::SearchResult& result, nlohmann::json& json) {
  if (wanted.trainer == nullptr) return {};
  const planner::launch::TrainerVersion& version = *planner::launch::find_trainer(wanted.trainer->trainer);
  const planner::launch::Launch launch = launched(*wanted.trainer, request, result);
  auto& listed = json["for"] = {{"trainer", version.name},
                                {"software", version.software},
                                {"version", version.version},
                                {"version_date", version.date}};
  listed["not_expressed"] = nlohmann::json::array();
  listed["asks"] = nlohmann::json::array();
  for (const planner::TrainerRule& rule : wanted.trainer->rules) {
    listed["asks"].push_back({{"field", rule.field}, {"what", rule.says}});
  }
  LaunchText text{fmt::format("{} {} ({})", version.software, version.version, version.date),
                  fmt::format("for {} {} of {}, priced as stack {}", version.software, version.version, version.date,
                              wanted.job.plan.stack)};
  if (result.best.empty()) return {text.note, text.whole + "\n"};
  std::string lost;
  text.whole += launch.losses.empty()
                    ? fmt::format("; trivium export PLAN --to {} writes all of the best plan\n", version.name)
                    : ":\n";
  for (const planner::launch::Loss& loss : launch.losses) {
    listed["not_expressed"].push_back({{"field", loss.field}, {"what", loss.what}});
    text.whole += fmt::format("  its file does not express {}: {}\n", loss.field, loss.what);
    lost += (lost.empty() ? "" : ", ") + loss.field;
  }
  if (!launch.defaults.empty()) {
    text.whole += fmt::format("  its file has Trivium's defaults of {}\n", planner::launch::text_of(launch.defaults));
  }
  text.note += "; its file loses " + (lost.empty() ? "nothing" : lost);
  return text;
}

/// What --all prints below the page, up to what the trainer's file has.
std::string details(const PlanNotes& notes, const planner::SearchRequest& wanted, const planner::SearchResult& result) {
  std::string text;
  if (!notes.trainers.empty()) {
    TrainerAnswer own{"(none: trivium)", {}, "no plan fits", ""};
    if (!result.best.empty()) own.best = result.best.front();
    text = trainers_table(notes.trainers, own, wanted.job.plan) + "\n";
  }
  return text + details_report(wanted, result);
}

void write_best(const PlanOptions& options, const JobRequest& request, const planner::SearchResult& result) {
  if (options.output.empty() || result.best.empty()) return;
  program::PlanFile file = request.file;
  file.job.plan = result.best.front().plan;
  base::write_file_atomically(options.output, base::json_text(program::to_json(file), 2) + "\n");
}

int run(const PlanOptions& options) {
  JobRequest request = resolve(options.job);
  check_study_options(options.studies, request);
  check_trial_options(options.trials);
  const std::optional<JobRequest> for_trainers =
      compares_trainers(options.space, request) ? std::optional(request) : std::nullopt;
  planner::SearchRequest wanted = search_request(options.space, request);
  wanted.best = std::max({1, options.best, options.trials.count});  // near-identical plans are worth a trial too
  wanted.others = options.best == 0 ? kOtherFamilies : 0;
  wanted.gap = options.best == 0 ? planner::kAnswerGap : 0;
  wanted.ignore_memory = options.ignore_memory;
  wanted.distinct = options.distinct;
  const Interrupts interrupts;
  const planner::Effort effort{options.threads, interrupts.token()};
  // Baselines run where the search leaves a core idle; where the search finds no plan, nobody needs them.
  std::stop_source enough;
  const std::stop_callback interrupted(effort.stop, [&] { enough.request_stop(); });
  std::future<std::vector<planner::Baseline>> naive;
  if (options.all || options.json) {
    naive =
        std::async(std::launch::async, [&] { return planner::baselines(wanted, options.threads, enough.get_token()); });
  }
  const planner::SearchResult result = search(wanted, options, interrupts);
  if (result.best.empty()) enough.request_stop();
  nlohmann::json json = result_json(request, wanted, result);
  const LaunchText launch = for_trainer(wanted, request, result, json);
  PlanNotes notes;
  notes.launch = launch.note;
  notes.output = options.output;
  notes.listed = static_cast<std::size_t>(options.best);
  notes.own_runtime = for_trainers.has_value();
  if (for_trainers && !interrupts.happened()) {
    notes.trainers = trainer_answers(options.space, *for_trainers, wanted, result, effort, json);
  }
  const std::string compared = interrupts.happened() || !naive.valid() ? "" : beside(wanted, result, naive.get(), json);
  if (!interrupts.happened()) notes.batch = other_batch(wanted, result, effort, json);
  if (!result.best.empty()) add_whole_training(wanted, result.best.front(), json);
  const std::string studied = [&] {
    ProgressLine line;
    planner::Effort studying = effort;
    studying.says = [&](const std::string& words) { line.show("looking at " + words); };
    return study(options.studies, wanted, result, studying, json);
  }();
  write_best(options, request, result);
  const std::string trials = write_trials(options.trials, request, result, json);
  const std::string hint = interrupts.happened() ? "" : fewer_ranks(wanted, result, effort, json);
  const bool nothing_fits_it = result.best.empty() && !interrupts.happened();
  if (nothing_fits_it) {
    ProgressLine line;
    planner::Effort looking = effort;
    looking.says = [&](const std::string& words) { line.show("no plan fits; looking " + words); };
    notes.relaxations = planner::relaxations(wanted, kRelaxationsSaid, looking);
    json["relaxations"] = relaxations_json(notes.relaxations);
  }
  if (options.json) {
    if (options.show_space) json["space"] = space_json(wanted);
    print_json(json);
  } else {
    if (options.show_space) print(space_report(wanted, result));
    print(plan_page(request, wanted, result, notes));
    if (options.all) print("\n" + details(notes, wanted, result) + launch.whole + compared);
    print(studied + trials);
  }
  if (!hint.empty()) base::say("hint: {}\n", hint);
  tell_unmeasured(options.job);
  if (interrupts.happened() && !nothing_fits_it) {
    // A search that ran to its end knows that nothing fits, even if something after it was interrupted.
    if (result.best.empty() && result.proved)
      throw base::Failure(base::ErrorKind::kNoPlan, nothing_fits(wanted, result, {}));
    throw base::Failure(base::ErrorKind::kInterrupted, result.best.empty()
                                                           ? "interrupted before any plan was simulated"
                                                           : "interrupted; the best plans so far were kept");
  }
  if (result.best.empty())
    throw base::Failure(base::ErrorKind::kNoPlan, nothing_fits(wanted, result, notes.relaxations));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Search the fastest plan that fits; given plan options stay fixed");
  add_job_options(*command, options->job);
  add_price_option(*command, options->job);
  add_space_options(*command, options->space);
  add_study_options(*command, options->studies);
  add_trial_options(*command, options->trials);
  add_output(*command, "-o,--output", options->output, "Write the best plan's file", OutputKind::kPlan);
  command
      ->add_option("--best", options->best,
                   "Prove the N fastest plans, near-identical ones included; without it the fastest, and the most "
                   "promising plan of other families")
      ->check(CLI::Range(1, kMostBest));
  command->add_option("--threads", options->threads, "Threads of the search; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_flag("--distinct", options->distinct, "Of --best, plans that differ in tensor, pipeline or data");
  command->add_flag("--ignore-memory", options->ignore_memory, "Include plans that exceed device memory");
  command->add_flag("--space", options->show_space, "Print the search space, field by field");
  command->add_flag("--all", options->all, "Print all figures, other families, rejected plans and naive splits");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace trivium::cli
