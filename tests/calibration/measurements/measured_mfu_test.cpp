// The table of the best measured MFUs, and of the best run of each job, is what the published runs say.
#include "hardware_profiles/measured_mfu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "calibration/measurements/published_runs.h"
#include "calibration/validate/validate.h"
#include "tests/golden.h"

namespace trivium::calibration {
namespace {

namespace fs = std::filesystem;

constexpr double kWorthListing = 0.5;  // of the model's best MFU: other runs were troubled

struct Measured {
  double mfu = 0;
  std::string table, device, precision;
  PublishedRun run;
};

// Runs that trained a whole model with settings that the source states exactly (tiers A and B), and which are replayed.
std::vector<Measured> measured_runs_of_tables() {
  std::vector<Measured> all;
  for (const char* folder : {"runs", "runs_modern", "runs_2026"}) {
    std::vector<fs::path> tables;
    for (const auto& entry : fs::directory_iterator(fs::path(TRIVIUM_SOURCE_DIR) / "validation" / folder)) {
      tables.push_back(entry.path());
    }
    std::ranges::sort(tables);
    for (const fs::path& table : tables) {
      for (const PublishedRun& run : read_published_runs(table)) {
        const bool whole = run.timed() && !run.job.training.lora.used() && !run.job.training.documents.used();
        if (run.tier == "C" || !whole) continue;
        all.push_back({mfu_of(run, run.iteration_s), table.filename().string(),
                       run.cluster.groups.front().node.device.name,
                       hardware::precision_class(name_of(run.job.plan.fp8)), run});
      }
    }
  }
  return all;
}

std::string plan_text(const program::Plan& plan) {
  std::string text = fmt::format("TP{}", plan.tensor);
  if (plan.context > 1) text += fmt::format(" CP{}", plan.context);
  text += fmt::format(" PP{}", plan.pipeline);
  if (plan.virtual_stages > 1) text += fmt::format("x{}", plan.virtual_stages);
  text += fmt::format(" DP{}", plan.data);
  if (plan.expert > 1) text += fmt::format(" EP{}", plan.expert);
  if (plan.zero_stage > 1) text += fmt::format(" ZeRO-{}", plan.zero_stage);
  return text;
}

std::string recompute_text(const program::Plan& plan) {
  return plan.recompute == program::Recompute::kNone ? "nothing recomputed"
                                                     : fmt::format("{} recomputation", name_of(plan.recompute));
}

double rounded(double value, double to) { return std::round(value * to) / to; }

/// As the simulator replays the run; null where it does not.
nlohmann::ordered_json error_of(const PublishedRun& run) {
  const auto predicted = predicted_iteration_s(run);
  if (!predicted) return nullptr;
  return rounded(*predicted / run.iteration_s - 1, 1000);
}

void add_replayed(nlohmann::ordered_json& list, nlohmann::ordered_json entry) {
  if (!entry["error"].is_null()) list.push_back(std::move(entry));
}

nlohmann::ordered_json entry_of(const Measured& one) {
  const program::Job& job = one.run.job;
  const double billions = static_cast<double>(models::count_parameters(job.model).total) / 1e9;
  return {{"device", one.device},
          {"attention", name_of(job.plan.attention)},
          {"kind", job.model.experts ? "mixture" : "dense"},
          {"precision", one.precision},
          {"mfu", rounded(one.mfu, 1000)},
          {"what", fmt::format("a {:.{}f}B model on {}, {}", billions, billions < 10 ? 1 : 0,
                               job.plan.ranks() == 1 ? "one GPU" : fmt::format("{} GPUs", job.plan.ranks()),
                               recompute_text(job.plan))},
          {"error", error_of(one.run)},
          {"case", one.run.case_name},
          {"runs", one.table},
          {"source", one.run.source}};
}

auto model_of(const Measured& one) {
  const models::Model& model = one.run.job.model;
  return std::tuple(one.device, one.precision, model.layers, model.hidden, model.heads,
                    model.experts ? model.experts->count : 0);
}

nlohmann::ordered_json run_of(const Measured& one) {
  const auto [device, precision, layers, hidden, heads, experts] = model_of(one);
  return {{"device", device},
          {"precision", precision},
          {"layers", layers},
          {"hidden", hidden},
          {"heads", heads},
          {"experts", experts},
          {"sequence", one.run.job.training.sequence},
          {"global_batch", one.run.job.training.global_batch},
          {"devices", one.run.job.plan.ranks()},
          {"iteration_s", rounded(one.run.iteration_s, 10000)},
          {"error", error_of(one.run)},
          {"plan", plan_text(one.run.job.plan)},
          {"case", one.run.case_name},
          {"runs", one.table},
          {"source", one.run.source}};
}

template <class Key>
void keep_best(std::map<Key, const Measured*>& best, const Key& key, const Measured& one) {
  const Measured*& known = best[key];
  if (known == nullptr || one.mfu > known->mfu) known = &one;
}

nlohmann::ordered_json derived_table() {
  const std::vector<Measured> all = measured_runs_of_tables();
  std::map<std::tuple<std::string, bool, bool, std::string>, const Measured*> classes;
  using ModelKey = decltype(model_of(all.front()));
  std::map<ModelKey, const Measured*> models;
  std::map<std::tuple<ModelKey, std::int64_t, std::int64_t, int>, const Measured*> jobs;
  for (const Measured& one : all) {
    const program::Job& job = one.run.job;
    keep_best(
        classes,
        {one.device, job.plan.attention == program::Attention::kFlash, job.model.experts.has_value(), one.precision},
        one);
    keep_best(models, model_of(one), one);
    keep_best(jobs, {model_of(one), job.training.sequence, job.training.global_batch, job.plan.ranks()}, one);
  }
  nlohmann::ordered_json table{{"schema", "trivium.measured-mfu/2"}};
  for (const auto& [key, one] : classes) add_replayed(table["best"], entry_of(*one));
  for (const auto& [key, one] : jobs) {
    if (one->mfu >= kWorthListing * models.at(std::get<0>(key))->mfu) add_replayed(table["runs"], run_of(*one));
  }
  return table;
}

// TRIVIUM_UPDATE_GOLDENS=1 writes the table. Constants of the simulator may move an error by a percent before that.
TEST(MeasuredMfu, IsDerivedFromThePublishedRuns) {
  const fs::path path = fs::path(TRIVIUM_SOURCE_DIR) / "hardware_profiles" / "measured" / "mfu.json";
  nlohmann::ordered_json derived = derived_table();
  if (golden_update()) std::ofstream(path) << derived.dump(2) << "\n";
  nlohmann::ordered_json shipped = nlohmann::ordered_json::parse(std::ifstream(path));
  for (const char* list : {"best", "runs"}) {
    ASSERT_EQ(shipped[list].size(), derived[list].size());
    for (std::size_t i = 0; i < derived[list].size(); ++i) {
      EXPECT_NEAR(shipped[list][i]["error"].get<double>(), derived[list][i]["error"].get<double>(), 0.01);
      shipped[list][i].erase("error");
      derived[list][i].erase("error");
    }
  }
  EXPECT_EQ(shipped, derived);
  EXPECT_EQ(hardware::measured_mfu().size(), derived["best"].size());
  EXPECT_EQ(hardware::measured_runs().size(), derived["runs"].size());
}

// By hand, from the tables: Megatron-Bridge 26.04.01 trained Qwen3-235B-A22B on 256 H100 in 76.6 s, the fastest of four
// releases; every family of devices from H100 to GB300 has a best run.
TEST(MeasuredMfu, NamesRunsThatPeopleKnow) {
  const auto runs = hardware::measured_runs();
  const auto qwen = std::ranges::find_if(runs, [](const hardware::MeasuredRun& run) {
    return run.device == "h100-sxm-80gb" && run.layers == 94 && run.experts == 128 && run.devices == 256 &&
           run.global_batch == 8192 && run.precision == "8 bits";
  });
  ASSERT_NE(qwen, runs.end());
  EXPECT_NEAR(qwen->iteration_s, 76.6, 0.1);
  EXPECT_EQ(qwen->plan.substr(0, 9), "TP2 PP8x4");
  for (const char* device : {"h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "b300-sxm-288gb", "gb200-186gb",
                             "gb300-279gb", "a100-sxm-80gb", "v100-sxm-32gb"}) {
    EXPECT_TRUE(std::ranges::any_of(hardware::measured_mfu(), [&](const auto& one) { return one.device == device; }))
        << device;
  }
}

}  // namespace
}  // namespace trivium::calibration
