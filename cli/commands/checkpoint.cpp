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
#include "cli/options/options.h"
#include "cli/options/tokens.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "models/load.h"
#include "models/validate.h"
#include "program/lower/lower.h"
#include "program/plan/plan_file.h"
#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;
namespace checkpoint = runtime::checkpoint;

bool is_file_of_weights(const fs::path& path) { return path.extension() == checkpoint::kWeightsEnd; }

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

/// What files of weights hold, whoever wrote them.
void inspect_weights(const std::string& where, bool json) {
  const std::vector<checkpoint::SafetensorsFile> files = checkpoint::open_weights(where);
  nlohmann::json tensors = nlohmann::json::array();
  Table table({"<tensor", "shape", "<number"});
  for (const checkpoint::SafetensorsFile& file : files) {
    for (const checkpoint::TensorEntry& entry : file.header().tensors) {
      tensors.push_back({{"name", entry.name}, {"shape", entry.shape}, {"number", name_of(entry.number)}});
      table.add({entry.name, fmt::format("{}", fmt::join(entry.shape, " x ")), std::string(name_of(entry.number))});
    }
  }
  if (json) return print_json({{"path", where}, {"metadata", files.front().header().metadata}, {"tensors", tensors}});
  print(table.text());
}

void inspect(const std::string& where, bool json) {
  if (checkpoint::holds_weights(where)) return inspect_weights(where, json);
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
  std::string from, to, plan, model, shard_size, adapters;
  std::int64_t modules = -1;  // of multi-token prediction; -1: as the model has them
};

/// The description of the model whose weights are in `file`: what --model says, else config.json next to it.
models::Model model_beside(const Conversion& c) {
  if (!c.model.empty()) return models::load_model(c.model);
  const fs::path config = checkpoint::folder_of_weights(c.from) / "config.json";
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

/// The plan file's plan and model, and its training where the checkpoint has none of its own yet.
void take_plan(const Conversion& c, checkpoint::Description& description) {
  const program::Job wanted = program::read_plan_file(c.plan).job;
  program::Job& job = description.job.job;
  program::Job judged = job;
  judged.model = wanted.model;
  if (const std::string why = checkpoint::cannot_continue(description, judged, description.corpus_tokens);
      !why.empty()) {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: {}", base::one_line(c.from), why));
  }
  job.plan = wanted.plan;
  job.model = wanted.model;
  if (description.step > 0) return;
  const program::Lora adapters = job.training.lora;
  job.training = wanted.training;
  job.training.lora = adapters;
}

void write(const Conversion& c, checkpoint::Description description, const checkpoint::StoredTensors& tensors) {
  const program::Lora& lora = description.job.job.training.lora;
  if (fs::path(c.to).filename() == checkpoint::kAdapterWeights) {
    return checkpoint::write_adapters(checkpoint::whole_values(tensors), description.job.job.model, lora, c.to);
  }
  if (is_file_of_weights(c.to)) {
    const models::Model& model = description.job.job.model;
    const nlohmann::json config = checkpoint::hugging_face_config(model);
    checkpoint::WholeTensors whole = checkpoint::whole_values(tensors);
    checkpoint::merge_adapters(whole, lora.scale());
    const std::int64_t shard_bytes = c.shard_size.empty() ? 0 : parse_size("--shard-size", c.shard_size);
    checkpoint::write_hugging_face(whole, model, c.to, shard_bytes);
    const fs::path beside = fs::path(c.to).parent_path() / "config.json";
    std::error_code ignored;
    if (!fs::exists(beside, ignored)) base::write_file_atomically(beside, base::json_text(config, 2) + "\n");
    return;
  }
  if (!c.shard_size.empty())
    fail_usage("--shard-size is for weights of other programs: a TO that ends in .safetensors");
  if (c.to.ends_with(checkpoint::kIndexEnd)) {
    fail_usage("the index is written with its shards: give a TO that ends in .safetensors, and --shard-size");
  }
  if (!c.plan.empty()) take_plan(c, description);
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
  if (!checkpoint::holds_weights(c.from)) {
    if (c.modules >= 0) fail_usage("--mtp is for weights of other programs; FROM is a checkpoint");
    if (!c.adapters.empty()) fail_usage("--adapters is for weights of other programs; FROM is a checkpoint");
    if (!c.model.empty())
      fail_usage("--model is for weights of other programs; FROM is a checkpoint, which has its own");
    checkpoint::Opened opened = checkpoint::open(checkpoint::newest_or_throw(c.from), true);
    return write(c, std::move(opened.description), opened.tensors);
  }
  models::Model model = model_beside(c);
  if (c.modules >= 0) model = models::with_modules(std::move(model), c.modules);
  const std::vector<checkpoint::SafetensorsFile> files = checkpoint::open_weights(c.from);
  const std::int64_t modules = checkpoint::modules_in(files, model.layers);
  if (modules > 0 && c.modules < 0 && !model.mtp) {
    base::say("note: {} has {} of multi-token prediction, left out; --mtp {} takes {}\n", base::one_line(c.from),
              modules == 1 ? "a module" : fmt::format("{} modules", modules), modules, modules == 1 ? "it" : "them");
  }
  checkpoint::WholeTensors whole = checkpoint::from_hugging_face(files, model, c.from);
  checkpoint::Description description;
  description.job = first_job(model);
  if (!c.adapters.empty()) {
    checkpoint::Adapters adapters = checkpoint::read_adapters(c.adapters, model);
    description.job.job.training.lora = adapters.lora;
    whole.merge(adapters.tensors);
  }
  std::map<std::string, checkpoint::StoredTensors::Borrowed> borrowed;
  for (const auto& [name, tensor] : whole) borrowed[name] = {tensor.rows, tensor.columns, tensor.values.data()};
  write(c, std::move(description), checkpoint::StoredTensors(borrowed, c.from));
}

}  // namespace

void add_checkpoint(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("checkpoint", "Look into checkpoints, move them between plans and programs");
  command->require_subcommand(1);
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* inspecting = command->add_subcommand("inspect", "What a checkpoint holds; its files are verified");
  inspecting->add_option("PATH", *path, "Folder of checkpoints, of one step, or of safetensors; or a file of these")
      ->required();
  inspecting->add_flag("--json", *json, "JSON on stdout");
  inspecting->callback([path, json, &exit_code] {
    inspect(*path, *json);
    exit_code = 0;
  });
  auto conversion = std::make_shared<Conversion>();
  CLI::App* converting =
      command->add_subcommand("convert", "Write it for another plan, or from and to a Hugging Face file");
  converting
      ->add_option("FROM", conversion->from, "Folder of checkpoints, or of Hugging Face's weights, or a file of these")
      ->required();
  mark_output(*converting,
              converting
                  ->add_option("TO", conversion->to,
                               "New folder, a name that ends in .safetensors, or adapter_model.safetensors")
                  ->required(),
              OutputKind::kWeights);
  converting->add_option("--plan", conversion->plan, "Plan file under which to write")->type_name("FILE");
  converting->add_option("--model", conversion->model, "Model of FROM (else config.json next to it)");
  converting->add_option("--adapters", conversion->adapters, "Adapters (LoRA) for FROM, as PEFT has them: their folder")
      ->type_name("DIR");
  converting->add_option("--mtp", conversion->modules, "Modules of multi-token prediction to take from FROM; 0: none")
      ->check(CLI::Range(std::int64_t{0}, models::kMostModules))
      ->type_name("N");
  converting
      ->add_option("--shard-size", conversion->shard_size, "Most bytes of a file of weights; else they are one file")
      ->type_name("SIZE");
  converting->callback([conversion, &exit_code] {
    convert(*conversion);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
