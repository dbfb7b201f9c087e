// trivium profiles: the shipped hardware, or one node with the source of every constant.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/say.h"
#include "calibration/fit/gpu_models.h"
#include "cli/options/command.h"
#include "cli/render/output.h"
#include "cli/render/profile_purposes.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "runtime/cuda/loader.h"

namespace trivium::cli {
namespace {

constexpr const char* kUsualTemplate = "dgx-h100-80gb";

struct ProfilesOptions {
  std::string name, output;
  bool json = false, starts_another = false;
};

nlohmann::json summary_json(const std::string& name, const hardware::Node& node) {
  return {{"name", name},
          {"device", node.device.name},
          {"devices", node.devices},
          {"memory_bytes", static_cast<std::int64_t>(node.device.memory.value())},
          {"adapters", node.adapters},
          {"network_bandwidth_bytes_per_s", node.network.bandwidth.value()},
          {"for", purpose_of(name)}};
}

void list_profiles(bool json) {
  Table table({"<profile", "<device", "devices", "memory", "adapters", "adapter bandwidth", "<for"});
  auto entries = nlohmann::json::array();
  const auto add = [&](const std::string& name) {
    const hardware::Node node = hardware::load_node(name);
    entries.push_back(summary_json(name, node));
    table.add({name, node.device.name, std::to_string(node.devices), base::to_text(node.device.memory),
               std::to_string(node.adapters), node.adapters > 0 ? base::to_text(node.network.bandwidth) : "-",
               std::string(purpose_of(name))});
  };
  const std::vector<std::string> shipped = hardware::shipped_profiles();
  for (const std::string& name : shipped) add(name);
  for (const std::string& own : hardware::user_profiles()) {
    if (std::ranges::find(shipped, own) != shipped.end()) continue;
    try {
      add(own);
    } catch (const base::Failure& failure) {  // one that cannot be read hides no other
      base::say("warning: {}\n", failure.error().message);
    }
  }
  if (json) {
    print_json({{"schema", "trivium.profiles/1"}, {"profiles", std::move(entries)}});
  } else {
    print(table.text());
  }
}

/// The constant a source belongs to, as text; empty where the pointer leads nowhere.
std::string constant_at(const nlohmann::json& node, const std::string& pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!node.contains(place)) return "";
  const nlohmann::json& value = node.at(place);
  return value.is_string() ? value.get<std::string>() : value.is_structured() ? "..." : value.dump();
}

void print_sources(const nlohmann::json& node) {
  if (!node.contains("sources")) return;
  Table table({"<constant", "<value", "<source"});
  for (const auto& [pointer, source] : node.at("sources").items()) {
    table.add({pointer, constant_at(node, pointer), source.get<std::string>()});
  }
  print("\n" + table.text());
}

void show_profile(const std::string& name, bool json) {
  const hardware::Node node = hardware::load_node(name);
  const nlohmann::json full = hardware::to_json(node);
  if (json) {
    print_json(full);
    return;
  }
  print(fmt::format("{}: {} x {}, {} each\n", heading(node.name), node.devices, node.device.name,
                    base::to_text(node.device.memory)));
  if (!node.bases.empty()) {
    print(fmt::format("base {}: what of it stands below is marked, the rest is this profile's own\n",
                      fmt::join(node.bases, ", over ")));
  }
  print_sources(full);
}

/// The first shipped profile with GPUs as this machine has them, else a usual one.
std::string nearest_profile() {
  const auto gpus = runtime::cuda::describe_devices();
  if (!gpus || gpus.value().empty()) return kUsualTemplate;
  const calibration::GpuModel* here = calibration::gpu_model_in(gpus.value().front());
  for (const std::string& name : hardware::shipped_profiles()) {
    if (here != nullptr && calibration::gpu_model_in(hardware::load_node(name).device.name) == here) return name;
  }
  return kUsualTemplate;
}

void print_template(const ProfilesOptions& options) {
  const std::string from = options.name.empty() ? nearest_profile() : options.name;
  const std::string text = hardware::node_template(from).dump(2) + "\n";
  if (options.output.empty()) {
    print(text);
    return;
  }
  base::write_file_atomically(options.output, text);
  print(fmt::format("wrote {}, as {} is: change what differs, and its sources\n", options.output, from));
}

}  // namespace

void add_profiles(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ProfilesOptions>();
  CLI::App* command = app.add_subcommand("profiles", "List the shipped hardware, or show one with its sources");
  command->add_option("NAME", options->name, "Shipped name, this-machine, or a file");
  CLI::Option* json = command->add_flag("--json", options->json, "JSON on stdout");
  CLI::Option* starts_another =
      command
          ->add_flag("--template", options->starts_another,
                     "A profile to change into your own: NAME's, or that of the nearest shipped hardware")
          ->excludes(json);
  add_output(*command, "-o,--output", options->output, "With --template: the file it goes to", OutputKind::kProfile)
      ->needs(starts_another);
  command->callback([options, &exit_code] {
    if (options->starts_another) {
      print_template(*options);
    } else if (options->name.empty()) {
      list_profiles(options->json);
    } else {
      show_profile(options->name, options->json);
    }
    exit_code = 0;
  });
}

}  // namespace trivium::cli
