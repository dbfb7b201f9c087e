#include "gui/model/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "edge/readable.h"
#include "program/chrome_trace.h"
#include "simulator/whole_training.h"

namespace trivium::gui {
namespace {

constexpr double kSecondsPerPs = 1e-12;
constexpr double kJoulesPerMegawattHour = 3.6e9;

std::string quoted(const std::string& text) {
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

std::string words_of(simulator::Part part) {
  std::string name(name_of(part));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string row(std::initializer_list<std::string> cells) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += "<td>" + html(cell) + "</td>";
  return text + "</tr>\n";
}

std::string breakdown_html(const Evaluation& evaluation) {
  std::string text = "<h2>Where the time goes</h2>\n<table>\n";
  for (std::size_t p = 0; p < simulator::kParts; ++p) {
    const double part = evaluation.figures.breakdown_s[p];
    if (part <= 0) continue;
    text += row({words_of(static_cast<simulator::Part>(p)), edge::seconds(part),
                 edge::percent(part / evaluation.figures.iteration_s)});
  }
  return text + "</table>\n";
}

std::string memory_html(const Evaluation& evaluation) {
  std::string text =
      "<h2>Memory by stage</h2>\n<table>\n<tr><th>stage</th><th>parameters</th><th>gradients</th><th>optimizer</th>"
      "<th>activations</th><th>workspace</th><th>reserved</th><th>sum</th><th>capacity</th></tr>\n";
  for (const simulator::StageMemory& m : evaluation.memory) {
    text += row({std::to_string(m.stage), edge::size(m.parameters), edge::size(m.gradients), edge::size(m.optimizer),
                 edge::size(m.activations), edge::size(m.workspace), edge::size(m.reserved), edge::size(m.total()),
                 edge::size(m.capacity)});
  }
  return text + "</table>\n";
}

std::string headline_html(const Evaluation& evaluation) {
  const simulator::Simulation& figures = evaluation.figures;
  std::string text = "<table>\n";
  text += row({"iteration", edge::seconds(figures.iteration_s)});
  text += row({"throughput", edge::integer(figures.tokens_per_s) + " tokens/s"});
  text += row({"MFU, HFU", edge::percent(figures.mfu) + ", " + edge::percent(figures.hfu)});
  text += row({"peak memory", edge::size(figures.peak_memory_bytes)});
  if (!evaluation.overflow.empty()) text += row({"does not fit", evaluation.overflow});
  const Scenario& scenario = evaluation.scenario;
  if (const auto whole = simulator::whole_training(scenario.file.job, scenario.cluster, figures)) {
    text += row({"whole training", edge::duration(whole->seconds)});
    text += row({"energy", edge::integer(whole->energy_joules / kJoulesPerMegawattHour) + " MWh"});
    text += row({"cost", whole->cost_usd ? "$" + edge::integer(*whole->cost_usd) : "price not known"});
  }
  return text + "</table>\n";
}

constexpr const char* kStyle =
    "body{font:15px sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.5em 0}td,th{padding:.2em .8em;border-bottom:1px solid "
    "#ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}img{max-width:100%;border:1px solid #ccc}";

}  // namespace

std::string html(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string ranks_csv(const Evaluation& evaluation) {
  std::string text = "rank,node,tensor,context,data,pipeline,peak_memory_bytes";
  for (int p = 0; p < simulator::kParts; ++p) text += fmt::format(",{}_s", name_of(static_cast<simulator::Part>(p)));
  text += "\n";
  const program::Mesh& mesh = evaluation.program->mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::Coordinates at = mesh.coordinates(rank);
    const simulator::StageResult& stage = evaluation.figures.stages[static_cast<std::size_t>(at.pipeline)];
    text += fmt::format("{},{},{},{},{},{},{}", rank, evaluation.scenario.cluster.node_index(rank), at.tensor,
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
  std::string text =
      "stage,parameters_bytes,gradients_bytes,optimizer_bytes,activations_bytes,workspace_bytes,reserved_bytes,"
      "capacity_bytes\n";
  for (const simulator::StageMemory& m : evaluation.memory) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", m.stage, m.parameters, m.gradients, m.optimizer, m.activations,
                        m.workspace, m.reserved, m.capacity);
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

std::string report_html(const Evaluation& evaluation, const Insight& insight, const std::vector<PlanRow>& plans,
                        const std::vector<ReportPicture>& pictures) {
  const Scenario& scenario = evaluation.scenario;
  const std::string title = fmt::format("{} on {}", scenario.file.job.model.name, scenario.cluster.name);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n<p>{2}, global batch {3} × {4} tokens</p>\n",
      html(title), kStyle, html(program::summary(scenario.file.job.plan)), scenario.file.job.training.global_batch,
      scenario.file.job.training.sequence);
  text += headline_html(evaluation) + breakdown_html(evaluation) + memory_html(evaluation);
  if (!insight.sentences.empty()) {
    text += "<h2>Why</h2>\n<ul>\n";
    for (const std::string& sentence : insight.sentences) text += "<li>" + html(sentence) + "</li>\n";
    text += "</ul>\n";
  }
  if (!plans.empty()) {
    text += "<h2>Plans</h2>\n<table>\n<tr><th>plan</th><th>iteration</th><th>MFU</th><th>peak memory</th></tr>\n";
    for (const PlanRow& plan : plans) {
      text += row({plan.summary, edge::seconds(plan.iteration_s), edge::percent(plan.mfu),
                   edge::size(static_cast<std::int64_t>(plan.peak_memory_bytes))});
    }
    text += "</table>\n";
  }
  for (const ReportPicture& picture : pictures) {
    text += fmt::format("<h2>{}</h2>\n<img alt=\"{}\" src=\"data:image/png;base64,{}\">\n", html(picture.title),
                        html(picture.title), picture.png_base64);
  }
  return text + "</body></html>\n";
}

}  // namespace trivium::gui
