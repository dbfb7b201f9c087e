#include "cli/render/trace_explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "calibration/foreign/wording.h"
#include "cli/render/render.h"
#include "program/plan/plan.h"

namespace trivium::cli {
namespace {

using calibration::foreign::Explanation;
using calibration::foreign::Finding;
using calibration::foreign::OpRow;
using calibration::foreign::time_text;

constexpr std::size_t kWidth = 100;
constexpr std::size_t kLongestName = 48;
constexpr double kShown = 1e-3;  // of the iteration: ops below it share a row

/// Words in lines of at most `kWidth`; lines after the first begin with `indent` blanks.
std::string hanging(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > indent && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (at > 0) {
      lines += ' ', ++column;
    }
    lines += word;
    column += word.size();
    at = end + 1;
  }
  return lines + "\n";
}

std::string head(const Explanation& explanation, const program::Job& job) {
  std::string text = fmt::format("{}, {}\n{} {} traced, {} whole {}\n", job.model.name, program::summary(job.plan),
                                 explanation.ranks, explanation.ranks == 1 ? "rank" : "ranks", explanation.steps,
                                 explanation.steps == 1 ? "iteration" : "iterations");
  text += fmt::format("iteration: {} measured, {} predicted", time_text(explanation.measured_s),
                      time_text(explanation.predicted_s));
  if (explanation.traced_s != explanation.measured_s)
    text += fmt::format(", {} under the profiler", time_text(explanation.traced_s));
  text += fmt::format("; {} of compute time matched to the plan's ops\n", percent(explanation.matched_share));
  for (const std::string& note : explanation.notes) text += hanging("note: " + note, 6);
  return text;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    constexpr double kSure = 0.5;
    const std::string doubt =
        finding.confidence < kSure ? fmt::format(" (uncertain: confidence {:.1f})", finding.confidence) : "";
    text += hanging(fmt::format("  {:>8}  {}{}", time_text(finding.seconds), finding.what, doubt), 12);
    text += hanging("            -> " + finding.remedy, 15);
  }
  return text;
}

std::string cut(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName - 3) + "...";
}

std::string ops_table(const Explanation& explanation) {
  Table table({"<op", "kernels", "measured", "predicted", "ratio"});
  OpRow rest;
  int others = 0;
  const auto row = [&](const std::string& name, const OpRow& op) {
    table.add({cut(base::one_line(name)), fmt::format("{:.0f}", op.count), time_text(op.measured_s),
               op.predicted_s > 0 ? time_text(op.predicted_s) : "-",
               op.predicted_s > 0 && op.measured_s > 0 ? fmt::format("{:.2f}", op.measured_s / op.predicted_s) : "-"});
  };
  for (const OpRow& op : explanation.ops) {
    if (std::max(op.measured_s, op.predicted_s) >= kShown * explanation.measured_s) {
      row(op.op, op);
      continue;
    }
    ++others;
    rest.count += op.count, rest.measured_s += op.measured_s, rest.predicted_s += op.predicted_s;
  }
  if (others > 0) row(fmt::format("{} others", others), rest);
  return table.text();
}

std::string last_line(const Explanation& explanation) {
  if (explanation.findings.empty()) {
    return fmt::format("nothing of {} stands out that could be won\n", time_text(explanation.measured_s));
  }
  std::vector<std::pair<std::string, double>> remedies;  // each once, in the order of findings
  for (const Finding& finding : explanation.findings) {
    const auto same = std::ranges::find(remedies, finding.remedy, &std::pair<std::string, double>::first);
    if (same != remedies.end()) {
      same->second += finding.seconds;
    } else {
      remedies.emplace_back(finding.remedy, finding.seconds);
    }
  }
  std::string text;
  for (const auto& [remedy, seconds] : remedies)
    text += fmt::format("{}{} by: {}", text.empty() ? "" : "; ", time_text(seconds), remedy);
  return hanging(fmt::format("{} of {} can be won: {}", time_text(explanation.winnable_s),
                             time_text(explanation.measured_s), text),
                 2);
}

}  // namespace

std::string trace_report(const Explanation& explanation, const program::Job& job) {
  std::string text = head(explanation, job);
  if (!explanation.findings.empty()) {
    text += "\n" + heading("what costs time, seconds of an iteration") + "\n" + findings_text(explanation.findings);
  }
  return text + "\n" + ops_table(explanation) + "\n" + last_line(explanation);
}

}  // namespace trivium::cli
