#include "hardware_profiles/measured_mfu.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "base/sourced_reader.h"
#include "hardware_profiles/profile_names.h"

namespace trivium::hardware {

namespace {

const std::vector<std::string> kAttentions{"unfused", "flash"};
const std::vector<std::string> kKinds{"dense", "mixture"};
const std::vector<std::string> kPrecisions{"16 bits", "8 bits", "4 bits"};

nlohmann::json read_table() {
  return base::read_json_file(base::shipped_data("hardware_profiles") / "measured" / "mfu.json");
}

base::JsonReader checked(const nlohmann::json& json) {
  base::JsonReader file(json, "measured/mfu.json");
  base::check_schema(file, "trivium.measured-mfu/2");
  file.allow_only({"schema", "best", "runs"});
  return file;
}

std::int64_t whole(const base::JsonReader& value) {
  return static_cast<std::int64_t>(std::llround(base::number_within(value, 0, 1e9)));
}

}  // namespace

double MeasuredRun::tokens_per_s_per_device() const {
  return static_cast<double>(global_batch * sequence) / iteration_s / static_cast<double>(devices);
}

std::string precision_class(std::string_view fp8) {
  return fp8 == "none" ? kPrecisions[0] : fp8 == "nvfp4" ? kPrecisions[2] : kPrecisions[1];
}

std::vector<MeasuredRun> measured_runs() {
  const nlohmann::json json = read_table();
  std::vector<MeasuredRun> runs;
  for (const base::JsonReader& at : checked(json).at("runs").elements()) {
    at.allow_only({"device", "precision", "layers", "hidden", "heads", "experts", "sequence", "global_batch", "devices",
                   "iteration_s", "error", "plan", "case", "runs", "source"});
    MeasuredRun run;
    run.device = at.at("device").text();
    run.precision = at.at("precision").one_of(kPrecisions);
    run.layers = whole(at.at("layers"));
    run.hidden = whole(at.at("hidden"));
    run.heads = whole(at.at("heads"));
    run.experts = whole(at.at("experts"));
    run.sequence = whole(at.at("sequence"));
    run.global_batch = whole(at.at("global_batch"));
    run.devices = whole(at.at("devices"));
    run.iteration_s = base::number_within(at.at("iteration_s"), 0, 1e9);
    run.error = base::number_within(at.at("error"), -1, 10);
    run.plan = at.at("plan").text();
    run.run = at.at("case").text();
    run.runs = at.at("runs").text();
    run.source = at.at("source").text();
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<MeasuredMfu> measured_mfu() {
  const nlohmann::json json = read_table();
  std::vector<MeasuredMfu> entries;
  for (const base::JsonReader& at : checked(json).at("best").elements()) {
    at.allow_only({"device", "attention", "mfu", "what", "error", "case", "runs", "source", "kind", "precision"});
    MeasuredMfu entry;
    entry.device = at.at("device").text();
    entry.flash_attention = at.at("attention").one_of(kAttentions) == "flash";
    entry.mixture = at.at("kind").one_of(kKinds) == "mixture";
    entry.precision = at.at("precision").one_of(kPrecisions);
    entry.mfu = base::number_within(at.at("mfu"), 0, 4);
    entry.what = at.at("what").text();
    entry.error = base::number_within(at.at("error"), -1, 10);
    entry.source = at.at("source").text();
    entry.runs = at.at("runs").text();
    entry.run = at.at("case").text();
    entries.push_back(std::move(entry));
  }
  return entries;
}

const MeasuredMfu* best_measured(const std::vector<MeasuredMfu>& entries, const std::string& device,
                                 bool flash_attention, bool mixture, const std::string& precision) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const MeasuredMfu& entry) {
    return entry.device == device && entry.flash_attention == flash_attention && entry.mixture == mixture &&
           entry.precision == precision;
  });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace trivium::hardware
