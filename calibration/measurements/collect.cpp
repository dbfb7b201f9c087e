#include "calibration/measurements/collect.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/importer.h"
#include "hardware_profiles/load.h"

namespace trivium::calibration {
namespace {

/// What a log says of the run is what the plan before it says.
void check_same_run(const imports::TrainingLog& log, const program::Job& job) {
  const auto differs = [&](const char* what, auto logged, std::int64_t planned) {
    if (!logged || *logged == planned) return;
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: ran with {} {}, its plan says {}", log.file, what, *logged, planned));
  };
  differs("global batch", log.global_batch, job.training.global_batch);
  differs("tensor", log.tensor, job.plan.tensor);
  differs("pipeline", log.pipeline, job.plan.pipeline);
  differs("data", log.data, job.plan.data);
}

/// Takes one file after the other.
class Collector {
 public:
  void take(const std::string& path) {
    GivenFile file{path, base::read_file(path)};
    const bool packed = imports::is_gzip(file.text);
    if (packed) file.text = imports::unpacked(file.text, path);
    const Importer& importer = importer_of(file.text, path);
    if (packed && importer.by_path) {
      throw base::Failure(base::ErrorKind::kInput,
                          path +
                              ": is compressed; gunzip it first (traces, logs and outputs of nccl-tests and "
                              "nvidia-smi are read as they are)");
    }
    path_ = path;
    try {
      std::visit([this](auto&& content) { add(std::move(content)); }, importer.read(file));
    } catch (const nlohmann::json::exception&) {
      throw base::Failure(
          base::ErrorKind::kInput,
          fmt::format("{}: a member has another type than its kind of file gives it; was it edited?", path));
    }
  }

  Collected collected() { return std::move(all_); }

 private:
  void add(OwnRun run) {
    all_.record_files.push_back(path_);
    name_cluster(run.record.cluster, run.cluster_at);
    all_.measurements.records.push_back(std::move(run.record));
  }

  void add(program::PlanFile plan) {
    job_ = plan.job;
    all_.plans.push_back(std::move(plan));
    name_cluster(all_.plans.back().cluster, path_ + "#/cluster");
  }

  void add(hardware::Node profile) { all_.profile = std::move(profile); }

  void add(imports::CollectiveTimes times) { all_.measurements.collectives.push_back(std::move(times)); }

  void add(imports::GpuTopology topology) { all_.measurements.topologies.push_back(std::move(topology)); }

  void add(imports::KernelTrace trace) { all_.measurements.traces.push_back({std::move(trace), job_}); }

  void add(const imports::TrainingLog& log) {
    if (!job_) {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format("{}: a log says how long iterations took, not what was run; give its plan file before "
                      "it (trivium import makes one of the trainer's arguments)",
                      path_));
    }
    check_same_run(log, *job_);
    all_.measurements.jobs.push_back(
        {*job_, log.typical_iteration_s(), log.peak_bytes,
         fmt::format("{} log {}{}", log.trainer, path_, log.perturbed ? " (with timers that synchronise)" : "")});
  }

  void add(std::vector<PublishedRun> runs) {
    for (PublishedRun& run : runs) {
      if (run.tier == "C" || !run.timed()) continue;
      if (!all_.cluster) {
        all_.cluster = run.cluster;
        all_.cluster_of = path_;
      }
      if (run.hardware != all_.cluster->groups.front().node.name) continue;
      all_.measurements.jobs.push_back(
          {std::move(run.job), run.iteration_s, run.peak_bytes, run.case_name + " in " + path_});
    }
  }

  void name_cluster(const nlohmann::json& cluster, const std::string& where) {
    if (all_.cluster || cluster.is_null()) return;
    all_.cluster = hardware::cluster_at(cluster, where);
    all_.cluster_of = where;
  }

  Collected all_;
  std::string path_;                 ///< of the file that is taken
  std::optional<program::Job> job_;  ///< of the plan before it
};

}  // namespace

Collected collect_measurements(const std::vector<std::string>& files) {
  Collector collector;
  for (const std::string& file : files) collector.take(file);
  return collector.collected();
}

}  // namespace trivium::calibration
