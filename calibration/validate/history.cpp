#include "calibration/validate/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/validate.h"

namespace trivium::calibration {
namespace {

constexpr double kNotable = 0.1;  // a drift that is said to be one

std::string fact(const program::RunRecord& record, const std::string& name) {
  const auto found = record.host.find(name);
  return found == record.host.end() ? "" : found->second;
}

/// What is known of the machine from run to run. A record tells what its backend used, so what one leaves out (the
/// driver, of a run on cores) is compared with the last one that told it. The backend counts as a fact.
class Machine {
 public:
  /// Facts that this record tells otherwise than those before.
  std::vector<std::string> changes_in(const program::RunRecord& record) {
    std::vector<std::string> changes;
    const auto compare = [&](const std::string& name, const std::string& value) {
      std::string& was = known_[name];
      if (!was.empty() && was != value) changes.push_back(fmt::format("{}: {} -> {}", name, was, value));
      was = value;
    };
    compare("backend", record.backend);
    for (const auto& [name, value] : record.host) {
      if (name != "date") compare(name, value);
    }
    return changes;
  }

 private:
  std::map<std::string, std::string> known_;
};

std::optional<double> drift_of(const std::vector<HistoryEntry>& entries) {
  std::vector<double> errors;  // since the last change
  for (const HistoryEntry& entry : entries) {
    if (!entry.changes.empty()) errors.clear();
    if (!entry.unsupported) errors.push_back(entry.error);
  }
  if (errors.size() < 2) return std::nullopt;
  const double last = errors.back();
  errors.pop_back();
  return last - median(std::move(errors));
}

}  // namespace

History history_of(std::vector<DatedRun> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const DatedRun& a, const DatedRun& b) {
    return std::pair(fact(a.record, "date"), a.file) < std::pair(fact(b.record, "date"), b.file);
  });
  History history;
  Machine machine;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const program::RunRecord& record = runs[i].record;
    const ValidationRow row = validate_run({record.job, record.cluster}, record, runs[i].cluster).rows.front();
    HistoryEntry entry;
    entry.file = runs[i].file;
    entry.date = fact(record, "date");
    entry.plan = row.case_name;
    entry.measured_s = row.measured_iteration_s;
    entry.predicted_s = row.predicted_iteration_s;
    entry.error = row.error;
    entry.unsupported = row.unsupported;
    entry.changes = machine.changes_in(record);
    history.entries.push_back(std::move(entry));
  }
  history.drift = drift_of(history.entries);
  return history;
}

nlohmann::json to_json(const History& history) {
  nlohmann::json runs = nlohmann::json::array();
  for (const HistoryEntry& entry : history.entries) {
    const bool known = !entry.unsupported;
    runs.push_back({{"file", entry.file},
                    {"date", entry.date},
                    {"plan", entry.plan},
                    {"measured_iteration_s", entry.measured_s},
                    {"predicted_iteration_s", known ? nlohmann::json(entry.predicted_s) : nlohmann::json()},
                    {"error", known ? nlohmann::json(entry.error) : nlohmann::json()},
                    {"unsupported", known ? nlohmann::json() : nlohmann::json(*entry.unsupported)},
                    {"changes", entry.changes}});
  }
  return {{"schema", "trivium.history/1"},
          {"runs", std::move(runs)},
          {"drift", history.drift ? nlohmann::json(*history.drift) : nlohmann::json()}};
}

std::string to_table(const History& history) {
  std::string text = fmt::format("{:<20} {:>12} {:>12} {:>8}  run\n", "date", "measured s", "predicted s", "error %");
  for (const HistoryEntry& entry : history.entries) {
    for (const std::string& change : entry.changes) text += "  * " + change + "\n";
    text += fmt::format("{:<20} {:>12.4g} {:>12} {:>8}  {}, {}\n", entry.date.empty() ? "-" : entry.date,
                        entry.measured_s, entry.unsupported ? "-" : fmt::format("{:.4g}", entry.predicted_s),
                        entry.unsupported ? "-" : fmt::format("{:+.1f}", kPercent * entry.error), entry.file,
                        entry.unsupported ? *entry.unsupported : entry.plan);
  }
  if (history.drift) {
    text += fmt::format(
        "drift: the last run's error is {:+.1f} % from the median of those before it on the same machine{}\n",
        kPercent * *history.drift, std::abs(*history.drift) > kNotable ? "; calibrate again with recent runs" : "");
  }
  return text;
}

}  // namespace trivium::calibration
