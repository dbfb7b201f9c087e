// trivium scale: the best plan on more and more devices, drawn.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/space_options.h"
#include "cli/options/values.h"
#include "cli/process/interrupts.h"
#include "cli/render/figures.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/price_text.h"
#include "planner/advice/studies.h"
#include "program/plan/job_json.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/studies/whole_training.h"

namespace trivium::cli {
namespace {

constexpr int kWidth = 40;  // columns of the longest bar

struct ScaleOptions {
  JobOptions job;
  SpaceOptions space;
  std::string curve = "both", csv;
  std::vector<int> counts;
  int threads = 0;
  bool json = false;
};

/// One of the two curves.
struct Curve {
  std::string name;
  std::vector<planner::ScalePoint> points;
};

std::optional<simulator::WholeTraining> training_of(const JobRequest& request, const planner::ScalePoint& point) {
  if (!point.best) return std::nullopt;
  program::Job job = request.file.job;
  job.plan = point.best->plan;
  hardware::Cluster cluster = request.cluster;
  cluster.groups.front().count = point.nodes;
  return simulator::whole_training(job, cluster, point.best->simulation);
}

/// Throughput as a bar; `|` where it would be if every device did as much as at the best count.
std::string bar(double value, double ideal, double most) {
  const auto columns = [&](double v) { return static_cast<std::size_t>(v / most * kWidth + 0.5); };
  std::string text(columns(value), '#');
  if (columns(ideal) > text.size()) text.resize(columns(ideal), '.');
  if (columns(ideal) > columns(value)) text.back() = '|';
  return text;
}

std::string text_of(const JobRequest& request, const Curve& curve) {
  double most = 0;
  for (const auto& p : curve.points) {
    if (p.best) most = std::max(most, p.best->simulation.tokens_per_s / p.efficiency);
  }
  Table table({"devices", "batch", "iteration", "expected", "90 % from", "to", "tokens/s",
               simulator::mfu_title("MFU", request.file.job.plan), "efficiency", "training", "price", "<best plan"});
  std::string drawing;
  for (const planner::ScalePoint& p : curve.points) {
    if (!p.best) {
      table.add({std::to_string(p.ranks), std::to_string(p.global_batch), "-", "-", "-", "-", "-", "-", "-", "-", "-",
                 p.refused});
      drawing += fmt::format("  {:>7}  no plan\n", p.ranks);
      continue;
    }
    const simulator::Simulation& s = p.best->simulation;
    const auto whole = training_of(request, p);
    table.add({std::to_string(p.ranks), std::to_string(p.global_batch), seconds(s.iteration_s),
               seconds_beside(s.certainty.expected_s, s.iteration_s),
               seconds_beside(s.certainty.iteration_s.low, s.iteration_s),
               seconds_beside(s.certainty.iteration_s.high, s.iteration_s), integer(s.tokens_per_s), percent(s.mfu),
               percent(p.efficiency), whole ? duration(whole->seconds) : "-",
               whole && whole->cost_usd ? dollars(*whole->cost_usd) : "-", program::summary(p.best->plan)});
    drawing += fmt::format("  {:>7}  {}\n", p.ranks, bar(s.tokens_per_s, s.tokens_per_s / p.efficiency, most));
  }
  return fmt::format(
      "{} scaling, {}\n\n{}\n  devices  tokens per second; | is where it would be if every device did as much as at "
      "the best count\n{}\n",
      heading(curve.name), curve.name == "strong" ? "the batch stays" : "the batch grows with the devices",
      table.text(), drawing);
}

nlohmann::json json_of(const JobRequest& request, const std::vector<Curve>& curves) {
  nlohmann::json json{
      {"schema", "trivium.scaling/1"}, {"model", request.file.job.model.name}, {"cluster", request.cluster.name}};
  if (request.file.job.training.total_tokens > 0) json["price"] = hardware::price_text(request.cluster);
  for (const Curve& curve : curves) {
    auto& points = json[curve.name] = nlohmann::json::array();
    for (const planner::ScalePoint& p : curve.points) {
      nlohmann::json one = p.best ? headline_json(p.best->simulation, p.best->plan) : nlohmann::json::object();
      one["devices"] = p.ranks;
      one["nodes"] = p.nodes;
      one["global_batch"] = p.global_batch;
      one["efficiency"] = p.best ? nlohmann::json(p.efficiency) : nlohmann::json();
      one["plan"] = p.best ? program::to_json(p.best->plan) : nlohmann::json();
      one["refused"] = p.best ? nlohmann::json() : nlohmann::json(p.refused);
      if (const auto whole = training_of(request, p)) {
        one["training_s"] = whole->seconds;
        one["energy_joules"] = whole->energy_joules;
        one["cost_usd"] = whole->cost_usd ? nlohmann::json(*whole->cost_usd) : nlohmann::json();
      }
      points.push_back(std::move(one));
    }
  }
  return json;
}

std::string csv_of(const JobRequest& request, const std::vector<Curve>& curves) {
  std::string text =
      "curve,devices,nodes,global_batch,iteration_s,tokens_per_s,mfu,efficiency,peak_memory_bytes,training_s,cost_usd,"
      "plan\n";
  for (const Curve& curve : curves) {
    for (const planner::ScalePoint& p : curve.points) {
      text += fmt::format("{},{},{},{},", curve.name, p.ranks, p.nodes, p.global_batch);
      if (p.best) {
        const simulator::Simulation& s = p.best->simulation;
        const auto whole = training_of(request, p);
        text += fmt::format("{},{},{},{},{},{},{},{}\n", s.iteration_s, s.tokens_per_s, s.mfu, p.efficiency,
                            s.peak_memory_bytes, whole ? fmt::format("{}", whole->seconds) : "",
                            whole && whole->cost_usd ? fmt::format("{}", *whole->cost_usd) : "",
                            program::summary(p.best->plan));
      } else {
        text += ",,,,,,,\n";
      }
    }
  }
  return text;
}

std::vector<int> counts_of(const ScaleOptions& options, const JobRequest& request) {
  if (options.counts.empty()) return planner::scale_counts(request.cluster.devices());
  std::vector<int> counts = options.counts;
  std::sort(counts.begin(), counts.end());
  if (counts.back() > request.cluster.devices()) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--devices {}: the cluster has {} devices", counts.back(),
                                                             request.cluster.devices()));
  }
  return counts;
}

int run(const ScaleOptions& options) {
  JobRequest request = resolve(options.job);
  if (!request.cluster.homogeneous()) {
    throw base::Failure(base::ErrorKind::kUsage, "scaling needs a cluster of one kind of node, like NAME:N");
  }
  const planner::SearchRequest wanted = search_request(options.space, request);
  const std::vector<int> counts = counts_of(options, request);
  const Interrupts interrupts;
  const planner::Effort effort{options.threads, interrupts.token()};
  std::vector<Curve> curves;
  if (options.curve != "weak") curves.push_back({"strong", planner::scaling(wanted, counts, false, effort)});
  if (options.curve != "strong") curves.push_back({"weak", planner::scaling(wanted, counts, true, effort)});
  if (!options.csv.empty()) base::write_file_atomically(options.csv, csv_of(request, curves));
  if (options.json) {
    print_json(json_of(request, curves));
  } else {
    for (const Curve& curve : curves) print(text_of(request, curve));
    const std::string prices = hardware::price_text(request.cluster);
    if (request.file.job.training.total_tokens > 0 && !prices.empty()) print(fmt::format("prices at {}\n", prices));
  }
  if (interrupts.happened()) {
    throw base::Failure(base::ErrorKind::kInterrupted, "interrupted; the points so far were kept");
  }
  const bool any = std::any_of(curves.begin(), curves.end(), [](const Curve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(), [](const auto& p) { return p.best.has_value(); });
  });
  if (!any) throw base::Failure(base::ErrorKind::kNoPlan, "no plan fits on any of the counts of devices");
  return 0;
}

}  // namespace

void add_scale(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ScaleOptions>();
  CLI::App* command = app.add_subcommand("scale", "Best plans on more and more devices: strong and weak scaling");
  add_job_options(*command, options->job);
  add_price_option(*command, options->job);
  add_space_options(*command, options->space);
  command->add_option("--curve", options->curve, "Strong: the batch stays. Weak: it grows with the devices")
      ->check(one_of({"strong", "weak", "both"}))
      ->capture_default_str();
  command->add_option("--devices", options->counts, "Counts of devices; default: all, halved up to six times")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostRanks))
      ->type_name("N,N,...");
  add_output(*command, "--csv", options->csv, "Write the curves as a table", OutputKind::kTable);
  command->add_option("--threads", options->threads, "Threads of the searches; 0: all cores")
      ->check(CLI::Range(0, kMostThreads));
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace trivium::cli
