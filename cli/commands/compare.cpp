// trivium compare: plans side by side, and where the others lose or win against the first.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/render/figures.h"
#include "cli/render/render.h"
#include "planner/advice/why_not.h"
#include "program/plan/differences.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/predict/simulate.h"

namespace trivium::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> files;
  std::string cluster;
  bool ignore_memory = false;
  bool json = false;
};

/// One plan of the comparison: simulated, or why it could not be.
struct Compared {
  std::string file;
  JobRequest request;
  std::optional<simulator::Simulation> simulation;
  std::string refused;
};

Compared look_at(const std::string& file, const CompareOptions& options) {
  JobOptions job;
  job.plan_path = file;
  job.cluster = options.cluster;
  Compared compared{file, resolve_plan(job), {}, ""};
  try {
    compared.simulation = predict(compared.request, options.ignore_memory).simulation;
  } catch (const base::Failure& failure) {
    if (failure.error().kind != base::ErrorKind::kNoPlan) throw;
    compared.refused = failure.error().message;
  }
  return compared;
}

std::string text_of(const std::vector<Compared>& all) {
  Table table({"<plan", "<split", "iteration", "expected", "90 % from", "to", "tokens/s", "MFU", "peak memory", "fits",
               "to the first"});
  const auto& first = all.front().simulation;
  for (const Compared& c : all) {
    const std::string split = program::summary(c.request.file.job.plan);
    if (!c.simulation) {
      table.add({c.file, split, "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const std::string change =
        first ? fmt::format("{:+.1f} %", 100 * (c.simulation->iteration_s / first->iteration_s - 1)) : "-";
    const simulator::Certainty& sure = c.simulation->certainty;
    const double middle = c.simulation->iteration_s;
    table.add({c.file, split, seconds(middle), seconds_beside(sure.expected_s, middle),
               seconds_beside(sure.iteration_s.low, middle), seconds_beside(sure.iteration_s.high, middle),
               integer(c.simulation->tokens_per_s), simulator::mfu_text(c.simulation->mfu, c.request.file.job.plan),
               size(c.simulation->peak_memory_bytes), simulator::probability_text(sure.fit_probability), change});
  }
  std::string text = table.text();
  for (const Compared& c : all) {
    if (!c.simulation) text += fmt::format("\n{}: {}\n", c.file, c.refused);
  }
  for (std::size_t i = 1; i < all.size() && first; ++i) {
    if (!all[i].simulation) continue;
    text += fmt::format("\n{} against {}:\n", all[i].file, all.front().file);
    for (const auto& d : program::differences(all.front().request.file.job.plan, all[i].request.file.job.plan)) {
      text += fmt::format("  {} {} for {}\n", d.field, d.after, d.before);
    }
    for (const std::string& line : planner::where_they_differ(*first, *all[i].simulation)) text += "  " + line + "\n";
  }
  return text;
}

nlohmann::json json_of(const std::vector<Compared>& all) {
  nlohmann::json json{{"schema", "trivium.comparison/1"}};
  auto& plans = json["plans"] = nlohmann::json::array();
  for (const Compared& c : all) {
    nlohmann::json one =
        c.simulation ? headline_json(*c.simulation, c.request.file.job.plan) : nlohmann::json::object();
    one["file"] = c.file;
    one["model"] = c.request.file.job.model.name;
    one["cluster"] = c.request.cluster.name;
    one["plan"] = program::to_json(c.request.file.job.plan);
    one["refused"] = c.simulation ? nlohmann::json() : nlohmann::json(c.refused);
    if (c.simulation) one["breakdown_s"] = breakdown_json(*c.simulation);
    plans.push_back(std::move(one));
  }
  return json;
}

void run(const CompareOptions& options) {
  if (options.files.size() < 2) throw base::Failure(base::ErrorKind::kUsage, "give two plan files or more");
  std::vector<Compared> all;
  for (const std::string& file : options.files) all.push_back(look_at(file, options));
  if (options.json) {
    print_json(json_of(all));
  } else {
    print(text_of(all));
  }
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Set plans side by side, and say where they differ");
  command->add_option("PLAN", options->files, "Plan files, the one to compare with first")
      ->required()
      ->type_name("FILE");
  command->add_option("--cluster", options->cluster, "Override the plans' cluster");
  command->add_flag("--ignore-memory", options->ignore_memory, "Also simulate plans that do not fit");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
