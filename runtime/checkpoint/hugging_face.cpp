// GPT-2 and llama-style files. Names and shapes: transformers, models/gpt2/modeling_gpt2.py and
// models/llama/modeling_llama.py (Conv1D keeps (in, out), nn.Linear (out, in)).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/private_folder.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/checkpoint/families.h"
#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::runtime::checkpoint {
namespace {

class Table {
 public:
  explicit Table(const models::Model& model) : m_(model), offset_(is_nemotron(model) || is_gemma(model) ? 1.0F : 0.0F) {
    if (is_gpt2(model)) {
      gpt2();
    } else if (is_llama(model) || is_nemotron(model) || is_gpt_oss(model) || is_gemma(model) || is_llama4(model) ||
               !mixture_type(model).empty()) {
      llama();
    } else if (is_grok(model)) {
      add_grok(rows_, model);
    } else if (model.mtp) {
      throw base::Failure(base::ErrorKind::kUsage,
                          fmt::format("{} has modules of multi-token prediction, which have no names in a single file",
                                      base::quote(model.name)));
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
    const std::int64_t h = m_.hidden, f = m_.dense_hidden(), q = m_.heads * m_.head_dim, k = m_.kv_heads * m_.head_dim;
    same("wte.weight", "model.embed_tokens.weight", m_.vocab, h);
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) {
      const std::string at = fmt::format("h.{}.", layer), there = fmt::format("model.layers.{}.", layer);
      const auto both = [&](const std::string& name, std::int64_t in, const std::vector<std::string>& parts,
                            const std::vector<std::int64_t>& widths, const std::string& fused, bool bias) {
        std::vector<std::string> weights, biases;
        for (const std::string& part : parts) {
          weights.push_back(there + part + ".weight");
          biases.push_back(there + part + ".bias");
        }
        const auto fused_as = [&](const char* what) { return fused.empty() ? "" : there + fused + what; };
        linear(at + name + ".weight", weights, in, widths, fused_as(".weight"));
        if (bias) linear(at + name + ".bias", biases, 1, widths, fused_as(".bias"));
      };
      norm(at + "ln_1", there + "input_layernorm");
      if (m_.latent) {
        add_latents(rows_, m_, layer);
      } else {
        both("attn.c_attn", h, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, {q, k, k},
             "self_attn.qkv_proj", m_.qkv_bias);
        if (is_llama4(m_) && m_.turns(m_.layer_kind(layer))) rows_.back().places = paired_heads();
      }
      if (m_.head_norms) {
        for (const char* name : {"q_norm.weight", "k_norm.weight"}) {
          same(fmt::format("{}attn.{}", at, name), fmt::format("{}self_attn.{}", there, name), 1, m_.head_dim);
          rows_.back().offset = offset_;
        }
      }
      if (m_.attention_sinks) same(at + "attn.sinks", there + "self_attn.sinks", 1, m_.heads);
      both("attn.c_proj", m_.heads * m_.value_dim(), {"self_attn.o_proj"}, {h}, "", m_.linear_bias);
      norm(at + "ln_2", there + (m_.branch_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
      if (m_.branch_norms) {
        norm(at + "ln_1_out", there + "post_attention_layernorm");
        norm(at + "ln_2_out", there + "post_feedforward_layernorm");
      }
      if (is_gpt_oss(m_)) {
        both("mlp.router", h, {"mlp.router"}, {m_.experts->count}, "", m_.linear_bias);
        experts(at + "mlp.experts.", there + "mlp.experts.");
        continue;
      }
      const std::string block = is_llama4(m_) ? "feed_forward." : "mlp.";
      if (is_llama4(m_) && m_.layer_kind(layer).mixture) {
        const std::string shared = block + "shared_expert.";
        both("mlp.router", h, {block + "router"}, {m_.experts->count}, "", false);
        experts(at + "mlp.experts.", there + block + "experts.");
        both("mlp.shared.c_fc", h, {shared + "gate_proj", shared + "up_proj"}, {m_.ffn_hidden, m_.ffn_hidden}, "",
             false);
        both("mlp.shared.c_proj", m_.ffn_hidden, {shared + "down_proj"}, {h}, "", false);
        continue;
      }
      if (m_.layer_kind(layer).mixture) {
        add_mixture(rows_, m_, layer);
        continue;
      }
      if (m_.gated()) {
        both("mlp.c_fc", h, {block + "gate_proj", block + "up_proj"}, {f, f}, block + "gate_up_proj", m_.linear_bias);
      } else {
        both("mlp.c_fc", h, {block + "up_proj"}, {f}, "", m_.linear_bias);
      }
      both("mlp.c_proj", f, {block + "down_proj"}, {h}, "", m_.linear_bias);
    }
    norm("ln_f", "model.norm");
    if (!m_.tied_embeddings) same("lm_head.weight", "lm_head.weight", m_.vocab, h);
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

/// Tensors of the file by the name transformers gives them today: GPT-2's older files lack the first word.
class Names {
 public:
  Names(const SafetensorsFile& file, bool gpt2) {
    constexpr std::string_view kText = "language_model.";  // in files that hold a vision model, too
    for (const TensorEntry& entry : file.header().tensors) {
      const bool bare = gpt2 && !entry.name.starts_with("transformer.") && entry.name != "lm_head.weight";
      const bool nested = entry.name.starts_with(kText);
      entries_.emplace(bare     ? "transformer." + entry.name
                       : nested ? entry.name.substr(kText.size())
                                : entry.name,
                       &entry);
    }
  }
  const TensorEntry* take(const std::string& name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    taken_.insert(name);
    return found->second;
  }
  /// The first tensor that nobody took and that is no constant of the model; empty when there is none.
  std::string left_over() const {
    for (const auto& [name, entry] : entries_) {
      const bool of_images = name.starts_with("vision_model.") || name.starts_with("multi_modal_projector.");
      const bool constant = of_images || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
                            name.ends_with("rotary_emb.inv_freq");
      if (!taken_.contains(name) && !constant) return entry->name;
    }
    return "";
  }

 private:
  std::map<std::string, const TensorEntry*> entries_;
  std::set<std::string> taken_;
};

/// Which element of their tensor is element (row, column) of ours.
std::int64_t place_of(const Correspondence& c, std::int64_t width, std::int64_t row, std::int64_t column) {
  if (c.interleaved) column = column < width / 2 ? 2 * column : 2 * (column - width / 2) + 1;
  return c.transposed ? column * c.block_rows() + row : row * width + column;
}

}  // namespace

WholeTensors from_hugging_face(const SafetensorsFile& file, const models::Model& model, const std::string& where,
                               Stored stored) {
  const auto refuse = [&](const std::string& what) -> void {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: {}", base::one_line(where), what));
  };
  const Table table(model);
  Names names(file, is_gpt2(model));
  WholeTensors tensors;
  for (const Correspondence& c : table.rows()) {
    WholeTensor& tensor = tensors[c.ours];
    tensor = {c.rows, c.columns, std::vector<float>(static_cast<std::size_t>(c.rows * c.columns))};
    const auto read = [&](const TensorEntry& entry, std::size_t part, std::int64_t width) {
      const std::vector<std::int64_t> expected = shape_of(c, width);
      if (entry.shape != expected) {
        refuse(fmt::format("{} has the shape [{}], the model needs [{}]", base::quote(entry.name),
                           fmt::join(entry.shape, ", "), fmt::join(expected, ", ")));
      }
      if (entry.number > Number::kF16) refuse(fmt::format("{} is not of floats", base::quote(entry.name)));
      const std::byte* values = file.bytes_of(entry).data();
      const float offset = stored == Stored::kWeights ? c.offset : 0;
      for (std::int64_t row = 0; row < c.block_rows(); ++row) {
        for (std::int64_t column = 0; column < width; ++column) {
          tensor.values[static_cast<std::size_t>(c.ours_at(part, row, column))] =
              offset + static_cast<float>(element(values, place_of(c, width, row, column), entry.number));
        }
      }
    };
    if (const TensorEntry* fused = c.fused.empty() ? nullptr : names.take(c.fused)) {
      read(*fused, 0, c.columns);
      continue;
    }
    for (std::size_t i = 0; i < c.theirs.size(); ++i) {
      const TensorEntry* entry = names.take(c.theirs[i]);
      if (entry == nullptr) refuse(fmt::format("it has no tensor {}", base::quote(c.theirs[i])));
      read(*entry, i, c.widths[i % c.widths.size()]);
    }
  }
  if (model.tied_embeddings) names.take("lm_head.weight");  // the embedding again
  if (const std::string extra = names.left_over(); !extra.empty()) {
    refuse(fmt::format("the model has no tensor {}; is its description that of these weights?", base::quote(extra)));
  }
  return tensors;
}

void write_hugging_face(const WholeTensors& tensors, const models::Model& model, const std::filesystem::path& path) {
  const Table table(model);
  std::vector<TensorEntry> entries;
  for (const Correspondence& c : table.rows()) {
    for (std::size_t i = 0; i < c.theirs.size(); ++i) {
      entries.push_back(
          {.name = c.theirs[i], .number = Number::kF32, .shape = shape_of(c, c.widths[i % c.widths.size()])});
    }
  }
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  // Files of a name that nobody can foresee, in a folder that goes with what is left in it.
  const base::PrivateFolder beside(path.has_parent_path() ? path.parent_path() : ".", ".trivium-weights-");
  const std::filesystem::path unfinished = beside.path() / path.filename();
  SafetensorsWriter writer(unfinished, std::move(entries), {{"format", "pt"}});
  std::vector<float> values;
  for (const Correspondence& c : table.rows()) {
    const auto found = tensors.find(c.ours);
    if (found == tensors.end()) base::refuse(path, fmt::format("the checkpoint lacks {}", base::quote(c.ours)));
    const WholeTensor& tensor = found->second;
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
  std::filesystem::rename(unfinished, path, error);
  if (error) {
    throw base::Failure(base::ErrorKind::kRuntime,
                        fmt::format("{}: cannot write: {}", base::one_line(path.string()), error.message()));
  }
}

}  // namespace trivium::runtime::checkpoint
