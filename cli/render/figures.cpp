#include "cli/render/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/render/render.h"
#include "hardware_profiles/price_text.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/iteration/mfu_text.h"

namespace trivium::cli {
namespace {

using simulator::Simulation;
using simulator::WholeTraining;

nlohmann::json memory_json(const simulator::StageMemory& m) {
  return {{"parameters", m.parameters},   {"gradients", m.gradients}, {"optimizer", m.optimizer},
          {"activations", m.activations}, {"workspace", m.workspace}, {"reserved", m.reserved}};
}

template <class Value>
nlohmann::json breakdown_json(const std::array<Value, simulator::kParts>& parts, double unit) {
  auto json = nlohmann::json::object();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    json[std::string(name_of(static_cast<simulator::Part>(i)))] = static_cast<double>(parts[i]) * unit;
  }
  return json;
}

nlohmann::json ranks_json(const program::Program& program, const Simulation& simulation) {
  auto ranks = nlohmann::json::array();
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const int stage = program.mesh.coordinates(rank).pipeline;
    const simulator::StageResult& result = simulation.stages[static_cast<std::size_t>(program.role_index(rank))];
    ranks.push_back({{"rank", rank},
                     {"stage", stage},
                     {"peak_memory_bytes", result.memory.total()},
                     {"memory_bytes", memory_json(result.memory)},
                     {"breakdown_s", breakdown_json(result.breakdown, kSecondsPerPs)}});
  }
  return ranks;
}

/// By more than what is worth a line.
bool differ(double a, double b) { return std::abs(a / b - 1) >= 1e-4; }

/// "300B", "1.5T", "1,234,567".
std::string tokens_words(std::int64_t tokens) {
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {
      {1'000'000'000'000, "T"}, {1'000'000'000, "B"}, {1'000'000, "M"}};
  for (const auto& [unit, name] : kUnits) {
    const std::int64_t tenths = tokens / (unit / 10);
    if (tokens >= unit && tokens % (unit / 10) == 0) {
      return fmt::format("{:g}{}", static_cast<double>(tenths) / 10, name);
    }
  }
  return integer(static_cast<double>(tokens));
}

std::string breakdown_table(const Simulation& simulation) {
  Table table({"<time of an iteration", "time", "share"});
  for (std::size_t i = 0; i < simulation.breakdown_s.size(); ++i) {
    const double part = simulation.breakdown_s[i];
    if (part <= 0) continue;
    std::string name(name_of(static_cast<simulator::Part>(i)));
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({std::move(name), seconds(part), percent(part / simulation.iteration_s)});
  }
  table.add({"sum", seconds(simulation.iteration_s), percent(1)});
  return table.text();
}

std::string memory_table(const Simulation& simulation) {
  const auto fullest =
      std::max_element(simulation.stages.begin(), simulation.stages.end(),
                       [](const auto& a, const auto& b) { return a.memory.total() < b.memory.total(); });
  const simulator::StageMemory& m = fullest->memory;
  Table table({fmt::format("<memory of {}, the fullest", m.name()), "size"});
  table.add({"parameters", size(m.parameters)});
  table.add({"gradients", size(m.gradients)});
  table.add({"optimizer", size(m.optimizer)});
  table.add({"activations", size(m.activations)});
  table.add({"workspace", size(m.workspace)});
  table.add({"reserved", size(m.reserved)});
  table.add({fmt::format("sum, of {}", size(m.capacity)), size(m.total())});
  return table.text();
}

}  // namespace

std::string price(const std::optional<double>& cost_usd) { return cost_usd ? dollars(*cost_usd) : "price not known"; }

std::string expected_sentence(const Simulation& simulation, const program::Plan& plan) {
  const simulator::Certainty& sure = simulation.certainty;
  return fmt::format(
      "An iteration is expected to take {} (90 % of measurements: {}). Simulated: {}, MFU {}, {} tokens/s.",
      seconds_beside(sure.expected_s, simulation.iteration_s), interval_text(sure.iteration_s, simulation.iteration_s),
      seconds(simulation.iteration_s), simulator::mfu_text(simulation.mfu, plan), integer(simulation.tokens_per_s));
}

std::string training_sentence(const program::Job& job, const hardware::Cluster& cluster, const WholeTraining& whole) {
  const auto figure = [&](double value, auto as_text) {
    return fmt::format("{} ({} to {})", as_text(value), as_text(value * whole.least), as_text(value * whole.most));
  };
  const std::string cost = whole.cost_usd ? figure(*whole.cost_usd, dollars) : price(whole.cost_usd);
  std::string text = fmt::format("{}, {}, {} for {} tokens", figure(whole.seconds, duration), cost,
                                 base::energy(whole.energy_joules), tokens_words(job.training.total_tokens));
  if (whole.cost_usd) text += ", at " + hardware::price_rates(cluster);
  return text;
}

std::string training_lines(const program::Job& job, const hardware::Cluster& cluster, const WholeTraining& whole) {
  std::string text =
      fmt::format("\ntraining on {} tokens: {}, {}, {}\n", integer(static_cast<double>(job.training.total_tokens)),
                  duration(whole.seconds), base::energy(whole.energy_joules), price(whole.cost_usd));
  const auto ends = [&](double value, auto as_text) {
    return fmt::format("{} to {}", as_text(value * whole.least), as_text(value * whole.most));
  };
  text += fmt::format("  90 of 100 trainings: {}, {}", ends(whole.seconds, duration),
                      ends(whole.energy_joules, [](double joules) { return base::energy(joules); }));
  text += whole.cost_usd ? fmt::format(", {}\n", ends(*whole.cost_usd, dollars)) : "\n";
  if (whole.cost_usd) text += fmt::format("  at {}\n", hardware::price_text(cluster));
  return text;
}

nlohmann::json training_json(const hardware::Cluster& cluster, const WholeTraining& whole) {
  nlohmann::json json{{"seconds", whole.seconds}, {"energy_joules", whole.energy_joules}};
  const auto ends = [&](double value) { return nlohmann::json{value * whole.least, value * whole.most}; };
  json["seconds_interval_90"] = ends(whole.seconds);
  json["energy_interval_90_joules"] = ends(whole.energy_joules);
  json["cost_interval_90_usd"] = whole.cost_usd ? ends(*whole.cost_usd) : nlohmann::json();
  json["cost_usd"] = whole.cost_usd ? nlohmann::json(*whole.cost_usd) : nlohmann::json();
  json["price"] = whole.cost_usd ? nlohmann::json(hardware::price_text(cluster)) : nlohmann::json();
  return json;
}

nlohmann::json headline_json(const Simulation& simulation, const program::Plan& plan) {
  const simulator::Certainty& sure = simulation.certainty;
  return {{"iteration_s", simulation.iteration_s},
          {"iteration_expected_s", sure.expected_s},
          {"iteration_interval_90_s", {sure.iteration_s.low, sure.iteration_s.high}},
          {"tokens_per_s", simulation.tokens_per_s},
          {"mfu", simulation.mfu},
          {"hfu", simulation.hfu},
          {"mfu_peak", name_of(plan.precision)},
          {"peak_memory_bytes", simulation.peak_memory_bytes},
          {"peak_interval_90_bytes", {std::llround(sure.peak_bytes.low), std::llround(sure.peak_bytes.high)}},
          {"fit_probability", sure.fit_probability},
          {"certainty", sure.compared ? "compared" : "extrapolated"},
          {"comparable", {{"runs", sure.runs}, {"sources", sure.sources}, {"words", sure.words}}}};
}

nlohmann::json breakdown_json(const Simulation& simulation) { return breakdown_json(simulation.breakdown_s, 1); }

nlohmann::json simulation_json(const JobRequest& request, const program::Program& program, const Simulation& simulation,
                               bool hypothetical) {
  nlohmann::json json = headline_json(simulation, request.file.job.plan);
  json["schema"] = "trivium.simulation/1";
  json["model"] = request.file.job.model.name;
  json["cluster"] = request.cluster.name;
  json["training"] = program::to_json(request.file.job.training);
  json["plan"] = program::to_json(request.file.job.plan);
  json["hypothetical"] = hypothetical;
  json["model_flops_per_s_per_device"] = simulation.model_flops_per_s_per_device;
  json["hardware_flops_per_s_per_device"] = simulation.hardware_flops_per_s_per_device;
  json["iteration_shared_links_s"] = simulation.iteration_s;  // its name before the headline shared links
  if (simulation.unshared_s) json["iteration_unshared_s"] = *simulation.unshared_s;
  json["breakdown_s"] = breakdown_json(simulation.breakdown_s, 1);
  json["ranks"] = ranks_json(program, simulation);
  if (const auto whole = whole_training(request.file.job, request.cluster, simulation)) {
    json["whole_training"] = training_json(request.cluster, *whole);
  }
  return json;
}

namespace {

// ", samples packed of documents of 200 tokens"
std::string documents_heading(const program::Documents& documents) {
  if (!documents.used()) return "";
  double tokens = 0, weights = 0;
  for (std::size_t i = 0; i < documents.lengths.size(); ++i) {
    tokens += static_cast<double>(documents.lengths[i] * documents.weight(i));
    weights += static_cast<double>(documents.weight(i));
  }
  return fmt::format(", samples packed of documents of {}{:.0f} tokens", documents.lengths.size() > 1 ? "about " : "",
                     tokens / weights);
}

// ", experts chosen by Zipf's law of 0.6"
std::string load_heading(const program::ExpertLoad& load) {
  if (!load.used()) return "";
  return load.choices.empty() ? fmt::format(", experts chosen by Zipf's law of {:g}", load.zipf)
                              : ", experts chosen as counted";
}

// " with adapters of rank 16 (qkv, fc1)"
std::string adapters_heading(const program::Lora& lora) {
  if (!lora.used()) return "";
  std::string targets;
  for (const auto& [name, has] : std::initializer_list<std::pair<const char*, bool>>{
           {"qkv", lora.qkv}, {"projection", lora.projection}, {"fc1", lora.fc1}, {"fc2", lora.fc2}}) {
    if (has) targets += (targets.empty() ? "" : ", ") + std::string(name);
  }
  return fmt::format(" with adapters of rank {} ({})", lora.rank, targets);
}

// " and 2 modules of multi-token prediction"
std::string modules_heading(const models::Model& model) {
  if (!model.mtp) return "";
  return model.mtp->depth == 1 ? " and a module of multi-token prediction"
                               : fmt::format(" and {} modules of multi-token prediction", model.mtp->depth);
}

}  // namespace

std::string model_heading(const program::Job& job) {
  return heading(job.model.name) + model_words(job).substr(job.model.name.size());
}

std::string model_words(const program::Job& job) {
  const char* muon = job.training.optimizer.kind == program::Update::kMuon ? ", layers stepped by Muon" : "";
  return job.model.name + adapters_heading(job.training.lora) + modules_heading(job.model) + muon +
         documents_heading(job.training.documents) + load_heading(job.training.expert_load);
}

std::string simulation_report(const JobRequest& request, const Simulation& simulation,
                              const std::optional<program::Infeasible>& too_big) {
  const program::Job& job = request.file.job;
  std::string text =
      fmt::format("{} on {}: {}\n", model_heading(job), request.cluster.name, program::summary(job.plan));
  if (too_big) text += fmt::format("hypothetical, memory ignored: {}\n", too_big->reason);
  text += fmt::format("\n  iteration   {} (expected when measured: {}, 90 % of measurements: {})\n",
                      seconds(simulation.iteration_s),
                      seconds_beside(simulation.certainty.expected_s, simulation.iteration_s),
                      interval_text(simulation.certainty.iteration_s, simulation.iteration_s));
  text += fmt::format("              ({})\n", simulation.certainty.words);
  if (const auto alone = simulation.unshared_s; alone && differ(*alone, simulation.iteration_s)) {
    text += fmt::format("              {} ({:+.2f} %) if communication that overlaps did not share links\n",
                        seconds(*alone), 100 * (*alone / simulation.iteration_s - 1));
  }
  text += fmt::format("  throughput  {} tokens/s\n", integer(simulation.tokens_per_s));
  text += fmt::format(
      "  per device  {} of the model (MFU {}), {} of the hardware (HFU {}){}\n\n",
      base::to_text(base::FlopsPerSecond(simulation.model_flops_per_s_per_device)), percent(simulation.mfu),
      base::to_text(base::FlopsPerSecond(simulation.hardware_flops_per_s_per_device)), percent(simulation.hfu),
      job.plan.fp8 == program::Fp8::kNone ? "" : "," + simulator::mfu_peak_text(job.plan));
  text += breakdown_table(simulation) + "\n" + memory_table(simulation);
  text +=
      fmt::format("  fits with probability {}\n", simulator::probability_text(simulation.certainty.fit_probability));
  if (const auto whole = whole_training(job, request.cluster, simulation)) {
    text += training_lines(job, request.cluster, *whole);
  }
  return text;
}

}  // namespace trivium::cli
