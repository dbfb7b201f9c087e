#include "tests/fuzz/readers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/json_reader.h"
#include "calibration/foreign/flight_recorder.h"
#include "calibration/foreign/foreign_files.h"
#include "calibration/foreign/memory_snapshot.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/importer.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/published/micro_rows.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/forms/forms.h"
#include "planner/launch/launch.h"
#include "planner/launch/yaml/yaml.h"
#include "program/lower/lower.h"
#include "program/plan/plan_file.h"
#include "program/record/run_record.h"
#include "program/verify/verify.h"
#include "runtime/checkpoint/description.h"
#include "runtime/checkpoint/stored.h"
#include "runtime/checkpoint/whole.h"
#include "runtime/data/token_files.h"
#include "runtime/flight/log.h"
#include "runtime/text/tokenizer.h"

namespace trivium::fuzz {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// A file in memory with a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : number_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (number_ < 0 || ::write(number_, content.data(), content.size()) != std::ssize(content)) {
      throw std::runtime_error("no memory file");
    }
  }
  ~MemoryFile() { ::close(number_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

/// Runs `read`; being refused is a good answer.
template <class Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const base::Failure&) {
    return;
  }
}

template <class Read>
void with_json(Bytes bytes, const Read& read) {
  const nlohmann::json json = nlohmann::json::parse(text_of(bytes), nullptr, false);
  if (json.is_discarded()) return;
  attempt([&] { read(json); });
}

bool is_small(const program::Job& job) {
  constexpr std::int64_t kLayers = 16, kBatch = 64, kRanks = 32;
  return job.model.layers <= kLayers && job.training.global_batch <= kBatch && job.plan.ranks() <= kRanks &&
         job.plan.tensor <= kRanks && job.plan.pipeline <= kRanks && job.plan.context <= kRanks &&
         job.plan.data <= kRanks && job.plan.chunks() <= kLayers;
}

models::Model small_gpt2() {
  return models::model_from_hugging_face(
      {{"model_type", "gpt2"}, {"vocab_size", 3}, {"n_positions", 2}, {"n_embd", 2}, {"n_layer", 1}, {"n_head", 1}},
      "gpt2");
}

}  // namespace

void read_plan(Bytes bytes) {
  with_json(bytes, [](const nlohmann::json& json) {
    const program::PlanFile file = program::plan_file_from_json(json, "plan.json");
    if (!is_small(file.job)) return;
    const auto lowered = program::lower(file.job);
    if (const auto* lowered_program = std::get_if<program::Program>(&lowered)) program::verify(*lowered_program);
  });
}

void read_model(Bytes bytes) {
  with_json(bytes, [](const nlohmann::json& json) { models::model_from_json(json, "model.json"); });
  with_json(bytes, [](const nlohmann::json& json) { models::model_from_hugging_face(json, "config.json"); });
}

void read_cluster(Bytes bytes) {
  with_json(bytes, [](const nlohmann::json& json) { hardware::cluster_from_json(json, "cluster.json"); });
}

void read_run_record(Bytes bytes) {
  with_json(bytes, [](const nlohmann::json& json) { program::run_record_from_json(json, "run.json"); });
}

void read_checkpoint(Bytes bytes) {
  with_json(bytes,
            [](const nlohmann::json& json) { runtime::checkpoint::description_from_json(json, "checkpoint.json"); });
}

void read_tensor_file(Bytes bytes) {
  namespace checkpoint = runtime::checkpoint;
  attempt([&] { checkpoint::parse_safetensors(bytes, "model.safetensors"); });
  const MemoryFile file(text_of(bytes));
  attempt([&] { checkpoint::whole_values(checkpoint::StoredTensors({file.path()})); });
  attempt([&] {
    static const models::Model kModel = small_gpt2();
    checkpoint::from_hugging_face(checkpoint::SafetensorsFile(file.path()), kModel, "model.safetensors");
  });
}

void read_tokens(Bytes bytes) {
  attempt([&] { runtime::data::layout_of("tokens.bin", bytes); });
  attempt([&] { runtime::data::layout_of("text.txt", bytes); });
}

void read_vocabulary(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const std::size_t cut = std::min(text.find('\0'), text.size());
  const MemoryFile vocabulary(text.substr(0, cut)), merges(text.substr(std::min(cut + 1, text.size())));
  attempt([&] {
    const auto tokenizer = runtime::text::open_bpe(vocabulary.path(), merges.path());
    if (tokenizer->decode(tokenizer->encode(text)) != text) throw std::runtime_error("another text came back");
  });
}

void read_flight_record(Bytes bytes) {
  const MemoryFile file(text_of(bytes));
  attempt([&] { runtime::flight::read_log(file.path()); });
}

void read_node(Bytes bytes) {
  with_json(bytes, [](const nlohmann::json& json) { hardware::node_from_json(json, "node.json"); });
}

void read_json(Bytes bytes) {
  attempt([&] { base::parse_json(text_of(bytes), "some.json"); });
  attempt([&] { base::parse_json(text_of(bytes), "some.json", base::Comments::kTaken); });
}

void read_measurements(Bytes bytes) {
  attempt([&] {
    calibration::GivenFile file{"f", std::string(text_of(bytes))};
    if (calibration::imports::is_gzip(file.text)) file.text = calibration::imports::unpacked(file.text, file.path);
    const calibration::Importer& importer = calibration::importer_of(file.text, file.path);
    if (importer.by_path) return;
    try {
      importer.read(file);
    } catch (const nlohmann::json::exception&) {
      return;  // the command says that a member has another type
    }
  });
  const MemoryFile file(text_of(bytes));
  attempt([&] { calibration::foreign::told_fields(calibration::foreign::read_foreign({file.path()})); });
}

void read_dumps(Bytes bytes) {
  attempt([&] {
    const auto dump = calibration::foreign::read_flight_dump(text_of(bytes), "f");
    calibration::foreign::stalls_of({dump, dump});
  });
  attempt([&] { calibration::foreign::read_memory_snapshot(text_of(bytes), "f"); });
}

void read_nsight_export(Bytes bytes) {
  const MemoryFile file(text_of(bytes));
  attempt([&] { calibration::imports::read_nsight(file.path()); });
  attempt([&] { calibration::imports::read_nsight_processes(file.path()); });
}

void read_published_runs(Bytes bytes) {
  const MemoryFile file(text_of(bytes));
  attempt([&] { calibration::read_published_runs(file.path()); });
}

void read_micro_rows(Bytes bytes) {
  const MemoryFile file(text_of(bytes));
  attempt([&] { calibration::read_micro_rows(file.path()); });
}

void read_launch(Bytes bytes) {
  namespace launch = planner::launch;
  static const models::Model kModel = small_gpt2();
  launch::ImportRequest request{std::string(text_of(bytes)), "launch", kModel, 0, 8};
  attempt([&] { launch::is_deepspeed(request); });
  attempt([&] { launch::import_megatron(request); });
  attempt([&] { launch::import_deepspeed(request); });
  attempt([&] { launch::forms::import_trainer(request, launch::read_script(request.text, request.where)); });
  attempt([&] { launch::import_torchtitan(request); });
  request.model.reset();
  attempt([&] { launch::import_megatron(request); });
}

void read_yaml(Bytes bytes) {
  namespace launch = planner::launch;
  static const models::Model kModel = small_gpt2();
  launch::ImportRequest request{std::string(text_of(bytes)), "launch.yaml", kModel, 0, 8};
  attempt([&] { launch::yaml::settings_of(launch::yaml::read(request.text, request.where)); });
  for (const bool with_model : {true, false}) {
    if (!with_model) request.model.reset();
    for (const launch::forms::Form& form : launch::forms::all()) {
      attempt([&] {
        const launch::forms::Document document = launch::forms::document_of(request);
        if (form.recognises(document.root)) form.read(request, document);
      });
    }
  }
}

std::span<const NamedReader> readers() {
  static constexpr std::array<NamedReader, 18> kReaders{{{"plan", read_plan},
                                                         {"model", read_model},
                                                         {"cluster", read_cluster},
                                                         {"run_record", read_run_record},
                                                         {"checkpoint", read_checkpoint},
                                                         {"tensor_file", read_tensor_file},
                                                         {"tokens", read_tokens},
                                                         {"vocabulary", read_vocabulary},
                                                         {"flight_record", read_flight_record},
                                                         {"node", read_node},
                                                         {"json", read_json},
                                                         {"measurements", read_measurements},
                                                         {"nsight_export", read_nsight_export},
                                                         {"published_runs", read_published_runs},
                                                         {"micro_rows", read_micro_rows},
                                                         {"dumps", read_dumps},
                                                         {"launch", read_launch},
                                                         {"yaml", read_yaml}}};
  return kReaders;
}

}  // namespace trivium::fuzz
