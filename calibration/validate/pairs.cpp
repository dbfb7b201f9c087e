#include "calibration/validate/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/statistics.h"
#include "program/plan/fields.h"

namespace trivium::calibration {
namespace {

constexpr double kLeastChange = 0.01;  // measured changes below have no sign: repeats differ as much
constexpr double kPoints = 0.05;       // of a change
constexpr double kComparedMfu = 0.10;  // MFU: below, something else than the plan decides

/// One thing that runs may differ in: fields of the plan (and what else) that say it.
struct Setting {
  const char* name;
  std::vector<std::string> fields;
  std::string (*value)(const PublishedRun&);
};

std::string of_fields(const PublishedRun& run, std::initializer_list<const char*> fields) {
  std::string text;
  for (const char* field : fields) {
    const std::string value = text_of(run.job.plan, field);
    if (!value.empty()) text += (text.empty() ? "" : " ") + value;
  }
  return text;
}

std::string precision_of(const PublishedRun& run) {
  const std::string fp8 = text_of(run.job.plan, "fp8");
  return fp8 == "none" ? text_of(run.job.plan, "precision") : fp8;
}

std::string experts_overlap(const PublishedRun& run) { return run.job.plan.overlap.expert ? "overlapped" : "exposed"; }

std::string adapters(const PublishedRun& run) {
  const std::int64_t rank = run.job.training.lora.rank;
  return rank > 0 ? fmt::format("rank {}", rank) : "full";
}

// In the order of tables. `tensor against pipeline` trades ranks of one for ranks of the other.
const std::vector<Setting>& settings() {
  static const std::vector<Setting> kSettings = {
      {"precision", {"fp8", "precision"}, precision_of},
      {"recompute",
       {"recompute", "recompute_modules"},
       [](const PublishedRun& run) {
         return of_fields(run, {"recompute", "recompute_modules"});
       }},
      {"expert overlap", {"overlap.expert"}, experts_overlap},
      {"expert dispatch", {"expert_dispatch"}, [](const PublishedRun& run) { return run.dispatch; }},
      {"graphs", {}, [](const PublishedRun& run) { return run.graphs; }},
      {"tensor against pipeline",
       {"tensor", "pipeline"},
       [](const PublishedRun& run) { return fmt::format("tp {} pp {}", run.job.plan.tensor, run.job.plan.pipeline); }},
      {"tensor overlap",
       {"overlap.tensor"},
       [](const PublishedRun& run) { return of_fields(run, {"overlap.tensor"}); }},
      {"sequence", {}, [](const PublishedRun& run) { return std::to_string(run.job.training.sequence); }},
      {"offload",
       {"offload.activations", "offload.optimizer", "offload.parameters"},
       [](const PublishedRun& run) {
         return of_fields(run, {"offload.activations", "offload.optimizer", "offload.parameters"});
       }},
      {"adapters", {}, adapters}};
  return kSettings;
}

/// Fields that follow from others, or that say how a rule of the stack was carried out.
bool follows(const std::string& field) {
  static const std::vector<std::string> kFollow = {"bucket_bytes",
                                                   "overlap.gradient_reduction",
                                                   "overlap.parameter_gather",
                                                   "overlap.tensor",
                                                   "schedule",
                                                   "sequence_parallel",
                                                   "stage_layers",
                                                   "virtual_stages",
                                                   "stack",
                                                   "reduce_dtype"};
  return std::ranges::find(kFollow, field) != kFollow.end();
}

/// What has to be equal where only `setting` differs.
std::string rest_of(const PublishedRun& run, const Setting& setting) {
  const models::Model& m = run.job.model;
  std::string key = fmt::format("{} | {} | {} | {} | {} | {} {} {} {} {} {} {} {}", run.source, run.version,
                                run.hardware, run.software, run.job.plan.ranks(), m.layers, m.hidden, m.heads,
                                m.kv_heads, m.ffn_hidden, m.vocab, m.experts ? m.experts->count : 0, m.mtp_depth());
  const std::string name = setting.name;
  for (const std::string& field : program::plan_fields()) {
    if (std::ranges::find(setting.fields, field) != setting.fields.end()) continue;
    const bool split = name.find("against") != std::string::npos;  // of ranks, from which the fields that follow come
    if (follows(field) && (split || field == "stack" || name == "precision")) continue;
    if (name == "sequence" && field == "bucket_bytes") continue;
    key += " | " + text_of(run.job.plan, field);
  }
  if (name != "expert dispatch") key += " | " + run.dispatch;
  if (name != "graphs") key += " | " + run.graphs;
  if (name != "adapters") key += " | " + adapters(run);
  if (name != "sequence") key += fmt::format(" | {} {}", run.job.training.sequence, run.job.training.global_batch);
  return key;
}

/// A value of the setting, with its repeats.
struct Repeated {
  std::string value, case_name;
  std::vector<double> measured, predicted;  // s a token
  double order = 0;
};

/// Numbers are in their order ("tp 4 pp 2" by the first), words in that of the first run with each, 16 bits first.
double position_of(const std::string& value, std::size_t seen) {
  if (value == "bf16" || value == "fp16") return -1;
  const bool counts = value.starts_with("tp ") || value.find_first_not_of("0123456789") == std::string::npos;
  return counts ? std::atof(value.c_str() + value.find_first_of("0123456789")) : static_cast<double>(seen);
}

void add_pairs_of(std::vector<Repeated>& values, const char* setting, std::vector<PairOfRuns>& pairs) {
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Repeated &a = values[i - 1], &b = values[i];
    pairs.push_back({setting, a.value, b.value, a.case_name, b.case_name, median(b.measured) / median(a.measured) - 1,
                     median(b.predicted) / median(a.predicted) - 1});
  }
}

bool counts(const PublishedRun& run, const ValidationRow& row) {
  return run.timed() && !row.unsupported && row.tier != "C" && mfu_of(run, run.iteration_s) >= kComparedMfu;
}

}  // namespace

bool PairOfRuns::has_sign() const { return std::abs(measured) > kLeastChange; }
bool PairOfRuns::sign_right() const { return (measured > 0) == (predicted > 0); }
bool PairOfRuns::within_5_points() const { return std::abs(predicted - measured) <= kPoints; }

std::vector<PairOfRuns> find_pairs(std::span<const PublishedRun> runs, std::span<const ValidationRow> rows) {
  std::vector<PairOfRuns> pairs;
  for (const Setting& setting : settings()) {
    std::map<std::string, std::vector<Repeated>> alike;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!counts(runs[i], rows[i])) continue;
      const PublishedRun& run = runs[i];
      std::vector<Repeated>& values = alike[rest_of(run, setting)];
      const std::string value = setting.value(run);
      auto at = std::ranges::find(values, value, &Repeated::value);
      if (at == values.end()) {
        values.push_back({value, run.case_name, {}, {}, position_of(value, values.size())});
        at = std::prev(values.end());
      }
      const double tokens = static_cast<double>(run.job.training.global_batch * run.job.training.sequence);
      at->measured.push_back(run.iteration_s / tokens);
      at->predicted.push_back(rows[i].predicted_iteration_s / tokens);
    }
    for (auto& [key, values] : alike) add_pairs_of(values, setting.name, pairs);
  }
  return pairs;
}

std::vector<PairSummary> summarise(std::span<const PairOfRuns> pairs) {
  std::vector<PairSummary> summaries;
  if (pairs.empty()) return summaries;
  PairSummary all{.setting = "all"};
  const auto count = [](PairSummary& of, const PairOfRuns& pair) {
    const double difference = std::abs(pair.predicted - pair.measured);
    of.mean_difference = (of.mean_difference * of.pairs + difference) / (of.pairs + 1);
    ++of.pairs;
    of.within_5_points += pair.within_5_points() ? 1 : 0;
    if (!pair.has_sign()) return;
    ++of.with_sign;
    of.sign_right += pair.sign_right() ? 1 : 0;
  };
  for (const PairOfRuns& pair : pairs) {
    if (summaries.empty() || summaries.back().setting != pair.setting) summaries.push_back({.setting = pair.setting});
    count(summaries.back(), pair);
    count(all, pair);
  }
  summaries.push_back(all);
  return summaries;
}

}  // namespace trivium::calibration
