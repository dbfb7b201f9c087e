#include "report/plan_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/readable.h"
#include "base/seconds.h"
#include "hardware_profiles/price_text.h"
#include "planner/advice/wording.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/timeline_chart.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/studies/whole_training.h"

namespace trivium::report {
namespace {

using base::kSecondsPerPs;

std::string bytes_text(double bytes) { return base::size(static_cast<std::int64_t>(bytes)); }

void headline(Page& page, const PlanReport& report) {
  const simulator::Simulation& figures = report.simulation;
  std::vector<std::vector<std::string>> rows{
      {"iteration", base::seconds(figures.iteration_s)},
      {"expected when measured", base::seconds_beside(figures.certainty.expected_s, figures.iteration_s)},
      {"of measurements 90 % within", simulator::interval_text(figures.certainty.iteration_s, figures.iteration_s)},
      {"which comes from", figures.certainty.words},
      {"throughput", base::integer(figures.tokens_per_s) + " tokens/s"},
      {"MFU, HFU", base::percent(figures.mfu) + ", " + simulator::mfu_text(figures.hfu, report.file.job.plan)},
      {"peak memory of a device", base::size(figures.peak_memory_bytes)},
      {"fits with probability", simulator::probability_text(figures.certainty.fit_probability)}};
  if (const auto whole = simulator::whole_training(report.file.job, report.cluster, figures)) {
    const auto with_ends = [&](double value, auto as_text) {
      return fmt::format("{} (90 % within {} to {})", as_text(value), as_text(value * whole->least),
                         as_text(value * whole->most));
    };
    rows.push_back({"whole training", with_ends(whole->seconds, base::duration)});
    rows.push_back({"energy", with_ends(whole->energy_joules, [](double joules) { return base::energy(joules); })});
    rows.push_back({"cost", whole->cost_usd ? with_ends(*whole->cost_usd, base::dollars) : "price not known"});
    if (whole->cost_usd) rows.push_back({"price", hardware::price_text(report.cluster)});
  }
  page.table({}, rows);
  if (!report.overflow.empty()) page.warning("Does not fit: " + report.overflow);
}

void time(Page& page, const PlanReport& report) {
  page.heading("Where the time goes");
  std::vector<std::vector<std::string>> rows;
  std::vector<ChartPart> parts;
  for (int p = 0; p < simulator::kParts; ++p) {
    const auto part = static_cast<simulator::Part>(p);
    parts.push_back({planner::words_of(part), colour_of(part)});
    const double seconds = report.simulation.breakdown_s[static_cast<std::size_t>(p)];
    if (seconds <= 0) continue;
    rows.push_back(
        {planner::words_of(part), base::seconds(seconds), base::percent(seconds / report.simulation.iteration_s)});
  }
  page.table({"mean over ranks", "time", "share"}, rows);
  std::vector<StackedBar> bars;
  for (const simulator::StageResult& stage : report.simulation.stages) {
    StackedBar bar{stage.memory.name(), {}, 0};
    for (const std::int64_t ps : stage.breakdown) bar.values.push_back(static_cast<double>(ps) * kSecondsPerPs);
    bars.push_back(std::move(bar));
  }
  page.figure("An iteration of every stage, by what its compute lane does or waits for",
              stacked_bars(parts, bars, base::seconds));
  if (report.simulation.iteration_ps > 0) {
    page.figure("The compute lane of every stage over one iteration; blank: idle, or waiting for communication",
                timeline_chart(report.program, report.timeline, report.simulation.iteration_ps));
  }
}

std::vector<ChartPart> memory_parts() {
  constexpr std::array<const char*, kMemoryKinds.size()> kNames{"parameters",  "gradients", "optimizer",
                                                                "activations", "workspace", "reserved"};
  std::vector<ChartPart> parts;
  for (std::size_t i = 0; i < kNames.size(); ++i) parts.push_back({kNames[i], colour_of(kMemoryKinds[i])});
  return parts;
}

void memory(Page& page, const PlanReport& report) {
  page.heading("Memory");
  std::vector<StackedBar> bars;
  for (const simulator::StageResult& stage : report.simulation.stages) {
    const simulator::StageMemory& m = stage.memory;
    StackedBar bar{m.name(), {}, static_cast<double>(m.capacity)};
    for (const std::int64_t part : {m.parameters, m.gradients, m.optimizer, m.activations, m.workspace, m.reserved}) {
      bar.values.push_back(static_cast<double>(part));
    }
    bars.push_back(std::move(bar));
  }
  std::vector<std::vector<std::string>> away;
  for (const simulator::StageResult& stage : report.simulation.stages) {
    const simulator::StageMemory& m = stage.memory;
    if (m.host > 0) away.push_back({m.name(), base::size(m.host), base::size(m.host_capacity)});
  }
  if (!away.empty()) page.table({"in the host's memory", "a rank keeps", "of its share"}, away);
  page.figure("A device of every stage; dashed: what it has", stacked_bars(memory_parts(), bars, bytes_text));
}

void spread(Page& page, const PlanReport& report) {
  if (!report.spread) return;
  const Spread& s = *report.spread;
  page.heading("Random variation");
  page.paragraph(fmt::format(
      "{} simulations of every rank in which each op that computes takes up to {} longer or shorter at "
      "random: 5 % of the iterations are below {}, half below {}, 95 % below {}.",
      s.samples, base::percent(s.jitter), precise_seconds(s.p5_s), precise_seconds(s.p50_s), precise_seconds(s.p95_s)));
  page.figure("From 5 % to 95 % of the simulations",
              band_chart({s.p5_s, s.p50_s, s.p95_s, s.nominal_s}, "without variation",
                         [](double seconds) { return precise_seconds(seconds); }));
}

void changes(Page& page, const PlanReport& report) {
  if (!report.sentences.empty()) {
    page.heading("Why, and what to change");
    page.list(report.sentences);
  }
  if (!report.machine.empty()) {
    page.figure("What a better machine would change of an iteration", change_bars(report.machine));
  }
  if (!report.plans.empty()) {
    page.figure("What plans one change away would change of an iteration", change_bars(report.plans));
  }
}

void others(Page& page, const PlanReport& report) {
  if (report.others.empty()) return;
  page.heading("Other plans");
  std::vector<std::vector<std::string>> rows;
  for (const PlanLine& plan : report.others) {
    rows.push_back({plan.summary, base::seconds(plan.iteration_s), base::integer(plan.tokens_per_s),
                    base::percent(plan.mfu), base::size(plan.peak_memory_bytes)});
  }
  page.table({"plan", "iteration", "tokens/s", simulator::mfu_title("MFU", report.file.job.plan), "peak memory"}, rows);
}

}  // namespace

std::string plan_report(const PlanReport& report) {
  const program::Job& job = report.file.job;
  Page page(fmt::format("{} on {}", job.model.name, report.cluster.name));
  page.paragraph(fmt::format("{}, global batch {} × {} tokens", program::summary(job.plan), job.training.global_batch,
                             job.training.sequence));
  headline(page, report);
  time(page, report);
  memory(page, report);
  spread(page, report);
  changes(page, report);
  others(page, report);
  for (const Picture& picture : report.pictures) page.picture(picture.title, picture.png_base64);
  page.listing("The plan as a file for trivium", base::json_text(program::to_json(report.file), 2));
  return page.text();
}

}  // namespace trivium::report
