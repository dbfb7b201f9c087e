#include "runtime/checkpoint/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/json_reader.h"
#include "models/load.h"

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

/// What differs between two models: "hidden was 64, is now 128".
struct Differences {
  std::vector<std::string> of_weights;  ///< of their shapes, or of what is computed with them
  std::vector<std::string> others;
};

/// Whether weights mean the same whatever the member says.
bool leaves_weights(const std::string& pointer, const models::Model& model) {
  if (pointer == "/max_sequence") return model.positions != models::Positions::kLearned;
  // DeepSeek-V3 lowered the scale of its modules' loss on the way: arXiv 2412.19437, section 4.2.
  static const std::set<std::string> kOthers{"/name", "/source", "/mtp/loss_scale", "/experts/balance_loss",
                                             "/experts/imbalance"};
  return kOthers.contains(pointer);
}

Differences differences_of(const models::Model& before, const models::Model& after) {
  const nlohmann::json old_json = models::to_json(before), new_json = models::to_json(after);
  const nlohmann::json old_flat = old_json.flatten(), new_flat = new_json.flatten();
  std::set<std::string> pointers;
  for (const nlohmann::json* flat : {&old_flat, &new_flat}) {
    for (const auto& [pointer, value] : flat->items()) pointers.insert(pointer);
  }
  const auto text = [](const nlohmann::json& flat, const std::string& pointer) {
    const auto found = flat.find(pointer);
    return found == flat.end() ? std::string("as usual") : found->dump();
  };
  Differences differences;
  for (const std::string& pointer : pointers) {
    const std::string was = text(old_flat, pointer), is = text(new_flat, pointer);
    // What a model is called does not matter.
    if (was == is || pointer == "/name" || pointer == "/source") continue;
    (leaves_weights(pointer, after) ? differences.others : differences.of_weights)
        .push_back(fmt::format("{} was {}, is now {}", pointer.substr(1), was, is));
  }
  return differences;
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

std::vector<std::string> changed_members(const Description& saved, const program::Job& wanted) {
  return differences_of(saved.job.job.model, wanted.model).others;
}

std::string cannot_continue(const Description& saved, const program::Job& wanted, std::int64_t corpus_tokens) {
  if (const Differences model = differences_of(saved.job.job.model, wanted.model); !model.of_weights.empty()) {
    constexpr std::size_t kNamed = 3;
    const std::size_t named = std::min(kNamed, model.of_weights.size());
    return fmt::format(
        "it holds another model ({}): {}{}", saved.job.job.model.name,
        fmt::join(model.of_weights.begin(), model.of_weights.begin() + static_cast<std::ptrdiff_t>(named), "; "),
        model.of_weights.size() > named ? fmt::format("; and {} more", model.of_weights.size() - named) : "");
  }
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
