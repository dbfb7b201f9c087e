#include "runtime/checkpoint/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/weight_files.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";
constexpr const char* kConfig = "adapter_config.json";
constexpr std::int64_t kMostRank = std::int64_t{1} << 20;

struct Target {
  std::string_view end;  // of the weight's name
  bool program::Lora::*flag;
};
constexpr std::array kTargets{
    Target{"attn.c_attn.weight", &program::Lora::qkv},        Target{"attn.latents.weight", &program::Lora::qkv},
    Target{"attn.query_heads.weight", &program::Lora::qkv},   Target{"attn.key_heads.weight", &program::Lora::qkv},
    Target{"attn.c_proj.weight", &program::Lora::projection}, Target{"mlp.c_fc.weight", &program::Lora::fc1},
    Target{"mlp.shared.c_fc.weight", &program::Lora::fc1},    Target{"mlp.experts.c_fc.weight", &program::Lora::fc1},
    Target{"mlp.c_proj.weight", &program::Lora::fc2},         Target{"mlp.shared.c_proj.weight", &program::Lora::fc2},
    Target{"mlp.experts.c_proj.weight", &program::Lora::fc2}};

const Target* target_of(const Correspondence& c) {
  const auto found =
      std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& t) { return c.ours.ends_with(t.end); });
  return found == kTargets.end() ? nullptr : &*found;
}

std::string without_weight(const std::string& name) { return name.substr(0, name.size() - kWeight.size()); }
std::string first_of(const std::string& module) { return "base_model.model." + module + ".lora_A.weight"; }
std::string second_of(const std::string& module) { return "base_model.model." + module + ".lora_B.weight"; }

/// The expert whose matrix their number `part` is a part of; 0 where there are none.
std::int64_t block_of(const Correspondence& c, std::size_t part) {
  return static_cast<std::int64_t>(part / c.widths.size());
}

std::int64_t width_of(const Correspondence& c, std::size_t part) { return c.widths[part % c.widths.size()]; }

/// Columns of ours that output `column` of their matrix number `part` is.
std::int64_t place(const Correspondence& c, std::size_t part, std::int64_t column) {
  return c.ours_at(part, 0, column) % c.columns;
}

/// One adapter of theirs: A (rank, in), B (out, rank).
struct Pair {
  std::size_t part = 0;
  std::vector<float> a, b;
};

Pair pair_of(const Correspondence& c, std::size_t part, const WholeTensor& a, const WholeTensor& b) {
  const std::int64_t rank = a.columns, width = width_of(c, part), inputs = c.block_rows();
  const std::int64_t first_a = block_of(c, part) * inputs, first_b = block_of(c, part) * rank;
  Pair pair{part, std::vector<float>(static_cast<std::size_t>(rank * inputs)),
            std::vector<float>(static_cast<std::size_t>(width * rank))};
  for (std::int64_t i = 0; i < rank; ++i) {
    for (std::int64_t in = 0; in < inputs; ++in) {
      pair.a[static_cast<std::size_t>(i * inputs + in)] = a.values[static_cast<std::size_t>((first_a + in) * rank + i)];
    }
    for (std::int64_t out = 0; out < width; ++out) {
      pair.b[static_cast<std::size_t>(out * rank + i)] =
          b.values[static_cast<std::size_t>((first_b + i) * b.columns + place(c, part, out))];
    }
  }
  return pair;
}

/// Files that have all experts' matrices in one tensor name adapters of these otherwise (PEFT's target_parameters).
bool has_own_tensors(const Correspondence& c) { return c.theirs.front().ends_with(kWeight); }

/// The end of a module's name that says whether it is adapted: the last word, or two where another layer's module of
/// that word is not (GPT-2's attn.c_proj and mlp.c_proj).
std::set<std::string> target_modules(const std::vector<Correspondence>& rows, const std::set<std::string>& adapted) {
  std::set<std::string> others, targets;
  const auto word = [](const std::string& module) { return module.substr(module.rfind('.') + 1); };
  for (const Correspondence& c : rows) {
    for (const std::string& theirs : c.theirs) {
      if (!theirs.ends_with(kWeight) || adapted.contains(without_weight(theirs))) continue;
      others.insert(word(without_weight(theirs)));
    }
  }
  for (const std::string& module : adapted) {
    const std::size_t dot = module.rfind('.', module.rfind('.') - 1);
    targets.insert(others.contains(word(module)) ? module.substr(dot + 1) : word(module));
  }
  return targets;
}

void write_config(const fs::path& path, const program::Lora& lora, const std::set<std::string>& targets, bool conv1d) {
  const nlohmann::json config = {{"peft_type", "LORA"},
                                 {"task_type", "CAUSAL_LM"},
                                 {"base_model_name_or_path", nullptr},
                                 {"inference_mode", true},
                                 {"r", lora.rank},
                                 {"lora_alpha", lora.scale() * static_cast<double>(lora.rank)},
                                 {"lora_dropout", 0.0},
                                 {"bias", "none"},
                                 {"fan_in_fan_out", conv1d},
                                 {"target_modules", targets}};
  base::write_file_atomically(path, base::json_text(config, 2) + "\n");
}

/// What changes what is computed and has no equivalent here.
void refuse_others(const base::JsonReader& config) {
  const auto given = [&](const char* key) {
    const auto found = config.find(key);
    if (!found) return false;
    const nlohmann::json& value = found->json();
    const bool nothing =
        value.is_null() || value == false || value == "none" || (value.is_structured() && value.empty());
    return !nothing;
  };
  for (const char* key : {"use_dora", "lora_bias", "bias", "modules_to_save", "rank_pattern", "alpha_pattern",
                          "trainable_token_indices", "layer_replication", "alora_invocation_tokens"}) {
    if (given(key))
      config.at(key).fail("has no equivalent here; merge the adapters into the weights (merge_and_unload)");
  }
}

class Reader {
 public:
  Reader(const fs::path& path, const models::Model& model) : file_(path), where_(base::one_line(path.string())) {
    for (const TensorEntry& entry : file_.header().tensors) entries_[entry.name] = &entry;
    const nlohmann::json json = base::read_json_file(path.parent_path() / kConfig);
    const base::JsonReader config(json, (path.parent_path() / kConfig).string());
    if (config.at("peft_type").text() != "LORA") config.at("peft_type").fail("must be LORA");
    refuse_others(config);
    rank_ = config.at("r").integer(1, kMostRank);
    const double alpha = config.at("lora_alpha").number();
    if (!(alpha > 0)) config.at("lora_alpha").fail("must be more than 0");
    const auto root = config.find("use_rslora");
    const bool of_root = root && !root->json().is_null() && root->boolean();
    scale_ = alpha / (of_root ? std::sqrt(static_cast<double>(rank_)) : static_cast<double>(rank_));
    rows_ = correspondences(model);
  }

  Adapters read() {
    Adapters adapters;
    adapters.lora = {.rank = rank_, .qkv = false, .projection = false, .fc1 = false, .fc2 = false};
    std::vector<std::pair<const Correspondence*, std::vector<Pair>>> found;
    for (const Correspondence& c : rows_) {
      const Target* target = target_of(c);
      if (target == nullptr || !has_own_tensors(c)) continue;
      found.emplace_back(&c, pairs(c));
      if (found.back().second.empty()) continue;
      adapters.lora.*target->flag = true;
      adapters.lora.rank =
          std::max(adapters.lora.rank, rank_ * (1 + std::ranges::max(bands_of(c, found.back().second))));
    }
    if (taken_.empty()) base::refuse(where_, "it has no adapter of the model's matrices");
    for (const auto& [name, entry] : entries_) {
      if (!taken_.contains(name)) base::refuse(where_, fmt::format("the model has no place for {}", base::quote(name)));
    }
    for (const Correspondence& c : rows_) {
      const Target* target = target_of(c);
      if (target == nullptr || has_own_tensors(c) || !(adapters.lora.*target->flag)) continue;
      base::refuse(where_,
                   fmt::format("its target has no adapters of {}, which the model's files have in one tensor with "
                               "those of other experts, and are not read; merge the adapters into the weights "
                               "(merge_and_unload)",
                               base::quote(without_weight(c.ours))));
    }
    for (const auto& [c, pairs] : found) {
      if (!(adapters.lora.*target_of(*c)->flag)) continue;
      if (const std::string name = missing(*c, pairs); !name.empty()) {
        base::refuse(where_, fmt::format("it has no tensor {}, though other layers or matrices of its target have such "
                                         "adapters",
                                         base::quote(name)));
      }
      join(adapters, *c, pairs);
    }
    adapters.lora.alpha = scale_ * static_cast<double>(adapters.lora.rank);
    return adapters;
  }

 private:
  std::vector<float> values(const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) base::refuse(where_, fmt::format("it has no tensor {}", base::quote(name)));
    const TensorEntry& entry = *found->second;
    if (entry.shape != shape) {
      base::refuse(where_, fmt::format("{} has the shape [{}], the model and adapter_config.json need [{}]",
                                       base::quote(name), fmt::join(entry.shape, ", "), fmt::join(shape, ", ")));
    }
    if (!is_float(entry.number)) base::refuse(where_, fmt::format("{} is not of floats", base::quote(name)));
    taken_.insert(name);
    std::vector<float> all(static_cast<std::size_t>(shape[0] * shape[1]));
    const std::byte* bytes = file_.bytes_of(entry).data();
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<float>(element(bytes, static_cast<std::int64_t>(i), entry.number));
      if (!std::isfinite(all[i]))
        base::refuse(where_, fmt::format("{} has numbers that are not finite", base::quote(name)));
    }
    return all;
  }

  /// Adapters of what makes one of our matrices, or of it whole.
  std::vector<Pair> pairs(const Correspondence& c) {
    std::vector<Pair> found;
    const auto add = [&](const std::string& weight, std::size_t part, std::int64_t width) {
      const std::string module = without_weight(weight);
      if (!entries_.contains(first_of(module)) && !entries_.contains(second_of(module))) return;
      std::vector<float> a = values(first_of(module), {rank_, c.block_rows()});
      found.push_back({part, std::move(a), values(second_of(module), {width, rank_})});
    };
    if (!c.fused.empty()) add(c.fused, 0, c.columns);
    if (!found.empty()) return found;
    for (std::size_t i = 0; i < c.theirs.size(); ++i) add(c.theirs[i], i, width_of(c, i));
    return found;
  }

  /// By pair: which of the different A of its block it has.
  static std::vector<std::int64_t> bands_of(const Correspondence& c, const std::vector<Pair>& pairs) {
    std::vector<std::vector<const std::vector<float>*>> different(static_cast<std::size_t>(c.blocks));
    std::vector<std::int64_t> bands;
    for (const Pair& pair : pairs) {
      auto& of_block = different[static_cast<std::size_t>(block_of(c, pair.part))];
      const auto same = std::ranges::find_if(of_block, [&](const auto* other) { return *other == pair.a; });
      bands.push_back(same - of_block.begin());
      if (same == of_block.end()) of_block.push_back(&pair.a);
    }
    return bands;
  }

  /// The name of an adapter that is not there, though others of its target are: empty where every block has one.
  static std::string missing(const Correspondence& c, const std::vector<Pair>& pairs) {
    std::set<std::int64_t> blocks;
    for (const Pair& pair : pairs) blocks.insert(block_of(c, pair.part));
    for (std::int64_t block = 0; block < c.blocks; ++block) {
      if (blocks.contains(block)) continue;
      return first_of(without_weight(c.theirs[static_cast<std::size_t>(block) * c.widths.size()]));
    }
    return "";
  }

  /// Those of one A under one another, each in a band of ranks of its own; experts' one under the other.
  void join(Adapters& adapters, const Correspondence& c, const std::vector<Pair>& pairs) const {
    const std::int64_t rank = adapters.lora.rank, inputs = c.block_rows();
    WholeTensor a{c.rows, rank, std::vector<float>(static_cast<std::size_t>(c.rows * rank))};
    WholeTensor b{rank * c.blocks, c.columns,
                  std::vector<float>(static_cast<std::size_t>(rank * c.blocks * c.columns))};
    const std::vector<std::int64_t> bands = bands_of(c, pairs);
    for (std::size_t number = 0; number < pairs.size(); ++number) {
      const Pair& pair = pairs[number];
      const std::int64_t block = block_of(c, pair.part), first = bands[number] * rank_;
      const std::int64_t width = std::ssize(pair.b) / rank_;
      for (std::int64_t i = 0; i < rank_; ++i) {
        for (std::int64_t in = 0; in < inputs; ++in) {
          a.values[static_cast<std::size_t>((block * inputs + in) * rank + first + i)] =
              pair.a[static_cast<std::size_t>(i * inputs + in)];
        }
        for (std::int64_t out = 0; out < width; ++out) {
          b.values[static_cast<std::size_t>((block * rank + first + i) * c.columns + place(c, pair.part, out))] =
              pair.b[static_cast<std::size_t>(out * rank_ + i)];
        }
      }
    }
    const std::string module = without_weight(c.ours);
    adapters.tensors[module + ".lora_a"] = std::move(a);
    adapters.tensors[module + ".lora_b"] = std::move(b);
  }

  SafetensorsFile file_;
  std::string where_;
  std::map<std::string, const TensorEntry*> entries_;
  std::set<std::string> taken_;
  std::vector<Correspondence> rows_;
  std::int64_t rank_ = 0;
  double scale_ = 1;
};

}  // namespace

void write_adapters(const WholeTensors& tensors, const models::Model& model, const program::Lora& lora,
                    const fs::path& path) {
  if (!lora.used()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{}: there are no adapters to write: it was trained without lora_rank",
                                    base::one_line(path.string())));
  }
  const std::vector<Correspondence> rows = correspondences(model);
  std::vector<TensorEntry> entries;
  std::vector<Pair> pairs;
  std::set<std::string> adapted;
  bool conv1d = false;
  for (const Correspondence& c : rows) {
    if (target_of(c) == nullptr) continue;
    const auto a = tensors.find(without_weight(c.ours) + ".lora_a");
    if (a == tensors.end()) continue;
    if (!has_own_tensors(c)) {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format("{}: adapters of {} are not written: the model's files have all experts' matrices "
                      "in one tensor, and PEFT other names for adapters of that; convert to "
                      "model.safetensors, which has them added to the weights",
                      base::one_line(path.string()), base::quote(without_weight(c.ours))));
    }
    conv1d = !c.transposed;
    for (std::size_t part = 0; part < c.theirs.size(); ++part) {
      const std::string module = without_weight(c.theirs[part]);
      adapted.insert(module);
      entries.push_back({.name = first_of(module), .number = Number::kF32, .shape = {lora.rank, c.block_rows()}});
      entries.push_back({.name = second_of(module), .number = Number::kF32, .shape = {width_of(c, part), lora.rank}});
      pairs.push_back(pair_of(c, part, a->second, tensors.at(without_weight(c.ours) + ".lora_b")));
    }
  }
  WeightsWriter writer(path, std::move(entries), 0);
  for (const Pair& pair : pairs) {
    writer.write(std::as_bytes(std::span(pair.a)));
    writer.write(std::as_bytes(std::span(pair.b)));
  }
  writer.finish();
  write_config(path.parent_path() / kConfig, lora, target_modules(rows, adapted), conv1d);
}

Adapters read_adapters(const fs::path& path, const models::Model& model) {
  std::error_code ignored;
  return Reader(fs::is_directory(path, ignored) ? path / kAdapterWeights : path, model).read();
}

}  // namespace trivium::runtime::checkpoint
