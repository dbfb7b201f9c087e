#include "calibration/measurements/published_model.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "calibration/measurements/published_notes.h"
#include "models/load.h"

namespace trivium::calibration {
namespace {

/// What names of models say that no column does.
struct Family {
  std::string_view prefix;
  std::string_view not_replayed{};  ///< why, where a Model cannot say it
  bool tied = false;
  std::string_view shape{};  ///< the shipped model that it is, but for its number of layers
};

// The first prefix that fits. Llama shapes are the default of gated MLPs, GPT-2 blocks of others.
constexpr std::array<Family, 13> kFamilies{{
    {"deepseek-v3", {}, false, "deepseek-v3"},
    {"gpt-oss-120b", {}, false, "gpt-oss-120b"},
    {"gpt-oss-20b", {}, false, "gpt-oss-20b"},
    {"deepseek", "latent attention (MLA) is not replayed from tables yet"},
    {"kimi", "latent attention (MLA) is not replayed from tables yet"},
    {"nemotron-h", "layers of Mamba are not models that Trivium knows"},
    {"nemotron-3", "layers of Mamba are not models that Trivium knows"},
    {"llama4-maverick", {}, false, "llama4-maverick"},
    {"llama4-scout", {}, false, "llama4-scout"},
    {"llama4", "layers whose attention differs are not fields of models"},
    {"gpt-oss", "a shape that does not ship"},
    {"llama-", {}, true},  // the Ultra-Scale Playbook's: tie_word_embeddings, as its parameter counts show
    {"gpt3", {}, true},
}};

const Family* family_of(const CsvTable::Row& row) {
  for (const Family& family : kFamilies) {
    if (row.given("model").starts_with(family.prefix)) return &family;
  }
  return nullptr;
}

/// Why a row is not of the shipped shape that its name says.
std::optional<std::string> difference_from(const CsvTable::Row& row, const models::Model& shape) {
  const std::array<std::pair<const char*, std::int64_t>, 5> widths{{{"hidden", shape.hidden},
                                                                    {"heads", shape.heads},
                                                                    {"experts", shape.experts->count},
                                                                    {"topk", shape.experts->top_k},
                                                                    {"moe_ffn", shape.ffn_hidden}}};
  for (const auto& [column, width] : widths) {
    if (row.count(column, width) == width) continue;
    return fmt::format("{} {}: {} has {}", column, row.given(column), shape.name, width);
  }
  return std::nullopt;
}

models::Model shipped(const CsvTable::Row& row, std::string_view shape) {
  models::Model model = models::load_model(std::string(shape));
  model.name = row.text("case");
  model.source = row.text("source");
  model.layers = row.integer("layers", 1, CsvTable::Row::kMostCounted);
  model.max_sequence = row.integer("seq", 1, CsvTable::Row::kMostCounted);
  model.vocab = row.integer("vocab", 1, CsvTable::Row::kMostCounted);  // benchmarks bring their own tokenizers
  if (noted_mtp(row) > 0) model.mtp = models::MultiToken{.depth = noted_mtp(row)};
  const bool in_front = model.experts->every == 1;  // else tables count the dense layers between mixtures
  if (in_front && !row.given("dense_layers").empty()) {
    model.experts->dense_layers = row.integer("dense_layers", 0, model.layers - 1);
  }
  return model;
}

void make_llama(models::Model& model) {
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kSwiglu;
  model.linear_bias = model.qkv_bias = model.tied_embeddings = false;
}

/// Nemotron-3 8B and Nemotron-4 (Parmar et al. 2024, arXiv 2402.16819): squared ReLU, rotary, no biases, untied.
void make_nemotron(models::Model& model) {
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kSquaredRelu;
  model.linear_bias = model.qkv_bias = model.tied_embeddings = false;
}

void add_experts(const CsvTable::Row& row, models::Model& model) {
  models::Experts experts;
  experts.count = row.integer("experts", 1, CsvTable::Row::kMostCounted);
  experts.top_k = row.integer("topk", 1, experts.count);
  experts.capacity_factor = 1;  // routing is balanced by force, or drops what is above the even share
  model.experts = experts;
  model.ffn_hidden = row.count("moe_ffn", model.ffn_hidden);
  model.linear_bias = false;
}

}  // namespace

std::optional<std::string> why_no_model(const CsvTable::Row& row) {
  for (const char* column : {"layers", "hidden", "heads", "vocab", "seq"}) {
    if (row.text(column).empty()) return fmt::format("{} is not given", column);
  }
  const Family* family = family_of(row);
  if (family != nullptr && !family->not_replayed.empty()) {
    return fmt::format("{}: {}", row.given("model"), family->not_replayed);
  }
  if (family != nullptr && !family->shape.empty()) {
    return difference_from(row, models::load_model(std::string(family->shape)));
  }
  if (row.given("experts").empty()) return std::nullopt;
  for (const char* column : {"shared_ffn", "dense_layers"}) {
    const std::string& value = row.given(column);
    if (!value.empty() && value != "0") {
      return fmt::format(
          "{} {}: layers of shared experts, or dense ones before mixtures, are not replayed from tables yet", column,
          value);
    }
  }
  if (row.given("topk").empty()) return "topk is not given";
  return std::nullopt;
}

models::Model published_model(const CsvTable::Row& row) {
  if (const Family* family = family_of(row); family != nullptr && !family->shape.empty()) {
    return shipped(row, family->shape);
  }
  models::Model model;
  model.name = row.text("case");
  model.source = row.text("source");
  model.layers = row.integer("layers", 1, CsvTable::Row::kMostCounted);
  model.hidden = row.integer("hidden", 1, CsvTable::Row::kMostCounted);
  model.heads = row.integer("heads", 1, CsvTable::Row::kMostCounted);
  model.kv_heads = row.count("kv_heads", model.heads);
  if (model.heads % model.kv_heads != 0) {
    row.fail("kv_heads", fmt::format("{} do not divide {} heads", model.kv_heads, model.heads));
  }
  if (row.given("head_dim").empty() && model.hidden % model.heads != 0) {
    row.fail("heads", fmt::format("{} heads do not divide hidden {}", model.heads, model.hidden));
  }
  model.head_dim = row.count("head_dim", model.hidden / model.heads);
  model.ffn_hidden = row.count("ffn", 4 * model.hidden);
  model.vocab = row.integer("vocab", 1, CsvTable::Row::kMostCounted);
  model.max_sequence = row.integer("seq", 1, CsvTable::Row::kMostCounted);
  if (row.given("gated_mlp") == "yes") make_llama(model);
  if (row.given("model").starts_with("nemotron")) make_nemotron(model);
  if (const Family* family = family_of(row)) model.tied_embeddings = family->tied;
  if (!row.given("experts").empty()) add_experts(row, model);
  return model;
}

}  // namespace trivium::calibration
