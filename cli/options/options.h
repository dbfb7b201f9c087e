// Job options: every command that needs a model, a cluster and a plan takes them in the same way.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"

namespace trivium::cli {

inline constexpr int kMostRanks = 1 << 20;
inline constexpr int kMostThreads = 4096;

/// Does the work, whose errors tell of "run record", with the file in that place.
template <class Work>
auto naming(const std::string& file, const Work& work) {
  constexpr std::string_view kUnnamed = "run record";
  try {
    return work();
  } catch (const base::Failure& failure) {
    const std::string& message = failure.error().message;
    if (!message.starts_with(kUnnamed)) throw;
    throw base::Failure(failure.error().kind, file + message.substr(kUnnamed.size()));
  }
}

/// Throws Failure(kUsage): the command line asks for what cannot be.
[[noreturn]] void fail_usage(const std::string& message);

/// What the user gave: a PLAN, a model and cluster, and fields of the plan and training as text.
struct JobOptions {
  std::string plan_path;
  std::string model;
  std::string cluster;
  int devices_per_node = 0;                         ///< 0: not given
  int ranks = 0;                                    ///< 0: not given
  std::string price;                                ///< of a device for an hour, where add_price_option was called
  int mtp = -1;                                     ///< modules of multi-token prediction; -1: as the model has them
  double mtp_loss_scale = 0;                        ///< 0: not given
  std::string tokens;                               ///< of the whole training, as people write them
  std::map<std::string, std::string> fields;        ///< by name of program::set_field: their texts
  std::map<std::string, const CLI::Option*> given;  ///< by field: the option, which knows whether it was given
  std::map<std::string, std::string> told;          ///< by field: what measurements tell where no option does
};

/// Adds PLAN, --model, --mtp, --cluster, --devices-per-node, --ranks, --tokens and one option for every plan and
/// training field. `options` must outlive the parse.
void add_job_options(CLI::App& command, JobOptions& options);

/// Adds --price to a command that prints what a training costs.
void add_price_option(CLI::App& command, JobOptions& options);

/// "--zero-stage" for the field "zero_stage", "--overlap-tensor" for "overlap.tensor".
std::string option_of(const std::string& field);

/// Whether `word` is an option that stands for `true` when it has no value.
bool is_flag_option(const std::string& word);

/// The job that the options mean.
struct JobRequest {
  program::PlanFile file;
  hardware::Cluster cluster;
  std::set<std::string> fixed;   ///< plan fields given as options
  std::set<std::string> chosen;  ///< training fields given as options
  int ranks = 0;
};

/// Reads PLAN where given, lets the options override it, and fills in what neither says: the sequence is the model's
/// longest, the precision what the devices do best (bf16, else fp16, on CPUs fp32), attention fused where devices and
/// stack have kernels for it. Errors: Failure(kUsage) for missing
/// or wrong options, Failure(kInput) for files and names.
JobRequest resolve(const JobOptions& options);

/// The cluster as it stands in a plan file: names stay names, files are taken in, so that the plan file stands alone.
nlohmann::json cluster_json(const std::string& text, const hardware::Cluster& cluster);

/// --devices-per-node for a command that takes --cluster.
CLI::Option* add_devices_per_node(CLI::App& command, int& devices);

/// Takes `devices` of every node, both in the cluster and in its form in a plan file; 0: takes them all. Errors:
/// Failure(kUsage) where a node cannot be taken so.
void take_devices_per_node(int devices, nlohmann::json& stored, hardware::Cluster& cluster);

/// As resolve, for commands that take one plan: with --ranks and without --data, `data` fills the ranks.
/// Errors: also Failure(kUsage) when the plan's ranks are not those of --ranks.
JobRequest resolve_plan(const JobOptions& options);

/// Says so where figures of `this-machine` are those of a common one, as nothing was measured on it yet.
void tell_unmeasured(const JobOptions& options);

}  // namespace trivium::cli
