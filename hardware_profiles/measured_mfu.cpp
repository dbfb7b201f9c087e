#include "hardware_profiles/measured_mfu.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "hardware_profiles/profile_names.h"
#include "hardware_profiles/sourced_reader.h"

namespace trivium::hardware {

std::vector<MeasuredMfu> measured_mfu() {
  const auto path = base::shipped_data("hardware_profiles") / "measured" / "mfu.json";
  const nlohmann::json json = base::read_json_file(path);
  const base::JsonReader file(json, "measured/mfu.json");
  check_schema(file, "trivium.measured-mfu/1");
  file.allow_only({"schema", "best"});
  const std::vector<std::string> attentions{"unfused", "flash"};
  std::vector<MeasuredMfu> entries;
  for (const base::JsonReader& at : file.at("best").elements()) {
    at.allow_only({"device", "attention", "mfu", "what", "error", "case", "runs", "source"});
    MeasuredMfu entry;
    entry.device = at.at("device").text();
    entry.flash_attention = at.at("attention").one_of(attentions) == "flash";
    entry.mfu = number_within(at.at("mfu"), 0, 1);
    entry.what = at.at("what").text();
    entry.error = number_within(at.at("error"), -1, 1);
    entry.source = at.at("source").text();
    entry.runs = at.at("runs").text();
    entry.run = at.at("case").text();
    entries.push_back(std::move(entry));
  }
  return entries;
}

const MeasuredMfu* best_measured(const std::vector<MeasuredMfu>& entries, const std::string& device,
                                 bool flash_attention) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const MeasuredMfu& entry) {
    return entry.device == device && entry.flash_attention == flash_attention;
  });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace trivium::hardware
