#include "calibration/measurements/content.h"

#include <nlohmann/json.hpp>

#include "base/refuse.h"
#include "calibration/measurements/text_lines.h"

namespace trivium::calibration::imports {
namespace {

using base::refuse;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Content json_content(std::string_view text, const std::string& file) {
  // Before schemas: traces and records hold documents that have their own.
  if (has(text, "\"traceEvents\"")) return Content::kChromeTrace;
  if (has(text, "\"out_of_place\"") || has(text, "\"nccl_version\"")) return Content::kNcclTests;
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse(file, "is JSON that ends early or is broken");
  const auto schema = document.find("schema");
  if (schema == document.end() || !schema->is_string()) {
    refuse(file, "is JSON, but no record, profile or plan of ours, no Chrome trace and no output of nccl-tests -J");
  }
  if (*schema == "trivium.run/1") return Content::kRunRecord;
  if (*schema == "trivium.plan/1" || *schema == "trivium.plan-result/1") return Content::kPlan;
  if (*schema == "trivium.hardware/1") return Content::kProfile;
  refuse(file,
         "is a " + schema->get<std::string>() + ", from which nothing is learnt; give run records, profiles or plans");
}

}  // namespace

Content content_of(std::string_view text, const std::string& file) {
  constexpr std::size_t kHead = 1 << 20;  // what tells a text apart comes early
  if (text.starts_with("SQLite format 3")) return Content::kNsight;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) refuse(file, "is empty");
  if (text[first] == '{') return json_content(text, file);
  const std::string_view head = text.substr(0, kHead);
  if (has(head.substr(0, head.find('\n')), "measured_iteration_s")) return Content::kPublishedRuns;
  if (has(head, "algbw") && has(head, "busbw")) return Content::kNcclTests;
  if (has(text, "elapsed time per iteration (ms)") || has(text, "iter time (s)") || has(text, "CurrSamplesPerSec=")) {
    return Content::kTrainingLog;
  }
  if (has(head, "GPU0") && (has(head, "CPU Affinity") || has(head, "Legend:"))) return Content::kTopology;
  refuse(file,
         "is nothing that is known: run records, profiles, tables of published runs, nccl-tests, nvidia-smi topo -m, "
         "Chrome traces, Nsight Systems exports (SQLite), logs of Megatron-LM or DeepSpeed");
}

}  // namespace trivium::calibration::imports
