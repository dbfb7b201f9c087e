#include "calibration/measurements/importer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/refuse.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/trivium_trace.h"
#include "hardware_profiles/load.h"

namespace trivium::calibration {
namespace {

using base::refuse;
using imports::FileText;

FileContent read_record(const GivenFile& file) {
  return OwnRun{program::run_record_from_json(base::read_json_file(file.path), file.path),
                file.path + "#/plan/cluster"};
}

FileContent read_plan(const GivenFile& file) { return program::read_plan_file(file.path); }

FileContent read_profile(const GivenFile& file) {
  return hardware::node_from_json(base::read_json_file(file.path), file.path);
}

FileContent read_table(const GivenFile& file) { return read_published_runs(file.path); }

FileContent read_collectives(const GivenFile& file) { return imports::read_nccl_tests(file.text, file.path); }

FileContent read_topology(const GivenFile& file) { return imports::read_topology(file.text, file.path); }

FileContent read_trace(const GivenFile& file) {
  const imports::ChromeTrace trace = imports::read_chrome_trace(file.text, file.path);
  if (!imports::is_run_trace(trace)) return imports::read_kineto(trace);
  return OwnRun{imports::run_record_of(trace), file.path + "#/otherData/trivium.run~11/plan/cluster"};
}

FileContent read_export(const GivenFile& file) { return imports::read_nsight(file.path); }

FileContent read_log(const GivenFile& file) { return imports::read_training_log(file.text, file.path); }

// A new one is a reader in this folder and its row here. The first that takes a file reads it.
constexpr std::array<Importer, 9> kImporters{{
    {.name = "run records",
     .help = "Run records and traces of ours",
     .schemas = {"trivium.run/1"},
     .read = read_record,
     .by_path = true},
    {.name = "plans", .schemas = {"trivium.plan/1", "trivium.plan-result/1"}, .read = read_plan, .by_path = true},
    {.name = "profiles", .help = "profiles", .schemas = {"trivium.hardware/1"}, .read = read_profile, .by_path = true},
    {.name = "tables of published runs",
     .help = "tables of published runs",
     .sniff = is_published_runs,
     .read = read_table,
     .by_path = true},
    {.name = "nccl-tests", .help = "nccl-tests", .sniff = imports::is_nccl_tests, .read = read_collectives},
    {.name = "nvidia-smi topo -m", .help = "nvidia-smi topo -m", .sniff = imports::is_topology, .read = read_topology},
    {.name = "Chrome traces", .help = "PyTorch traces", .sniff = imports::is_chrome_trace, .read = read_trace},
    {.name = "Nsight Systems exports (SQLite)",
     .help = "Nsight Systems SQLite",
     .sniff = imports::is_nsight,
     .read = read_export,
     .by_path = true},
    {.name = "logs of Megatron-LM, DeepSpeed or torchtitan",
     .help = "logs of Megatron-LM, DeepSpeed and torchtitan (after their plan)",
     .sniff = imports::is_training_log,
     .read = read_log},
}};

std::string listed(std::string_view Importer::*member) {
  std::string text;
  for (const Importer& importer : kImporters) {
    if (importer.help.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(importer.*member);
  }
  return text;
}

/// Traces and records hold documents that have schemas of their own, so marks go before schemas.
const Importer& importer_of_schema(std::string_view text, const std::string& file) {
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse(file, "is JSON that ends early or is broken");
  const auto schema = document.find("schema");
  if (schema == document.end() || !schema->is_string()) {
    refuse(file, "is JSON, but no record, profile or plan of ours, no Chrome trace and no output of nccl-tests -J");
  }
  const auto name = schema->get<std::string>();
  for (const Importer& importer : kImporters) {
    if (std::find(importer.schemas.begin(), importer.schemas.end(), name) != importer.schemas.end()) return importer;
  }
  refuse(file, "is a " + name + ", from which nothing is learnt; give run records, profiles or plans");
}

}  // namespace

std::span<const Importer> importers() { return kImporters; }

const Importer& importer_of(std::string_view text, const std::string& file) {
  const FileText content(text);
  if (content.is_empty()) refuse(file, "is empty");
  for (const Importer& importer : kImporters) {
    if (importer.sniff != nullptr && importer.sniff(content)) return importer;
  }
  if (content.form() == FileText::Form::kJson) return importer_of_schema(text, file);
  refuse(file, "is nothing that is known: " + listed(&Importer::name));
}

std::string importers_help() { return listed(&Importer::help); }

}  // namespace trivium::calibration
