// Importers of measurements: which files hold some, how each is told by its content, and what reading it gives.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibration/measurements/file_text.h"
#include "calibration/measurements/kernel_trace.h"
#include "calibration/measurements/nccl_tests.h"
#include "calibration/measurements/published_row.h"
#include "calibration/measurements/topology.h"
#include "calibration/measurements/training_log.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

/// A run of ours. `cluster_at`: the file and the place in it that name the cluster.
struct OwnRun {
  program::RunRecord record;
  std::string cluster_at;
};

/// What one file says. Which plan a log or trace belongs to, and whose machine a row describes, follows from the other
/// files given with it (calibration/measurements/collect.h).
using FileContent =
    std::variant<OwnRun, program::PlanFile, hardware::Node, imports::CollectiveTimes, imports::GpuTopology,
                 imports::KernelTrace, imports::TrainingLog, std::vector<PublishedRun>>;

/// A file and its content, unpacked.
struct GivenFile {
  std::string path;
  std::string text;
};

/// One kind of file.
struct Importer {
  std::string_view name{};  ///< as sentences list it
  std::string_view help{};  ///< as `trivium calibrate --help` lists it; empty: neither lists it
  /// Whether a file is one of these; null: JSON documents that name one of `schemas`.
  bool (*sniff)(const imports::FileText& file) = nullptr;
  std::array<std::string_view, 2> schemas{};
  /// Errors: Failure(kInput) naming the file; nlohmann's where a member has another type than this kind gives it.
  FileContent (*read)(const GivenFile& file) = nullptr;
  bool by_path = false;  ///< opens the file itself, so that it cannot be compressed
};

/// All of them: the one list.
std::span<const Importer> importers();

/// Which one reads the file. `text` is unpacked already. Errors: Failure(kInput) naming what is read, for a file that
/// is none of them, or empty.
const Importer& importer_of(std::string_view text, const std::string& file);

/// What can be read, for a line of help.
std::string importers_help();

}  // namespace trivium::calibration
