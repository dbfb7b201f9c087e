#include "calibration/published/profile_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"

namespace trivium::calibration {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Four digits: more than any fit to these runs knows.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::string source_of(const PublishedFit& fit, std::size_t i) {
  const FitPrior& prior = fit.constants[i].prior;
  if (fit.fit.sigma[i] > kUndetermined * prior.sigma) {
    return fmt::format(
        "fitted by trivium calibrate --runs, but the published runs leave it near its prior of {:.4g}{}{} "
        "(an assumption, within a factor of {:.2f})",
        prior.prior, fit.constants[i].unit.empty() ? "" : " ", fit.constants[i].unit, std::exp(prior.sigma));
  }
  return fmt::format(
      "fitted by trivium calibrate --runs from the {} published runs of validation/runs (tiers A and B){}: "
      "+-{:.1f} %",
      fit.rows, fit.micro.empty() ? "" : " and validation/micro", 100 * fit.fit.sigma[i]);
}

void set(Json& profile, const PublishedFit& fit, std::size_t i) {
  const FitConstant& constant = fit.constants[i];
  const double value = rounded(fit.fit.values[i]);
  const Json::json_pointer at(constant.pointer);
  if (constant.pointer.starts_with("/device/") && profile["device"].is_string()) {
    profile["device"] = Json{{"base", profile["device"]}};
  }
  profile[at] = constant.unit.empty() ? Json(value) : Json(fmt::format("{} {}", value, constant.unit));
  profile["sources"][constant.pointer] = source_of(fit, i);
}

/// The shipped file `from` with the constants of `profile` replaced.
fs::path write_one(const PublishedFit& fit, const fs::path& from, const std::string& profile, const fs::path& to) {
  Json json = Json::parse(base::read_file(from));
  Json sources = json["sources"];
  json.erase("sources");  // last, as in the shipped files
  json["sources"] = sources;
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    const FitConstant& constant = fit.constants[i];
    const bool meant = !profile.empty() || json.at("name").get<std::string>().starts_with(constant.family);
    if (constant.profile == profile && meant) set(json, fit, i);
  }
  sources = json["sources"];
  json.erase("sources");
  json["sources"] = sources;
  base::write_file_atomically(to, base::json_text(json, 2) + "\n");
  return to;
}

}  // namespace

std::vector<fs::path> write_profiles(const PublishedFit& fit, const fs::path& folder) {
  const fs::path shipped = base::shipped_data("hardware_profiles");
  std::error_code missing;
  if (fs::equivalent(shipped, folder, missing)) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("-o {} holds the profiles that are fitted; give another folder", folder.string()));
  }
  std::vector<fs::path> written;
  std::map<std::string, bool> profiles;
  for (const FitConstant& constant : fit.constants) {
    if (constant.written) profiles[constant.profile] = true;
  }
  for (const auto& [name, used] : profiles) {
    if (!name.empty()) written.push_back(write_one(fit, shipped / (name + ".json"), name, folder / (name + ".json")));
  }
  std::vector<fs::path> devices;
  for (const auto& entry : fs::directory_iterator(shipped / "devices")) devices.push_back(entry.path());
  std::sort(devices.begin(), devices.end());
  for (const fs::path& device : devices) {
    if (Json::parse(base::read_file(device)).value("kind", "") != "gpu") continue;
    written.push_back(write_one(fit, device, "", folder / "devices" / device.filename()));
  }
  return written;
}

}  // namespace trivium::calibration
