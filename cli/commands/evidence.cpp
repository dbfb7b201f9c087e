#include "cli/commands/evidence.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/content.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/training_log.h"
#include "calibration/measurements/trivium_trace.h"
#include "cli/options/options.h"
#include "hardware_profiles/load.h"

namespace trivium::cli {
namespace {

namespace imports = calibration::imports;

class Sorter {
 public:
  void take(const std::string& file) {
    std::string text = base::read_file(file);
    const bool packed = imports::is_gzip(text);
    if (packed) text = imports::unpacked(text, file);
    const imports::Content content = imports::content_of(text, file);
    if (packed && !is_read_as_text(content)) {
      throw base::Failure(base::ErrorKind::kInput,
                          file +
                              ": is compressed; gunzip it first (traces, logs and outputs of nccl-tests and "
                              "nvidia-smi are read as they are)");
    }
    try {
      take(content, text, file);
    } catch (const nlohmann::json::exception&) {
      throw base::Failure(
          base::ErrorKind::kInput,
          fmt::format("{}: a member has another type than its kind of file gives it; was it edited?", file));
    }
  }

  GivenEvidence sorted() { return std::move(given_); }

 private:
  static bool is_read_as_text(imports::Content content) {
    using imports::Content;
    return content == Content::kChromeTrace || content == Content::kNcclTests || content == Content::kTopology ||
           content == Content::kTrainingLog;
  }

  void take(imports::Content content, const std::string& text, const std::string& file) {
    switch (content) {
      case imports::Content::kRunRecord:
        given_.record_files.push_back(file);
        return take_record(program::run_record_from_json(base::read_json_file(file), file), file + "#/plan/cluster");
      case imports::Content::kPlan:
        plan_ = program::read_plan_file(file);
        given_.plans.push_back(*plan_);
        return name_cluster(plan_->cluster, file + "#/cluster");
      case imports::Content::kProfile:
        given_.profile = hardware::node_from_json(base::read_json_file(file), file);
        return;
      case imports::Content::kChromeTrace:
        return take_trace(imports::read_chrome_trace(text, file), file);
      case imports::Content::kNsight:
        given_.evidence.traces.push_back({imports::read_nsight(file), job()});
        return;
      case imports::Content::kNcclTests:
        given_.evidence.collectives.push_back(imports::read_nccl_tests(text, file));
        return;
      case imports::Content::kTopology:
        given_.evidence.topologies.push_back(imports::read_topology(text, file));
        return;
      case imports::Content::kTrainingLog:
        return take_log(imports::read_training_log(text, file), file);
      case imports::Content::kPublishedRuns:
        return take_table(file);
    }
  }

  std::optional<program::Job> job() const { return plan_ ? std::optional(plan_->job) : std::nullopt; }

  void name_cluster(const nlohmann::json& cluster, const std::string& where) {
    if (given_.cluster || cluster.is_null()) return;
    given_.cluster = cluster_at(cluster, where);
    given_.cluster_of = where;
  }

  void take_record(program::RunRecord record, const std::string& where) {
    name_cluster(record.cluster, where);
    given_.evidence.records.push_back(std::move(record));
  }

  void take_trace(const imports::ChromeTrace& trace, const std::string& file) {
    if (imports::is_run_trace(trace)) {
      given_.record_files.push_back(file);
      take_record(imports::run_record_of(trace), file + "#/otherData/trivium.run~11/plan/cluster");
    } else {
      given_.evidence.traces.push_back({imports::read_kineto(trace), job()});
    }
  }

  void take_log(const imports::TrainingLog& log, const std::string& file) {
    if (!plan_) {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format("{}: a log says how long iterations took, not what was run; give its plan file before "
                      "it (trivium import makes one of the trainer's arguments)",
                      file));
    }
    const program::Job& job = plan_->job;
    const auto differs = [&](const char* what, auto logged, std::int64_t planned) {
      if (!logged || *logged == planned) return;
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: ran with {} {}, its plan says {}", file, what, *logged, planned));
    };
    differs("global batch", log.global_batch, job.training.global_batch);
    differs("tensor", log.tensor, job.plan.tensor);
    differs("pipeline", log.pipeline, job.plan.pipeline);
    differs("data", log.data, job.plan.data);
    given_.evidence.jobs.push_back(
        {job, log.typical_iteration_s(), log.peak_bytes,
         fmt::format("{} log {}{}", log.trainer, file, log.perturbed ? " (with timers that synchronise)" : "")});
  }

  void take_table(const std::string& file) {
    for (calibration::PublishedRun& run : calibration::read_published_runs(file)) {
      if (run.tier == "C") continue;
      if (!given_.cluster) {
        given_.cluster = run.cluster;
        given_.cluster_of = file;
      }
      if (run.hardware != given_.cluster->groups.front().node.name) continue;
      given_.evidence.jobs.push_back(
          {std::move(run.job), run.iteration_s, run.peak_bytes, run.case_name + " in " + file});
    }
  }

  GivenEvidence given_;
  std::optional<program::PlanFile> plan_;
};

}  // namespace

GivenEvidence read_evidence(const std::vector<std::string>& files) {
  Sorter sorter;
  for (const std::string& file : files) sorter.take(file);
  return sorter.sorted();
}

}  // namespace trivium::cli
