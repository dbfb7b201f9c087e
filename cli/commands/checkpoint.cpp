// trivium checkpoint: looks into checkpoints and rewrites them for other plans and other programs.
#include "runtime/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/plan/plan_file.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;
namespace checkpoint = runtime::checkpoint;

constexpr const char* kSingleFile = ".safetensors";

bool is_single_file(const fs::path& path) { return path.extension() == kSingleFile; }

nlohmann::json tensors_json(const checkpoint::StoredTensors& stored) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& [name, tensor] : stored.of(checkpoint::State::kValue)) {
    tensors.push_back({{"name", name},
                       {"shape", {tensor.rows, tensor.columns}},
                       {"number", name_of(tensor.parts.front().number)},
                       {"pieces", tensor.parts.size()}});
  }
  return tensors;
}

/// What a single file holds, whoever wrote it.
void inspect_file(const std::string& where, bool json) {
  const checkpoint::SafetensorsFile file{fs::path(where)};
  nlohmann::json tensors = nlohmann::json::array();
  Table table({"<tensor", "shape", "<number"});
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    tensors.push_back({{"name", entry.name}, {"shape", entry.shape}, {"number", name_of(entry.number)}});
    table.add({entry.name, fmt::format("{}", fmt::join(entry.shape, " x ")), std::string(name_of(entry.number))});
  }
  if (json) return print_json({{"path", where}, {"metadata", file.header().metadata}, {"tensors", tensors}});
  print(table.text());
}

void inspect(const std::string& where, bool json) {
  if (is_single_file(where)) return inspect_file(where, json);
  const fs::path path = checkpoint::newest_or_throw(where);
  const checkpoint::Opened opened = checkpoint::open(path, true);
  const checkpoint::Description& d = opened.description;
  const bool has_moments = !opened.tensors.of(checkpoint::State::kFirstMoment).empty();
  nlohmann::json result = checkpoint::to_json(d);
  result["path"] = path.string();
  result["moments"] = has_moments;
  result["tensors"] = tensors_json(opened.tensors);
  if (json) return print_json(result);
  const program::Job& job = d.job.job;
  print(fmt::format("{}: step {}, {} samples read\n", heading(path.string()), integer(static_cast<double>(d.step)),
                    integer(static_cast<double>(d.samples))));
  print(fmt::format("model {}, saved under {}, {}\n\n", job.model.name, program::summary(job.plan),
                    has_moments ? "with the optimizer's moments" : "weights alone"));
  Table files({"<file", "bytes"});
  for (const checkpoint::ShardFile& file : d.files) files.add({file.name, integer(static_cast<double>(file.bytes))});
  print(files.text() + "\n");
  Table tensors({"<tensor", "rows", "columns", "<number", "pieces"});
  for (const nlohmann::json& tensor : result["tensors"]) {
    tensors.add({tensor["name"], integer(tensor["shape"][0].get<double>()), integer(tensor["shape"][1].get<double>()),
                 tensor["number"], integer(tensor["pieces"].get<double>())});
  }
  print(tensors.text());
}

struct Conversion {
  std::string from, to, plan, model;
};

/// The description of the model whose weights are in `file`: what --model says, else config.json next to it.
models::Model model_beside(const Conversion& c) {
  if (!c.model.empty()) return models::load_model(c.model);
  const fs::path config = fs::path(c.from).parent_path() / "config.json";
  std::error_code ignored;
  if (fs::exists(config, ignored)) return models::load_model(config.string());
  throw base::Failure(
      base::ErrorKind::kUsage,
      fmt::format("{} says nothing of the model's shape; give --model NAME or put config.json next to it",
                  base::one_line(c.from)));
}

program::PlanFile first_job(const models::Model& model) {
  program::PlanFile file;
  file.job.model = model;
  file.job.training.sequence = model.max_sequence;
  file.job.training.global_batch = 1;
  file.job.plan.precision = program::DType::kFp32;
  file.cluster = "this-machine";
  return file;
}

void write(const Conversion& c, checkpoint::Description description, const checkpoint::StoredTensors& tensors) {
  if (is_single_file(c.to)) {
    const models::Model& model = description.job.job.model;
    const nlohmann::json config = checkpoint::hugging_face_config(model);
    checkpoint::WholeTensors whole = checkpoint::whole_values(tensors);
    checkpoint::merge_adapters(whole, description.job.job.training.lora.scale());
    checkpoint::write_hugging_face(whole, model, c.to);
    const fs::path beside = fs::path(c.to).parent_path() / "config.json";
    std::error_code ignored;
    if (!fs::exists(beside, ignored)) base::write_file_atomically(beside, base::json_text(config, 2) + "\n");
    return;
  }
  if (!c.plan.empty()) description.job.job.plan = program::read_plan_file(c.plan).job.plan;
  auto lowered = program::lower(description.job.job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) {
    throw base::Failure(base::ErrorKind::kNoPlan, fmt::format("the plan cannot be: {} ({})", no->reason, no->rule));
  }
  if (!checkpoint::list(c.to).whole.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} already holds checkpoints; name another folder", base::one_line(c.to)));
  }
  checkpoint::write_resharded(c.to, std::move(description), std::get<program::Program>(lowered), tensors);
}

void convert(const Conversion& c) {
  if (!is_single_file(c.from)) {
    checkpoint::Opened opened = checkpoint::open(checkpoint::newest_or_throw(c.from), true);
    return write(c, std::move(opened.description), opened.tensors);
  }
  const models::Model model = model_beside(c);
  const checkpoint::WholeTensors whole =
      checkpoint::from_hugging_face(checkpoint::SafetensorsFile(c.from), model, c.from);
  std::map<std::string, checkpoint::StoredTensors::Borrowed> borrowed;
  for (const auto& [name, tensor] : whole) borrowed[name] = {tensor.rows, tensor.columns, tensor.values.data()};
  checkpoint::Description description;
  description.job = first_job(model);
  write(c, std::move(description), checkpoint::StoredTensors(borrowed, c.from));
}

}  // namespace

void add_checkpoint(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("checkpoint", "Look into checkpoints, move them between plans and programs");
  command->require_subcommand(1);
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* inspecting = command->add_subcommand("inspect", "What a checkpoint holds; its files are verified");
  inspecting->add_option("PATH", *path, "Folder of checkpoints, or of one step, or a .safetensors file")->required();
  inspecting->add_flag("--json", *json, "JSON on stdout");
  inspecting->callback([path, json, &exit_code] {
    inspect(*path, *json);
    exit_code = 0;
  });
  auto conversion = std::make_shared<Conversion>();
  CLI::App* converting =
      command->add_subcommand("convert", "Write it for another plan, or from and to a Hugging Face file");
  converting->add_option("FROM", conversion->from, "Folder of checkpoints, or model.safetensors of GPT-2 or llama")
      ->required();
  mark_output(
      *converting,
      converting->add_option("TO", conversion->to, "New folder, or a name that ends in .safetensors")->required(),
      OutputKind::kWeights);
  converting->add_option("--plan", conversion->plan, "Plan file under which to write")->type_name("FILE");
  converting->add_option("--model", conversion->model, "Model of FROM (else config.json next to it)");
  converting->callback([conversion, &exit_code] {
    convert(*conversion);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
