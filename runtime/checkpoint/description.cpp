#include "runtime/checkpoint/description.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "base/json_reader.h"

namespace trivium::runtime::checkpoint {
namespace {

constexpr const char* kSchema = "trivium.checkpoint/1";
constexpr std::int64_t kMost = std::int64_t{1} << 60;

std::uint64_t checksum_at(const base::JsonReader& reader) {
  constexpr int kHexadecimal = 16;
  const std::string text = reader.text();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, kHexadecimal);
  if (text.size() != kHexadecimal || error != std::errc() || end != text.data() + text.size()) {
    reader.fail("must be 16 hexadecimal digits");
  }
  return value;
}

}  // namespace

nlohmann::json to_json(const Description& description) {
  nlohmann::json files = nlohmann::json::array();
  for (const ShardFile& file : description.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", fmt::format("{:016x}", file.checksum)}});
  }
  nlohmann::json json{{"schema", kSchema},
                      {"step", description.step},
                      {"data", {{"samples", description.samples}, {"corpus_tokens", description.corpus_tokens}}},
                      {"job", program::to_json(description.job)},
                      {"files", files}};
  const LossScale& scale = description.scale;
  if (scale != LossScale{}) {
    json["loss_scale"] = {{"scale", scale.scale}, {"steps", scale.steps}, {"skipped", scale.skipped}};
  }
  return json;
}

Description description_from_json(const nlohmann::json& json, const std::string& where) {
  const base::JsonReader reader(json, where);
  const std::vector<std::string> schemas{kSchema};
  reader.at("schema").one_of(schemas);
  reader.allow_only({"schema", "step", "data", "job", "files", "loss_scale"});
  Description description;
  description.step = reader.at("step").integer(0, kMost);
  const base::JsonReader data = reader.at("data");
  data.allow_only({"samples", "corpus_tokens"});
  description.samples = data.at("samples").integer(0, kMost);
  description.corpus_tokens = data.at("corpus_tokens").integer(0, kMost);
  if (const auto scale = reader.find("loss_scale")) {
    scale->allow_only({"scale", "steps", "skipped"});
    description.scale.scale = scale->at("scale").number();
    if (!(description.scale.scale >= 1)) scale->at("scale").fail("must be 1 or more");
    description.scale.steps = scale->at("steps").integer(0, kMost);
    description.scale.skipped = scale->at("skipped").integer(0, description.step);
  }
  description.job = program::plan_file_from_json(reader.at("job").json(), where + "#/job");
  std::set<std::string> names;
  const std::vector<base::JsonReader> files = reader.at("files").elements();
  if (files.empty()) reader.at("files").fail("names no file; a checkpoint has one for every rank");
  for (const base::JsonReader& file : files) {
    file.allow_only({"name", "bytes", "checksum"});
    ShardFile& shard = description.files.emplace_back();
    shard.name = file.at("name").text();
    if (shard.name.empty() || shard.name.find('/') != std::string::npos || shard.name.front() == '.') {
      file.at("name").fail("must be the name of a file in this folder");
    }
    if (!names.insert(shard.name).second) file.at("name").fail("names the same file twice");
    shard.bytes = file.at("bytes").integer(0, kMost);
    shard.checksum = checksum_at(file.at("checksum"));
  }
  return description;
}

std::string cannot_continue(const Description& saved, const program::Job& wanted, std::int64_t corpus_tokens) {
  models::Model model = saved.job.job.model;
  // What the model is called and where its numbers were published does not matter.
  model.name = wanted.model.name;
  model.source = wanted.model.source;
  // DeepSeek-V3 lowered it on the way: arXiv 2412.19437, section 4.2.
  if (model.mtp && wanted.model.mtp) model.mtp->loss_scale = wanted.model.mtp->loss_scale;
  if (model != wanted.model) return fmt::format("it holds another model ({})", saved.job.job.model.name);
  program::Lora adapters = saved.job.job.training.lora;
  if (adapters.scale() == wanted.training.lora.scale()) adapters.alpha = wanted.training.lora.alpha;
  if (adapters.used() && adapters != wanted.training.lora) {
    return fmt::format("it holds adapters of --lora-rank {}, alpha {} and {} targets, which are not this job's",
                       adapters.rank, adapters.alpha, adapters.qkv + adapters.projection + adapters.fc1 + adapters.fc2);
  }
  if (saved.step == 0) return "";
  const program::Training& before = saved.job.job.training;
  const auto differs = [](const char* what, auto old_value, auto new_value) {
    return fmt::format("it was trained with --{} {}, now {}: samples would repeat or be left out", what, old_value,
                       new_value);
  };
  if (before.sequence != wanted.training.sequence) {
    return differs("sequence", before.sequence, wanted.training.sequence);
  }
  if (before.global_batch != wanted.training.global_batch) {
    return differs("global-batch", before.global_batch, wanted.training.global_batch);
  }
  if (before.optimizer.kind != wanted.training.optimizer.kind) {
    return fmt::format("its moments are those of --optimizer {}, now {}; give --optimizer {}",
                       name_of(before.optimizer.kind), name_of(wanted.training.optimizer.kind),
                       name_of(before.optimizer.kind));
  }
  if (before.documents != wanted.training.documents) {
    return "its samples were packed of other documents; give --document-lengths and --document-weights as before";
  }
  if (before.seed != wanted.training.seed) return differs("seed", before.seed, wanted.training.seed);
  if (saved.corpus_tokens != corpus_tokens) {
    return fmt::format("it was trained on a corpus of {} tokens, this one has {}", saved.corpus_tokens, corpus_tokens);
  }
  return "";
}

}  // namespace trivium::runtime::checkpoint
