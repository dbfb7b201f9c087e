#include "cli/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/tokens.h"
#include "cli/options/values.h"
#include "hardware_profiles/cluster_text.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/part_of_node.h"
#include "hardware_profiles/price_text.h"
#include "hardware_profiles/quantity_text.h"
#include "models/load.h"
#include "models/validate.h"
#include "program/plan/job_json.h"
#include "simulator/placement/defaults.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::cli {
namespace {

void add_option(CLI::App& command, JobOptions& options, const std::string& field, const char* values, const char* help,
                const std::string& group) {
  CLI::Option* option = command.add_option(option_of(field), options.fields[field], help)->type_name(values);
  options.given[field] = option->group(group);
}

void add_flag(CLI::App& command, JobOptions& options, const std::string& field, const char* help,
              const std::string& group) {
  CLI::Option* option = command.add_flag(option_of(field) + "{true}", options.fields[field], help);
  options.given[field] = option->group(group);
}

bool is_flag(const program::PlanField& field) { return field.kind == program::FieldKind::kFlag; }

void read_sources(const JobOptions& options, JobRequest& request) {
  program::PlanFile& file = request.file;
  if (!options.plan_path.empty()) file = program::read_plan_file(options.plan_path);
  if (!options.model.empty()) {
    const bool default_sequence = file.job.training.sequence == file.job.model.max_sequence;
    file.job.model = models::load_model(options.model);
    if (default_sequence) file.job.training.sequence = file.job.model.max_sequence;
  }
  if (!options.cluster.empty()) {
    request.cluster = hardware::load_cluster(options.cluster);
    file.cluster = cluster_json(options.cluster, request.cluster);
  } else if (!options.plan_path.empty()) {
    request.cluster = hardware::cluster_at(file.cluster, options.plan_path + "#/cluster");
  }
  take_devices_per_node(options.devices_per_node, file.cluster, request.cluster);
}

/// Modules of multi-token prediction as the options want them. A model's file that has some which are not asked for is
/// told of: published counts leave them out.
void set_modules(const JobOptions& options, models::Model& model) {
  if (options.mtp < 0 && !options.model.empty()) {
    const std::int64_t left_out = models::modules_left_out(options.model);
    if (left_out > 0) {
      base::say("note: {} has {} of multi-token prediction, left out; --mtp {} trains {}\n", base::one_line(model.name),
                left_out == 1 ? "a module" : fmt::format("{} modules", left_out), left_out,
                left_out == 1 ? "it" : "them");
    }
  }
  if (options.mtp >= 0) {
    try {
      model = models::with_modules(std::move(model), options.mtp);
    } catch (const base::Failure& failure) {
      fail_usage(fmt::format("--mtp {}: {}", options.mtp, failure.error().message));
    }
  }
  if (options.mtp_loss_scale == 0) return;
  if (!model.mtp) fail_usage("--mtp-loss-scale without modules of multi-token prediction; give --mtp 1");
  model.mtp->loss_scale = options.mtp_loss_scale;
}

/// Whether that many ranks run on the cores of the one node that the cluster is, though there are more of them.
bool takes_turns(int ranks, const hardware::Cluster& cluster) {
  program::Plan plan;
  plan.data = ranks;
  return simulator::shares_cores(plan, cluster);
}

void set_price(const std::string& text, hardware::Cluster& cluster) {
  const auto price = base::parse_price(text);
  if (!price) fail_usage("--price: " + price.error().message);
  if (!(price.value() > base::DollarsPerHour(0))) fail_usage("--price: must be above zero");
  hardware::set_device_price(cluster, price.value(),
                             fmt::format("--price, {} a device", hardware::exact_text(price.value())));
}

}  // namespace

void fail_usage(const std::string& message) { throw base::Failure(base::ErrorKind::kUsage, message); }

nlohmann::json cluster_json(const std::string& text, const hardware::Cluster& cluster) {
  return text.find(".json") == std::string::npos ? nlohmann::json(text) : hardware::to_json(cluster);
}

CLI::Option* add_devices_per_node(CLI::App& command, int& devices) {
  return command
      .add_option("--devices-per-node", devices, "Devices to use of every node: 64 of an NVL72 rack; default: all")
      ->type_name("N")
      ->check(CLI::Range(1, hardware::kMostClusterDevices));
}

void take_devices_per_node(int devices, nlohmann::json& stored, hardware::Cluster& cluster) {
  if (devices == 0) return;
  try {
    if (stored.is_string()) {
      std::vector<hardware::ClusterTerm> terms = hardware::parse_cluster_text(stored.get<std::string>());
      for (hardware::ClusterTerm& term : terms) term.devices = devices;
      stored = hardware::text_of(terms);
      cluster = hardware::load_cluster(stored.get<std::string>());
      return;
    }
    cluster = hardware::with_devices_per_node(std::move(cluster), devices);
    stored = hardware::to_json(cluster);
  } catch (const base::Failure& failure) {
    fail_usage(fmt::format("--devices-per-node {}: {}", devices, failure.error().message));
  }
}

std::string option_of(const std::string& field) {
  std::string option = "--" + field;
  std::replace(option.begin(), option.end(), '_', '-');
  std::replace(option.begin(), option.end(), '.', '-');
  return option;
}

bool is_flag_option(const std::string& word) {
  const auto& fields = program::plan_field_table();
  return std::any_of(fields.begin(), fields.end(),
                     [&](const program::PlanField& field) { return is_flag(field) && option_of(field.name) == word; });
}

void add_job_options(CLI::App& command, JobOptions& options) {
  command.add_option("PLAN", options.plan_path, "Plan file, or the JSON result of `trivium plan`")->type_name("FILE");
  command.add_option("--model", options.model, "Shipped name, file, or a Hugging Face config.json")
      ->type_name("NAME")
      ->group("Job");
  command
      .add_option("--mtp", options.mtp,
                  "Modules of multi-token prediction that are trained; 0: none, also where the model has some")
      ->type_name("N")
      ->group("Job")
      ->check(CLI::Range(0, static_cast<int>(models::kMostModules)));
  command.add_option("--mtp-loss-scale", options.mtp_loss_scale, "Weight of their mean loss in that of the model; 0.1")
      ->type_name("X")
      ->group("Job")
      ->check(CLI::Range(1e-9, 1e6));
  command.add_option("--cluster", options.cluster, "NAME:N, A:16+B:16, this-machine, or FILE.json")
      ->type_name("CLUSTER")
      ->group("Job");
  add_devices_per_node(command, options.devices_per_node)->group("Job");
  command.add_option("--ranks", options.ranks, "Devices to use; of this-machine also more, which take turns")
      ->group("Job")
      ->check(CLI::Range(1, kMostRanks));
  for (const program::TrainingField& field : program::training_field_table()) {
    add_option(command, options, field.name, field.values, field.help, "Training");
  }
  command.get_option("--sequence")->transform(sequence_suffixes());
  command.add_option("--tokens", options.tokens, "Tokens of the whole training: time, energy and price of it")
      ->type_name("N[K|M|B|T]")
      ->group("Training")
      ->excludes(command.get_option("--total-tokens"));
  for (const program::PlanField& field : program::plan_field_table()) {
    if (is_flag(field)) {
      add_flag(command, options, field.name, field.help, "Plan");
    } else {
      add_option(command, options, field.name, field.values, field.help, "Plan");
    }
  }
}

void add_price_option(CLI::App& command, JobOptions& options) {
  command
      .add_option("--price", options.price,
                  "What one device costs an hour (\"2.50 $/h\"), in place of the profile's price of a node")
      ->type_name("PRICE")
      ->group("Job");
}

JobRequest resolve(const JobOptions& options) {
  if (options.plan_path.empty() && options.model.empty()) fail_usage("no model; give --model NAME or a plan file");
  if (options.plan_path.empty() && options.cluster.empty())
    fail_usage("no cluster; give --cluster NAME:N or a plan file");
  JobRequest request;
  request.ranks = options.ranks;
  read_sources(options, request);
  set_modules(options, request.file.job.model);
  if (!options.price.empty()) set_price(options.price, request.cluster);
  program::Job& job = request.file.job;
  if (options.plan_path.empty()) job.plan.precision = simulator::best_precision(request.cluster);
  const auto& plan_fields = program::plan_fields();
  for (const auto& [field, text] : options.told) {
    if (field == "expert" && !job.model.experts) continue;  // what is exchanged all to all is something else then
    program::set_field(job.plan, job.training, field, text);
  }
  for (const auto& [field, text] : options.fields) {
    if (options.given.at(field)->empty()) continue;
    if (field == "total_tokens") {
      job.training.total_tokens = parse_tokens("--total-tokens", text);
      continue;
    }
    program::set_field(job.plan, job.training, field, text);
    const bool is_of_plan = std::find(plan_fields.begin(), plan_fields.end(), field) != plan_fields.end();
    (is_of_plan ? request.fixed : request.chosen).insert(field);
  }
  const bool says_attention = !options.plan_path.empty() || request.fixed.contains("attention");
  if (!says_attention) job.plan.attention = simulator::best_attention(job.plan, request.cluster);
  if (!options.tokens.empty()) job.training.total_tokens = parse_tokens("--tokens", options.tokens);
  if (job.training.sequence == 0) job.training.sequence = job.model.max_sequence;
  if (job.training.global_batch == 0) fail_usage("no batch; give --global-batch SAMPLES");
  if (request.ranks > request.cluster.devices() && !takes_turns(request.ranks, request.cluster)) {
    fail_usage(fmt::format("--ranks {}: the cluster has {} devices", request.ranks, request.cluster.devices()));
  }
  return request;
}

JobRequest resolve_plan(const JobOptions& options) {
  JobRequest request = resolve(options);
  if (request.ranks == 0) return request;
  program::Plan& plan = request.file.job.plan;
  const bool says_data = !options.plan_path.empty() || request.fixed.contains("data");
  const std::int64_t replica = std::int64_t{plan.tensor} * plan.context * plan.pipeline;
  if (!says_data && request.ranks % replica == 0) plan.data = static_cast<int>(request.ranks / replica);
  if (replica * plan.data != request.ranks) {
    fail_usage(fmt::format("--ranks {}: the plan has {} ranks (tensor {} x context {} x pipeline {} x data {})",
                           request.ranks, replica * plan.data, plan.tensor, plan.context, plan.pipeline, plan.data));
  }
  return request;
}

void tell_unmeasured(const JobOptions& options) {
  if (options.cluster != hardware::kThisMachine || std::filesystem::exists(hardware::this_machine_path())) return;
  base::say(
      "note: this machine was not measured yet and is taken for a common one; `trivium profile --quick` measures it\n");
}

}  // namespace trivium::cli
