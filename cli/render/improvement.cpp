#include "cli/render/improvement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/quote.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;
using planner::Candidate;
using planner::Improvement;

constexpr std::size_t kReportWidth = 80;
constexpr std::size_t kMostReportLines = 25;
constexpr std::size_t kGainWidth = 9;

/// Broken between words; lines after the first are indented.
std::string filled(const std::string& text, std::size_t indent = 0) {
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kReportWidth) {
      lines += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines + line + "\n";
}

std::string own_name(const std::string& file) {
  return base::one_line(std::filesystem::path(file).filename().string());
}

double expected_of(const Candidate& candidate) { return candidate.simulation.certainty.expected_s; }

std::string verdict_of(const Improvement& found) {
  if (!found.best) return "nothing";
  if (!found.today) return "refused";
  return found.is_worth_trying() ? "gain" : "nothing";
}

std::string answer_lines(const ImprovementAnswer& answer) {
  const Improvement& found = answer.found;
  const std::string file = own_name(answer.file);
  if (!found.today) {
    const std::string rule = found.rule.empty() ? "" : " (" + found.rule + ")";
    std::string text = filled(fmt::format("{} cannot run as it is: {}{}.", file, found.refused, rule));
    if (found.best) text += filled(fmt::format("The best plan takes {} a step.", seconds(expected_of(*found.best))));
    return text;
  }
  const double now = expected_of(*found.today);
  if (!found.best)
    return filled(fmt::format("{}: nothing is to be gained; the search has no plan of this trainer here: {}.", file,
                              answer.no_plan));
  const double then = expected_of(*found.best);
  const std::string sure = simulator::probability_text(found.probability);
  if (found.is_worth_trying()) {
    return filled(fmt::format("{} can be {:.2f} times as fast: {} a step in place of {}, both expected.", file,
                              now / then, seconds(then), seconds_beside(now, then))) +
           filled(fmt::format("The probability that this is a gain is {}.", sure));
  }
  if (found.gain_s() <= 0) {
    return filled(fmt::format("{}: nothing is to be gained; no plan is expected to be faster than today's.", file));
  }
  return filled(fmt::format(
      "{}: nothing is to be gained. The best plan is expected to take {} a step in place of {}, which is within the "
      "noise: the probability that it is a gain is {}.",
      file, seconds(then), seconds_beside(now, then), sure));
}

std::string figures(const Improvement& found, const program::Plan& plan) {
  Table table({"<", "expected", "90 % from", "to", "simulated", simulator::mfu_title("MFU", plan), "peak memory"});
  const auto add = [&](const char* name, const std::optional<Candidate>& candidate) {
    if (!candidate) return;
    const simulator::Simulation& s = candidate->simulation;
    const simulator::Certainty& sure = s.certainty;
    table.add({name, seconds(sure.expected_s), seconds_beside(sure.iteration_s.low, sure.expected_s),
               seconds_beside(sure.iteration_s.high, sure.expected_s), seconds_beside(s.iteration_s, sure.expected_s),
               percent(s.mfu), size(s.peak_memory_bytes)});
  };
  add("today", found.today);
  add("best", found.best);
  return table.text();
}

std::string changes_text(const std::vector<launch::patch::OptionChange>& settings,
                         const std::vector<program::Difference>& changes) {
  std::string text;
  for (const launch::patch::OptionChange& change : settings) text += (text.empty() ? "" : "; ") + text_of(change);
  if (!text.empty()) return base::one_line(text);
  for (const program::Difference& d : changes) {
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : "; ", d.field, d.before, d.after);
  }
  return text;
}

/// Every step, the lines of each.
std::vector<std::string> step_texts(const ImprovementAnswer& answer) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < answer.found.steps.size(); ++i) {
    const planner::ImprovementStep& step = answer.found.steps[i];
    const double beside = expected_of(*answer.found.today);
    const std::string gain = seconds_beside(step.gain_s, beside);
    const std::string text = changes_text(answer.settings[i], step.changes);
    std::string line = filled(std::string(kGainWidth, '#') + "  " + text, kGainWidth + 2);
    texts.push_back(fmt::format("{:>{}}", gain, kGainWidth) + " " + line.substr(kGainWidth));
  }
  return texts;
}

std::size_t lines_in(const std::string& text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

/// At most some lines, unless all are wanted.
std::string shortened(const std::string& text, bool all) {
  constexpr std::size_t kMost = 8;
  const std::size_t lines = lines_in(text);
  if (all || lines <= kMost) return text;
  std::size_t end = 0;
  for (std::size_t i = 0; i + 1 < kMost; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end) + fmt::format("  {} more lines; --all has them\n", lines - kMost + 1);
}

std::string counted(std::size_t lines) { return lines == 1 ? "a line" : fmt::format("{} lines", lines); }

std::string patch_lines(const ImprovementAnswer& answer) {
  if (!answer.found.is_worth_trying()) return "";
  if (answer.diff.empty()) return by_hand_lines(answer.patch);
  const auto added = [&](std::string_view sign) {
    std::size_t count = 0;
    for (std::size_t at = answer.diff.find(sign); at != std::string::npos; at = answer.diff.find(sign, at + 1)) ++count;
    return count;
  };
  return filled(
      fmt::format("--patch writes the change, which takes out {} and adds {}; read again, the file is the best plan.",
                  counted(added("\n-")), counted(added("\n+") - 1)));
}

}  // namespace

bool is_whole(const launch::Patch& patch) { return patch.by_hand.empty() && patch.differs.empty(); }

std::string by_hand_lines(const launch::Patch& patch) {
  if (is_whole(patch)) return "";
  std::string text = "No patch: ";
  if (patch.by_hand.empty()) {
    text += fmt::format("the changed file, read again, has another {}. Set by hand:\n", fmt::join(patch.differs, ", "));
  } else {
    text += "no line of the file says these alone. Set by hand:\n";
  }
  text = filled(text);
  for (const launch::patch::OptionChange& change : patch.changes) {
    text += filled("  " + base::one_line(text_of(change)), 4);
  }
  return text;
}

nlohmann::json improvement_json(const ImprovementAnswer& answer) {
  const Improvement& found = answer.found;
  const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
  nlohmann::json json{{"schema", "trivium.improvement/1"},
                      {"file", answer.file},
                      {"trainer", launch::version_of(answer.trainer).name},
                      {"model", answer.today.model.name},
                      {"cluster", answer.cluster},
                      {"verdict", verdict_of(found)},
                      {"plan", program::to_json(answer.today.plan)},
                      {"today", nullptr},
                      {"best", nullptr},
                      {"refused", or_null(found.refused)},
                      {"rule", or_null(found.rule)},
                      {"too_big", or_null(found.too_big)},
                      {"proved", found.found.proved},
                      {"gain_s", nullptr},
                      {"probability", nullptr},
                      {"steps", nlohmann::json::array()}};
  if (found.today) json["today"] = candidate_json(*found.today);
  if (found.best) json["best"] = candidate_json(*found.best);
  if (found.today && found.best) {
    json["gain_s"] = found.gain_s();
    json["probability"] = found.probability;
  }
  const auto texts = [](const std::vector<launch::patch::OptionChange>& changes) {
    nlohmann::json all = nlohmann::json::array();
    for (const launch::patch::OptionChange& change : changes) all.push_back(text_of(change));
    return all;
  };
  for (std::size_t i = 0; i < found.steps.size(); ++i) {
    nlohmann::json step{{"gain_s", found.steps[i].gain_s}, {"settings", texts(answer.settings[i])}};
    auto& fields = step["changes"] = nlohmann::json::array();
    for (const program::Difference& d : found.steps[i].changes) {
      fields.push_back({{"field", d.field}, {"before", d.before}, {"after", d.after}});
    }
    json["steps"].push_back(std::move(step));
  }
  json["settings"] = texts(answer.patch.changes);
  json["by_hand"] = texts(is_whole(answer.patch)         ? std::vector<launch::patch::OptionChange>{}
                          : answer.patch.by_hand.empty() ? answer.patch.changes
                                                         : answer.patch.by_hand);
  json["differs"] = answer.patch.differs;
  json["diff"] = or_null(answer.diff);
  return json;
}

std::string improvement_report(const ImprovementAnswer& answer, bool all) {
  const Improvement& found = answer.found;
  std::string text = answer_lines(answer) + "\n" + figures(found, answer.today.plan);
  text += filled("today: " + program::summary(answer.today.plan), 7);
  if (found.best && (!found.today || found.gain_s() > 0)) {
    text += filled("best:  " + program::summary(found.best->plan), 7);
  }
  if (!found.too_big.empty()) text += filled("By the prediction today's plan does not fit: " + found.too_big + ".");
  if (found.best && !found.found.proved) text += "The search was not finished; there may be a faster plan.\n";
  const std::string last = shortened(patch_lines(answer), all);
  if (!found.steps.empty() && found.is_worth_trying()) {
    text += fmt::format("\n{:>{}}  change, after those above it\n", "gain", kGainWidth);
    const std::vector<std::string> steps = step_texts(answer);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t room = kMostReportLines - std::min(kMostReportLines, lines_in(last) + 2);
      if (!all && lines_in(text) + lines_in(steps[i]) > room) {
        text += fmt::format("{:>{}}  {} more; --all lists them\n", "", kGainWidth, steps.size() - i);
        break;
      }
      text += steps[i];
    }
  }
  return text + (last.empty() ? "" : "\n" + last);
}

}  // namespace trivium::cli
