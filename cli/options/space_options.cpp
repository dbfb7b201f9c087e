#include "cli/options/space_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/values.h"
#include "planner/space/usual_bounds.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "simulator/placement/defaults.h"

namespace trivium::cli {
namespace {

using planner::Constraint;

constexpr double kMostFitProbability = 0.999;

void fix(const std::string& text, JobRequest& request) {
  const auto [field, value] = planner::parse_assignment("--fix", text);
  program::Job& job = request.file.job;
  const std::string before = program::text_of(job.plan, field);
  program::set_field(job.plan, job.training, field, value);
  const std::string after = program::text_of(job.plan, field);
  if (request.fixed.contains(field) && before != after) {
    fail_usage(fmt::format("{} is fixed twice, to {} and to {}", field, before, after));
  }
  request.fixed.insert(field);
}

/// The stack decides what attention takes for granted.
void take_stack(const planner::TrainerSpace& trainer, JobRequest& request) {
  program::Plan& plan = request.file.job.plan;
  if (!request.fixed.contains("stack")) plan.stack = trainer.stack;
  if (!request.fixed.contains("attention")) plan.attention = simulator::best_attention(plan, request.cluster);
}

void check_fixed(const Constraint& constraint, const JobRequest& request) {
  for (const std::string& field : request.fixed) {
    const bool concerns = field == constraint.field || field.starts_with(constraint.field + ".");
    if (concerns && !constraint.allows(request.file.job.plan)) {
      fail_usage(fmt::format("{} does not allow {}, to which {} is fixed", constraint.text(),
                             program::text_of(request.file.job.plan, field), field));
    }
  }
}

void add_options(CLI::App& command, SpaceOptions& options, bool chooses_trainer) {
  const char* group = "Space";
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* help, const char* type) {
    command.add_option(name, values, help)->type_name(type)->group(group)->expected(1)->take_all();
  };
  add("--fix", options.fix, "Keep a plan field at a value", "FIELD=VALUE");
  add("--forbid", options.forbid, "Leave a feature, or one value of a field, out", "FIELD[=VALUE]");
  add("--allow", options.allow,
      "Also search what is left out unless allowed: compression, overlap.tensor, overlap.expert, "
      "recompute_modules, context_heads, expert_dispatch, expert_tensor, fp8_parameter_gather, on heterogeneous nodes "
      "offload",
      "FEATURE");
  std::vector<std::string> trainers;
  for (const planner::TrainerSpace& space : planner::trainer_spaces()) trainers.emplace_back(space.trainer);
  if (chooses_trainer) {
    command
        .add_option(
            "--for", options.trainer,
            fmt::format("Only plans of {}; priced as the trainer runs them. Without it: Trivium's own runtime, next "
                        "to a line for each trainer",
                        fmt::join(trainers, ", ")))
        ->check(one_of(trainers))
        ->group(group);
  }
  add("--min", options.min, "Least value of a plan field", "FIELD=N");
  add("--max", options.max, "Largest value of a plan field", "FIELD=N");
  command
      .add_option("--fit-probability", options.fit_probability,
                  "Plans must fit the memory with this probability, by how far measured runs were off; 0: as predicted")
      ->check(CLI::Range(0.0, kMostFitProbability))
      ->group(group)
      ->capture_default_str();
}

}  // namespace

void add_space_options(CLI::App& command, SpaceOptions& options) { add_options(command, options, true); }

void add_bound_options(CLI::App& command, SpaceOptions& options) { add_options(command, options, false); }

planner::SearchRequest search_request(const SpaceOptions& options, JobRequest& request) {
  for (const std::string& text : options.fix) fix(text, request);
  const planner::TrainerSpace* trainer = planner::find_trainer_space(options.trainer);
  if (trainer != nullptr) take_stack(*trainer, request);
  planner::SearchRequest search;
  const auto add = [&](Constraint::Kind kind, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      search.constraints.push_back(planner::parse_constraint(kind, text));
      check_fixed(search.constraints.back(), request);
    }
  };
  for (const std::string& text : options.forbid) {
    if (std::find(options.allow.begin(), options.allow.end(), text) != options.allow.end()) {
      fail_usage(fmt::format("--allow {0} and --forbid {0} contradict each other", base::one_line(text)));
    }
  }
  add(Constraint::Kind::kForbid, options.forbid);
  add(Constraint::Kind::kMin, options.min);
  add(Constraint::Kind::kMax, options.max);
  const std::string& stack = request.file.job.plan.stack;
  for (planner::Constraint& constraint : planner::usual_bounds(request.cluster, stack, options.allow, request.fixed)) {
    search.constraints.push_back(std::move(constraint));
  }
  search.job = request.file.job;
  search.cluster = request.cluster;
  search.fixed = request.fixed;
  search.ranks = request.ranks;
  if (trainer != nullptr) search = planner::for_trainer(std::move(search), *trainer);
  return planner::with_fit_probability(planner::with_fields_settled(std::move(search)), options.fit_probability);
}

}  // namespace trivium::cli
