// GPT-2 and llama-style files. Names and shapes: transformers, models/gpt2/modeling_gpt2.py and
// models/llama/modeling_llama.py (Conv1D keeps (in, out), nn.Linear (out, in)).
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/checkpoint/families.h"
#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/checkpoint/weight_values.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::runtime::checkpoint {
namespace {

class Table {
 public:
  explicit Table(const models::Model& model) : m_(model), offset_(is_nemotron(model) || is_gemma(model) ? 1.0F : 0.0F) {
    if (model.mtp && !names_modules(mixture_type(model))) {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format(
              "{} has modules of multi-token prediction, which have names in files of DeepSeek and GLM-4.5 alone",
              base::quote(model.name)));
    }
    if (is_gpt2(model)) {
      gpt2();
    } else if (is_llama(model) || is_nemotron(model) || is_gpt_oss(model) || is_gemma(model) || is_llama4(model) ||
               !mixture_type(model).empty()) {
      llama();
    } else if (is_grok(model)) {
      add_grok(rows_, model);
    } else {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format("{} is neither GPT-2, llama-style, gpt-oss nor Gemma; only these have a single file to convert",
                      base::quote(model.name)));
    }
  }
  const std::vector<Correspondence>& rows() const { return rows_; }

 private:
  void same(const std::string& name, const std::string& theirs, std::int64_t rows, std::int64_t columns) {
    rows_.push_back({name, rows, columns, {theirs}, {columns}, false, ""});
  }
  void linear(const std::string& name, std::vector<std::string> theirs, std::int64_t rows,
              std::vector<std::int64_t> widths, std::string fused = "") {
    std::int64_t columns = 0;
    for (const std::int64_t width : widths) columns += width;
    rows_.push_back({name, rows, columns, std::move(theirs), std::move(widths), rows > 1, std::move(fused)});
  }

  void gpt2() {
    const std::int64_t h = m_.hidden, f = m_.ffn_hidden, query = m_.heads * m_.head_dim;
    const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
      same(name, "transformer." + name, rows, columns);
    };
    const auto norm = [&](const std::string& name) {
      add(name + ".weight", 1, h);
      add(name + ".bias", 1, h);
    };
    const auto conv1d = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      add(name + ".weight", in, out);
      add(name + ".bias", 1, out);
    };
    add("wte.weight", m_.vocab, h);
    add("wpe.weight", m_.max_sequence, h);
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) {
      const std::string at = fmt::format("h.{}.", layer);
      norm(at + "ln_1");
      conv1d(at + "attn.c_attn", h, 3 * query);
      conv1d(at + "attn.c_proj", query, h);
      norm(at + "ln_2");
      conv1d(at + "mlp.c_fc", h, f);
      conv1d(at + "mlp.c_proj", f, h);
    }
    norm("ln_f");
    if (!m_.tied_embeddings) same("lm_head.weight", "lm_head.weight", m_.vocab, h);
  }

  void llama() {
    same("wte.weight", "model.embed_tokens.weight", m_.vocab, m_.hidden);
    for (std::int64_t number = 0; number < m_.layers + m_.mtp_depth(); ++number) {
      if (number >= m_.layers) add_module(rows_, m_, number);
      layer(number);
    }
    norm("ln_f", "model.norm");
    if (!m_.tied_embeddings) same("lm_head.weight", "lm_head.weight", m_.vocab, m_.hidden);
    add_shared_of_modules(rows_, m_);
  }

  /// Of what the file calls `there`: in x `widths`, side by side or `fused`.
  void both(const std::string& name, const std::string& there, std::int64_t in, const std::vector<std::string>& parts,
            const std::vector<std::int64_t>& widths, const std::string& fused, bool bias) {
    std::vector<std::string> weights, biases;
    for (const std::string& part : parts) {
      weights.push_back(there + part + ".weight");
      biases.push_back(there + part + ".bias");
    }
    const auto fused_as = [&](const char* what) { return fused.empty() ? "" : there + fused + what; };
    linear(name + ".weight", weights, in, widths, fused_as(".weight"));
    if (bias) linear(name + ".bias", biases, 1, widths, fused_as(".bias"));
  }

  /// A layer of the model or, numbered after them, of a module of multi-token prediction.
  void layer(std::int64_t number) {
    const std::int64_t h = m_.hidden, q = m_.heads * m_.head_dim, k = m_.kv_heads * m_.head_dim;
    const models::LayerKind kind = number < m_.layers ? m_.layer_kind(number) : m_.mtp_kind();
    const std::string at = fmt::format("h.{}.", number), there = fmt::format("model.layers.{}.", number);
    norm(at + "ln_1", there + "input_layernorm");
    if (m_.latent) {
      add_latents(rows_, m_, number);
    } else {
      both(at + "attn.c_attn", there, h, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, {q, k, k},
           "self_attn.qkv_proj", m_.qkv_bias);
      if (is_llama4(m_) && m_.turns(kind)) rows_.back().places = paired_heads();
    }
    if (m_.head_norms) {
      for (const char* name : {"q_norm.weight", "k_norm.weight"}) {
        same(fmt::format("{}attn.{}", at, name), fmt::format("{}self_attn.{}", there, name), 1, m_.head_dim);
        rows_.back().offset = offset_;
      }
    }
    if (m_.attention_sinks) same(at + "attn.sinks", there + "self_attn.sinks", 1, m_.heads);
    both(at + "attn.c_proj", there, m_.heads * m_.value_dim(), {"self_attn.o_proj"}, {h}, "", m_.linear_bias);
    norm(at + "ln_2", there + (m_.branch_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
    if (m_.branch_norms) {
      norm(at + "ln_1_out", there + "post_attention_layernorm");
      norm(at + "ln_2_out", there + "post_feedforward_layernorm");
    }
    mlp(number, kind.mixture);
  }

  void mlp(std::int64_t number, bool mixture) {
    const std::int64_t h = m_.hidden, f = m_.dense_hidden();
    const std::string at = fmt::format("h.{}.", number), there = fmt::format("model.layers.{}.", number);
    if (is_gpt_oss(m_)) {
      both(at + "mlp.router", there, h, {"mlp.router"}, {m_.experts->count}, "", m_.linear_bias);
      return experts(at + "mlp.experts.", there + "mlp.experts.");
    }
    const std::string block = is_llama4(m_) ? "feed_forward." : "mlp.";
    if (is_llama4(m_) && mixture) {
      const std::string shared = block + "shared_expert.";
      both(at + "mlp.router", there, h, {block + "router"}, {m_.experts->count}, "", false);
      experts(at + "mlp.experts.", there + block + "experts.");
      both(at + "mlp.shared.c_fc", there, h, {shared + "gate_proj", shared + "up_proj"}, {m_.ffn_hidden, m_.ffn_hidden},
           "", false);
      return both(at + "mlp.shared.c_proj", there, m_.ffn_hidden, {shared + "down_proj"}, {h}, "", false);
    }
    if (mixture) return add_mixture(rows_, m_, number);
    if (m_.gated()) {
      both(at + "mlp.c_fc", there, h, {block + "gate_proj", block + "up_proj"}, {f, f}, block + "gate_up_proj",
           m_.linear_bias);
    } else {
      both(at + "mlp.c_fc", there, h, {block + "up_proj"}, {f}, "", m_.linear_bias);
    }
    both(at + "mlp.c_proj", there, f, {block + "down_proj"}, {h}, "", m_.linear_bias);
  }

  /// Llama 4's pairs that turn are neighbours in the file.
  std::vector<std::int64_t> paired_heads() const {
    std::vector<std::int64_t> places;
    const std::int64_t turning = m_.heads + m_.kv_heads;
    for (std::int64_t h = 0; h < turning; ++h) place_head(places, h * m_.head_dim, 0, m_.head_dim);
    for (std::int64_t i = 0; i < m_.kv_heads * m_.head_dim; ++i) places.push_back(turning * m_.head_dim + i);
    return places;
  }

  /// gpt-oss and Llama 4: matrices of all experts in one tensor, inputs first; of gpt-oss gates and values in turn.
  void experts(const std::string& ours, const std::string& theirs) {
    const std::int64_t h = m_.hidden, f = m_.ffn_hidden, count = m_.experts->count;
    const auto add = [&](const char* name, const char* there, std::int64_t in, std::int64_t out, bool gates) {
      same(ours + name + ".weight", theirs + there, count * in, out);
      rows_.back().shape = {count, in, out};
      rows_.back().interleaved = gates && m_.linear_bias;
      if (!m_.linear_bias) return;
      same(ours + name + ".bias", theirs + there + "_bias", count, out);
      rows_.back().shape = {count, out};
      rows_.back().interleaved = gates;
    };
    add("c_fc", "gate_up_proj", h, 2 * f, true);
    add("c_proj", "down_proj", f, h, false);
  }

  /// Of all but GPT-2.
  void norm(const std::string& ours, const std::string& theirs) {
    same(ours + ".weight", theirs + ".weight", 1, m_.hidden);
    rows_.back().offset = offset_;
    if (m_.norm == models::Norm::kRmsNorm) return;
    same(ours + ".bias", theirs + ".bias", 1, m_.hidden);
  }

  const models::Model& m_;
  const float offset_;  // of the norms' weights
  std::vector<Correspondence> rows_;
};

std::vector<std::int64_t> shape_of(const Correspondence& c, std::int64_t width) {
  if (!c.shape.empty()) return c.shape;
  if (c.rows == 1 && !c.transposed) return {width};
  return c.transposed ? std::vector{width, c.block_rows()} : std::vector{c.rows, width};
}

/// Tensors of the files by the name transformers gives them today: GPT-2's older files lack the first word.
class Names {
 public:
  Names(std::span<const SafetensorsFile> files, const models::Model& model, const std::string& where)
      : layers_(model.layers + model.mtp_depth()), all_layers_(model.layers + modules_in(files, model.layers)) {
    constexpr std::string_view kText = "language_model.";  // in files that hold a vision model, too
    const bool gpt2 = is_gpt2(model);
    for (const SafetensorsFile& file : files) {
      for (const TensorEntry& entry : file.header().tensors) {
        const bool bare = gpt2 && !entry.name.starts_with("transformer.") && entry.name != "lm_head.weight";
        const bool nested = entry.name.starts_with(kText);
        const std::string name = bare     ? "transformer." + entry.name
                                 : nested ? entry.name.substr(kText.size())
                                          : entry.name;
        if (entries_.emplace(name, Found{&entry, &file}).second || files.size() == 1) continue;
        base::refuse(base::one_line(where), fmt::format("{} is in two of its shards", base::quote(entry.name)));
      }
    }
  }
  std::optional<Found> take(const std::string& name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return std::nullopt;
    taken_.insert(name);
    return found->second;
  }
  /// The first tensor that nobody took and that is no constant of the model; empty when there is none.
  std::string left_over() const {
    for (const auto& [name, found] : entries_) {
      const bool of_images = name.starts_with("vision_model.") || name.starts_with("multi_modal_projector.");
      const bool constant = of_images || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
                            name.ends_with("rotary_emb.inv_freq");
      if (!taken_.contains(name) && !constant && !is_of_other_module(name)) return found.entry->name;
    }
    return "";
  }

 private:
  /// Of a module of multi-token prediction that the model does not have.
  bool is_of_other_module(const std::string& name) const {
    for (std::int64_t layer = layers_; layer < all_layers_; ++layer) {
      if (name.starts_with(fmt::format("model.layers.{}.", layer))) return true;
    }
    return false;
  }

  std::int64_t layers_, all_layers_;
  std::map<std::string, Found> entries_;
  std::set<std::string> taken_;
};

/// Which element of their tensor is element (row, column) of ours.
std::int64_t place_of(const Correspondence& c, std::int64_t width, std::int64_t row, std::int64_t column) {
  if (c.interleaved) column = column < width / 2 ? 2 * column : 2 * (column - width / 2) + 1;
  return c.transposed ? column * c.block_rows() + row : row * width + column;
}

/// Makes our tensors of theirs, one after the other.
class Reading {
 public:
  Reading(std::span<const SafetensorsFile> files, const models::Model& model, const std::string& where, Stored stored)
      : names_(files, model, where), where_(base::one_line(where)), stored_(stored) {}

  void take(const Correspondence& c) {
    if (c.copy) return compare(c);
    WholeTensor tensor = read(c);
    if (c.below.empty()) {
      tensors_[c.ours] = std::move(tensor);
      return;
    }
    tensor.rows /= 2;
    const auto half = tensor.values.begin() + std::ssize(tensor.values) / 2;
    tensors_[c.below] = {tensor.rows, tensor.columns, {half, tensor.values.end()}};
    tensor.values.erase(half, tensor.values.end());
    tensors_[c.ours] = std::move(tensor);
  }

  WholeTensors finish(const models::Model& model) {
    if (model.tied_embeddings) names_.take("lm_head.weight");  // the embedding again
    if (const std::string extra = names_.left_over(); !extra.empty()) {
      base::refuse(where_, fmt::format("the model has no tensor {}; is its description that of these weights?",
                                       base::quote(extra)));
    }
    return std::move(tensors_);
  }

 private:
  WholeTensor read(const Correspondence& c) {
    WholeTensor tensor{c.rows, c.columns, std::vector<float>(static_cast<std::size_t>(c.rows * c.columns))};
    if (const auto fused = c.fused.empty() ? std::nullopt : take_values(c.fused)) {
      fill(tensor, c, *fused, 0, c.columns);
      return tensor;
    }
    for (std::size_t i = 0; i < c.theirs.size(); ++i) {
      const auto values = take_values(c.theirs[i]);
      if (!values) base::refuse(where_, fmt::format("it has no tensor {}", base::quote(c.theirs[i])));
      fill(tensor, c, *values, i, c.widths[i % c.widths.size()]);
    }
    return tensor;
  }

  std::optional<WeightValues> take_values(const std::string& name) {
    return WeightValues::take(
        name, [&](const std::string& other) { return names_.take(other); }, where_);
  }

  void fill(WholeTensor& tensor, const Correspondence& c, const WeightValues& values, std::size_t part,
            std::int64_t width) const {
    const std::vector<std::int64_t> expected = shape_of(c, width);
    if (values.shape() != expected) {
      base::refuse(where_, fmt::format("{} has the shape [{}], the model needs [{}]", base::quote(values.name()),
                                       fmt::join(values.shape(), ", "), fmt::join(expected, ", ")));
    }
    const float offset = stored_ == Stored::kWeights ? c.offset : 0;
    for (std::int64_t row = 0; row < c.block_rows(); ++row) {
      for (std::int64_t column = 0; column < width; ++column) {
        tensor.values[static_cast<std::size_t>(c.ours_at(part, row, column))] =
            offset + values.at(place_of(c, width, row, column));
      }
    }
  }

  /// A file may lack a copy, not have another tensor in its place.
  void compare(const Correspondence& c) {
    const auto found = names_.take(c.theirs.front());
    if (!found) return;
    if (read(c).values == tensors_.at(c.ours).values) return;
    base::refuse(where_, fmt::format("{} is not the model's own matrix, which modules of multi-token prediction share "
                                     "with it; --mtp 0 leaves the modules out",
                                     base::quote(found->entry->name)));
  }

  Names names_;
  std::string where_;
  Stored stored_;
  WholeTensors tensors_;
};

/// Our tensor that `c` is of, with what lies below it.
const WholeTensor& stacked(const WholeTensors& tensors, const Correspondence& c, WholeTensor& both,
                           const std::filesystem::path& path) {
  const auto find = [&](const std::string& name) -> const WholeTensor& {
    const auto found = tensors.find(name);
    if (found == tensors.end()) base::refuse(path, fmt::format("the checkpoint lacks {}", base::quote(name)));
    return found->second;
  };
  if (c.below.empty()) return find(c.ours);
  both = find(c.ours);
  const WholeTensor& below = find(c.below);
  both.rows += below.rows;
  both.values.insert(both.values.end(), below.values.begin(), below.values.end());
  return both;
}

}  // namespace

std::vector<Correspondence> correspondences(const models::Model& model) { return Table(model).rows(); }

WholeTensors from_hugging_face(std::span<const SafetensorsFile> files, const models::Model& model,
                               const std::string& where, Stored stored) {
  const Table table(model);
  Reading reading(files, model, where, stored);
  for (const Correspondence& c : table.rows()) reading.take(c);
  return reading.finish(model);
}

WholeTensors from_hugging_face(const SafetensorsFile& file, const models::Model& model, const std::string& where,
                               Stored stored) {
  return from_hugging_face(std::span(&file, 1), model, where, stored);
}

void write_hugging_face(const WholeTensors& tensors, const models::Model& model, const std::filesystem::path& path,
                        std::int64_t shard_bytes) {
  const Table table(model);
  std::vector<TensorEntry> entries;
  for (const Correspondence& c : table.rows()) {
    for (std::size_t i = 0; i < c.theirs.size(); ++i) {
      entries.push_back(
          {.name = c.theirs[i], .number = Number::kF32, .shape = shape_of(c, c.widths[i % c.widths.size()])});
    }
  }
  WeightsWriter writer(path, std::move(entries), shard_bytes);
  std::vector<float> values;
  WholeTensor both;
  for (const Correspondence& c : table.rows()) {
    const WholeTensor& tensor = stacked(tensors, c, both, path);
    for (std::size_t part = 0; part < c.theirs.size(); ++part) {
      const std::int64_t width = c.widths[part % c.widths.size()];
      values.resize(static_cast<std::size_t>(c.block_rows() * width));
      for (std::int64_t row = 0; row < c.block_rows(); ++row) {
        for (std::int64_t column = 0; column < width; ++column) {
          values[static_cast<std::size_t>(place_of(c, width, row, column))] =
              tensor.values[static_cast<std::size_t>(c.ours_at(part, row, column))] - c.offset;
        }
      }
      writer.write(std::as_bytes(std::span(values)));
    }
  }
  writer.finish();
}

}  // namespace trivium::runtime::checkpoint
