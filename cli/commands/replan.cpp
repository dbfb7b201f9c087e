// trivium replan: better stage layers from what a run measured.
#include "calibration/replan/replan.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "program/plan/job_json.h"

namespace trivium::cli {
namespace {

struct ReplanOptions {
  std::string record, cluster, output;
  bool json = false;
};

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last;
  }
  return text;
}

std::string layers_text(const calibration::Replan& replan) {
  std::string text;
  for (const calibration::ChunkTimes& chunk : replan.chunks) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", chunk.proposed);
  }
  return text;
}

std::string report(const calibration::Replan& replan) {
  Table table(
      {"stage", "ranks", "a layer", "embedding, head", "layers", "micro-batch", "proposed", "micro-batch then"});
  for (const calibration::ChunkTimes& c : replan.chunks) {
    table.add({fmt::format("{}", c.stage), ranks_text(c.ranks), seconds(c.layer_s), seconds(c.ends_s),
               fmt::format("{}", c.layers), seconds(c.before_s), fmt::format("{}", c.proposed), seconds(c.after_s)});
  }
  std::string text = table.text();
  for (const calibration::Straggler& s : replan.stragglers) {
    text += fmt::format("straggler: rank {} (stage {}) takes {:.2f} times what the middle rank takes for a layer\n",
                        s.rank, s.stage, s.factor);
  }
  if (replan.stragglers.empty()) text += "no straggler: every rank's layers are near those of the middle one\n";
  if (!replan.limited.empty()) text += replan.limited + "\n";
  if (!replan.changed) {
    return text + fmt::format("the plan stays: no other stage layers are predicted to beat its {} an iteration\n",
                              seconds(replan.measured_iteration_s));
  }
  return text + fmt::format("measured {} an iteration; predicted {} with layers {}, {:.2f} times as fast\n",
                            seconds(replan.measured_iteration_s), seconds(replan.predicted_iteration_s),
                            layers_text(replan), replan.measured_iteration_s / replan.predicted_iteration_s);
}

nlohmann::json to_json(const calibration::Replan& replan) {
  nlohmann::json json{{"schema", "trivium.replan/1"},
                      {"plan", program::to_json(replan.plan)},
                      {"changed", replan.changed},
                      {"measured_iteration_s", replan.measured_iteration_s},
                      {"predicted_iteration_s", replan.predicted_iteration_s}};
  json["limited"] = replan.limited.empty() ? nlohmann::json() : nlohmann::json(replan.limited);
  auto& stages = json["stages"] = nlohmann::json::array();
  for (const calibration::ChunkTimes& c : replan.chunks) {
    stages.push_back({{"stage", c.stage},
                      {"ranks", c.ranks},
                      {"layer_s", c.layer_s},
                      {"ends_s", c.ends_s},
                      {"layers", c.layers},
                      {"micro_batch_s", c.before_s},
                      {"proposed_layers", c.proposed},
                      {"proposed_micro_batch_s", c.after_s}});
  }
  auto& stragglers = json["stragglers"] = nlohmann::json::array();
  for (const calibration::Straggler& s : replan.stragglers) {
    stragglers.push_back({{"rank", s.rank}, {"stage", s.stage}, {"factor", s.factor}});
  }
  return json;
}

void run(const ReplanOptions& options) {
  const program::RunRecord record = program::run_record_from_json(base::read_json_file(options.record), options.record);
  const hardware::Cluster cluster = options.cluster.empty()
                                        ? hardware::cluster_at(record.cluster, options.record + "#/plan/cluster")
                                        : hardware::load_cluster(options.cluster);
  const calibration::Replan replan = naming(options.record, [&] { return calibration::replan(record, cluster); });
  if (!options.output.empty()) {
    program::PlanFile file{record.job, record.cluster};
    if (!options.cluster.empty()) file.cluster = cluster_json(options.cluster, cluster);
    file.job.plan = replan.plan;
    base::write_file_atomically(options.output, base::json_text(program::to_json(file), 2) + "\n");
  }
  if (options.json) return print_json(to_json(replan));
  print(report(replan));
}

}  // namespace

void add_replan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReplanOptions>();
  CLI::App* command = app.add_subcommand("replan", "Propose better stage layers from what a run measured");
  command->add_option("RUN", options->record, "What `trivium run --record` wrote")->required()->type_name("FILE");
  command->add_option("--cluster", options->cluster, "Whose memory the layers must fit, instead of the run's");
  add_output(*command, "-o,--output", options->output, "Write the proposal as a plan file", OutputKind::kPlan);
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
