#include "gui/model/report.h"

#include <fmt/format.h>

#include <iterator>

#include "base/seconds.h"
#include "gui/model/cluster_edit.h"
#include "gui/model/rank_memory.h"
#include "program/record/chrome_trace.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;

std::string quoted(const std::string& text) {
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

constexpr const char* kMemoryColumns =
    ",parameters_bytes,gradients_bytes,optimizer_bytes,activations_bytes,workspace_bytes,reserved_bytes,"
    "capacity_bytes,host_bytes,host_capacity_bytes\n";

std::string memory_cells(const simulator::StageMemory& m) {
  return fmt::format(",{},{},{},{},{},{},{},{},{}\n", m.parameters, m.gradients, m.optimizer, m.activations,
                     m.workspace, m.reserved, m.capacity, m.host, m.host_capacity);
}

}  // namespace

std::string ranks_csv(const Evaluation& evaluation) {
  std::string text = "rank,node,tensor,context,data,pipeline,peak_memory_bytes";
  for (int p = 0; p < simulator::kParts; ++p) text += fmt::format(",{}_s", name_of(static_cast<simulator::Part>(p)));
  text += "\n";
  const program::Mesh& mesh = evaluation.program->mesh;
  const std::vector<int> devices = devices_of_ranks(evaluation.scenario.file.job.plan, evaluation.scenario.cluster);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::Coordinates at = mesh.coordinates(rank);
    const simulator::StageResult& stage =
        evaluation.figures.stages[static_cast<std::size_t>(evaluation.program->role_at(at))];
    text += fmt::format("{},{},{},{},{},{},{}", rank,
                        evaluation.scenario.cluster.node_index(devices.at(static_cast<std::size_t>(rank))), at.tensor,
                        at.context, at.data, at.pipeline, stage.memory.total());
    for (const std::int64_t ps : stage.breakdown) text += fmt::format(",{}", static_cast<double>(ps) * kSecondsPerPs);
    text += "\n";
  }
  return text;
}

std::string plans_csv(const std::vector<PlanRow>& plans) {
  std::string text = "plan,iteration_s,tokens_per_s,mfu,hfu,peak_memory_bytes,usd_per_iteration\n";
  for (const PlanRow& plan : plans) {
    text += fmt::format("{},{},{},{},{},{:.0f},{}\n", quoted(plan.summary), plan.iteration_s, plan.tokens_per_s,
                        plan.mfu, plan.hfu, plan.peak_memory_bytes,
                        plan.dollars_per_iteration > 0 ? std::to_string(plan.dollars_per_iteration) : "");
  }
  return text;
}

std::string memory_csv(const Evaluation& evaluation) {
  std::string text = std::string("stage") + kMemoryColumns;
  for (const simulator::StageMemory& m : evaluation.memory) text += fmt::format("{}", m.stage) + memory_cells(m);
  return text;
}

std::string ranks_memory_csv(const Evaluation& evaluation) {
  std::string text = std::string("rank,stage") + kMemoryColumns;
  for (const RankMemory& one : memory_of_ranks(evaluation)) {
    text += fmt::format("{},{}", one.rank, one.memory.stage) + memory_cells(one.memory);
  }
  return text;
}

std::string timeline_csv(const Evaluation& evaluation) {
  std::string text = "rank,lane,name,start_ps,end_ps,wait_ps\n";
  for (const program::Event& event : evaluation.timeline->events) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n", event.rank, name_of(event.lane),
                   quoted(program::name_of(*evaluation.program, event)), event.start_ps, event.end_ps, event.wait_ps);
  }
  return text;
}

std::string insight_csv(const Insight& insight) {
  std::string text = "of,change,iteration_change,refusal\n";
  for (const Sensitivity& s : insight.machine)
    text += fmt::format("machine,{},{},{}\n", quoted(s.change), s.gain, quoted(s.refusal));
  for (const Sensitivity& s : insight.plans) {
    text += fmt::format("plan,{},{},{}\n", quoted(s.change), s.refusal.empty() ? std::to_string(s.gain) : "",
                        quoted(s.refusal));
  }
  return text;
}

std::string validation_csv(const calibration::Validation& validation) {
  std::string text = "by,name,cases,mean_error,bias,median_error,largest_error\n";
  for (const calibration::ValidationGroup& group : validation.groups) {
    text += fmt::format("{},{},{},{},{},{},{}\n", quoted(group.by), quoted(group.name), group.cases, group.mape,
                        group.bias, group.median, group.max);
  }
  return text;
}

std::string report_html(const Evaluation& evaluation, const Insight& insight,
                        const std::optional<report::Spread>& spread, const std::vector<PlanRow>& plans,
                        std::vector<report::Picture> pictures) {
  const auto bars = [](const std::vector<Sensitivity>& changes) {
    std::vector<report::ChangeBar> made;
    for (const Sensitivity& one : changes) made.push_back({one.change, one.gain, one.refusal});
    return made;
  };
  report::PlanReport page{evaluation.scenario.file,
                          evaluation.scenario.cluster,
                          *evaluation.program,
                          evaluation.figures,
                          *evaluation.timeline,
                          evaluation.overflow,
                          insight.sentences,
                          bars(insight.machine),
                          bars(insight.plans),
                          spread,
                          {},
                          std::move(pictures)};
  for (const PlanRow& plan : plans) {
    page.others.push_back({plan.summary, plan.iteration_s, plan.tokens_per_s, plan.mfu,
                           static_cast<std::int64_t>(plan.peak_memory_bytes)});
  }
  return report::plan_report(page);
}

}  // namespace trivium::gui
