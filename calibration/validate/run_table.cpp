// One run against its prediction, for people: what was measured, what was predicted, how far the machine's own speed
// went up and down, and where the difference is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "calibration/validate/tables.h"

namespace trivium::calibration {
namespace {

constexpr double kUnsteady = 0.1;           // steps that differ by more of their median are said to
constexpr double kShareShown = 0.01;        // of the work: kinds of ops with less are left out
constexpr double kFast = 0.1, kSlow = 0.9;  // of steps, that are left out at either end

std::string text(double seconds) { return base::to_text(base::Seconds(seconds)); }

std::vector<const ValidationGroup*> groups_by(const Validation& validation, std::string_view by) {
  std::vector<const ValidationGroup*> found;
  for (const ValidationGroup& group : validation.groups) {
    if (group.by == by) found.push_back(&group);
  }
  return found;
}

// The error that a step of the quick tenth would have, and one of the slow tenth.
std::string noise(const std::vector<double>& steps, const ValidationRow& row) {
  const double fast = quantile(steps, kFast), slow = quantile(steps, kSlow);
  if (slow - fast <= kUnsteady * row.measured_iteration_s) return {};
  return fmt::format(
      "  noise       the machine's own: 8 of 10 steps differ by {:.0f} % of the median, so the error may be\n"
      "              {:+.1f} % as well as {:+.1f} %; a run while nothing else runs tells more\n",
      kPercent * (slow - fast) / row.measured_iteration_s, kPercent * (row.predicted_iteration_s / slow - 1),
      kPercent * (row.predicted_iteration_s / fast - 1));
}

std::string headline(const Validation& validation) {
  const ValidationRow& row = validation.rows.front();
  std::vector<double> steps;
  for (const ValidationGroup* group : groups_by(validation, "step")) steps.push_back(group->measured);
  std::string lines =
      fmt::format("{}, {}\n\n  measured    {} a step", row.case_name, row.hardware, text(row.measured_iteration_s));
  if (steps.size() > 1) {
    lines += fmt::format(", the median of {}; 8 of 10 took {} to {}", steps.size(), text(quantile(steps, kFast)),
                         text(quantile(steps, kSlow)));
  }
  lines += fmt::format("\n  predicted   {}, {:+.1f} %", text(row.predicted_iteration_s), kPercent * row.error);
  if (row.interval_s) {
    lines += fmt::format("; 90 of 100 runs are expected to take {} to {}", text(row.interval_s->low),
                         text(row.interval_s->high));
  }
  lines += "\n" + noise(steps, row);
  if (row.measured_peak_bytes && row.predicted_peak_bytes) {
    lines += fmt::format("  memory      {} on the fullest rank, predicted {}, {:+.1f} %\n",
                         base::to_text(base::Bytes(*row.measured_peak_bytes)),
                         base::to_text(base::Bytes(*row.predicted_peak_bytes)),
                         kPercent * (*row.predicted_peak_bytes / *row.measured_peak_bytes - 1));
  }
  return lines;
}

// Kinds of ops in the order of what they make of the difference.
std::string work_table(const Validation& validation) {
  const std::vector<const ValidationGroup*> ops = groups_by(validation, "op");
  double measured = 0, predicted = 0, left_out = 0;
  for (const ValidationGroup* op : ops) measured += op->measured, predicted += op->predicted;
  if (ops.empty() || measured <= 0 || predicted <= 0) return {};
  std::string lines = fmt::format("\n  {:<24} {:>10} {:>10} {:>10} {:>8}\n", "work of a step, all ranks", "measured",
                                  "predicted", "error", "share");
  int more = 0;
  for (const ValidationGroup* op : ops) {
    const double share = op->measured / measured;
    if (std::max(share, op->predicted / predicted) < kShareShown) {
      left_out += share;
      ++more;
      continue;
    }
    lines += fmt::format("  {:<25} {:>10} {:>10} {:>+8.1f} % {:>6.1f} %\n", op->name, text(op->measured),
                         text(op->predicted), kPercent * (op->predicted / op->measured - 1), kPercent * share);
  }
  if (more > 0) lines += fmt::format("  {} more kinds of ops, {:.1f} % of the work\n", more, kPercent * left_out);
  return lines + "(every step, kind of op, lane and rank: --verbose)\n";
}

}  // namespace

bool is_of_one_run(const Validation& validation) {
  return validation.rows.size() == 1 && validation.rows.front().ran && !validation.rows.front().unsupported &&
         !groups_by(validation, "step").empty();
}

std::string run_table(const Validation& validation) { return headline(validation) + work_table(validation); }

}  // namespace trivium::calibration
