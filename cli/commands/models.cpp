// trivium models: the shipped models, or one in full.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/command.h"
#include "cli/render/render.h"
#include "models/load.h"

namespace trivium::cli {
namespace {

struct ModelsOptions {
  std::string name, find;
  bool json = false;
};

/// Whether the name or the source of a shipped model has that text, capital letters or not.
bool has_text(const models::Model& model, const std::string& wanted) {
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
  };
  return lower(model.name + "\n" + model.source).find(lower(wanted)) != std::string::npos;
}

nlohmann::json summary_json(const models::Model& model) {
  const models::ParameterCount count = models::count_parameters(model);
  const models::FlopsPerToken flops = models::flops_per_token(model, model.max_sequence);
  return {{"name", model.name},
          {"family", models::family_of(model.name)},
          {"parameters", count.total},
          {"active_parameters", count.active},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"heads", model.heads},
          {"vocab", model.vocab},
          {"max_sequence", model.max_sequence},
          {"flops_per_token", flops.model}};
}

std::string billions(std::int64_t parameters) {
  constexpr double kBillion = 1e9, kMillion = 1e6;
  const auto n = static_cast<double>(parameters);
  return n >= kBillion ? fmt::format("{:.1f} B", n / kBillion) : fmt::format("{:.1f} M", n / kMillion);
}

std::string gigaflops(double flops) { return fmt::format("{:.3g}", flops / 1e9); }

void list_models(const ModelsOptions& options) {
  Table table({"<model", "<family", "layers", "parameters", "active", "sequence", "GFLOP/token"});
  auto entries = nlohmann::json::array();
  for (const std::string& name : models::shipped_models()) {
    const models::Model model = models::load_model(name);
    if (!has_text(model, options.find)) continue;
    const models::ParameterCount count = models::count_parameters(model);
    entries.push_back(summary_json(model));
    table.add({name, models::family_of(name), std::to_string(model.layers), billions(count.total),
               billions(count.active), std::to_string(model.max_sequence),
               gigaflops(models::flops_per_token(model, model.max_sequence).model)});
  }
  if (entries.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("no shipped model has {} in its name or source; `trivium models` lists them",
                                    base::quote(options.find)));
  }
  if (options.json) {
    print_json({{"schema", "trivium.models/1"}, {"models", std::move(entries)}});
  } else {
    print(table.text());
  }
}

nlohmann::json parts_json(const models::ParameterCount& count) {
  return {{"token_embedding", count.token_embedding},
          {"position_embedding", count.position_embedding},
          {"attention", count.attention},
          {"mlp", count.mlp},
          {"norms", count.norms},
          {"head", count.head},
          {"mtp", count.mtp},
          {"total", count.total},
          {"active", count.active}};
}

void show_model(const std::string& name, bool json) {
  const models::Model model = models::load_model(name);
  const models::ParameterCount count = models::count_parameters(model);
  const models::FlopsPerToken flops = models::flops_per_token(model, model.max_sequence);
  if (json) {
    nlohmann::json result = models::to_json(model);
    result["ignored"] = models::ignored_members(name);
    if (const auto others = models::models_left_out(name); !others.empty()) result["left_out"] = others;
    if (const auto left_out = models::modules_left_out(name); left_out > 0) result["mtp_left_out"] = left_out;
    result["parameters"] = parts_json(count);
    result["flops_per_token"] = {{"sequence", model.max_sequence},
                                 {"model", flops.model},
                                 {"hardware_selective", flops.hardware_selective},
                                 {"hardware_full", flops.hardware_full}};
    print_json(result);
    return;
  }
  print(fmt::format("{}: {} layers, hidden {}, {} heads, vocabulary {}, sequence {}\n", heading(model.name),
                    model.layers, model.hidden, model.heads, model.vocab, model.max_sequence));
  print(fmt::format("source: {}\n", model.source));
  const std::vector<std::string> ignored = models::ignored_members(name);
  if (!ignored.empty()) print(fmt::format("ignored, as they do not change the model: {}\n", fmt::join(ignored, ", ")));
  for (const std::string& other : models::models_left_out(name)) print(fmt::format("left out: {}\n", other));
  if (const std::vector<std::string> planned = models::not_run(model); !planned.empty()) {
    print(fmt::format("planned and simulated; no backend runs yet: {}\n", fmt::join(planned, ", ")));
  }
  if (const auto left_out = models::modules_left_out(name); left_out > 0) {
    print(fmt::format("left out, as published counts do: {} of multi-token prediction (--mtp {} of other commands)\n",
                      left_out == 1 ? "a module" : fmt::format("{} modules", left_out), left_out));
  }
  print("\n");
  Table parameters({"<part", "parameters"});
  const nlohmann::json parts = parts_json(count);
  for (const char* part :
       {"token_embedding", "position_embedding", "attention", "mlp", "norms", "head", "mtp", "total", "active"}) {
    if (std::string_view(part) == "mtp" && count.mtp == 0) continue;
    parameters.add({part, integer(parts.at(part).get<double>())});
  }
  print(parameters.text());
  Table work({"<work per token", "GFLOP"});
  work.add({"model", gigaflops(flops.model)});
  work.add({"with selective recompute, as published", gigaflops(flops.hardware_selective)});
  work.add({"with full recompute", gigaflops(flops.hardware_full)});
  print("\n" + work.text());
}

}  // namespace

void add_models(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ModelsOptions>();
  CLI::App* command = app.add_subcommand("models", "List the shipped models, or show one");
  command->add_option("NAME", options->name, "Shipped name, file, or a Hugging Face config.json");
  command->add_option("--find", options->find, "Only shipped models with this text in name or source");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    if (options->name.empty()) {
      list_models(*options);
    } else {
      show_model(options->name, options->json);
    }
    exit_code = 0;
  });
}

}  // namespace trivium::cli
