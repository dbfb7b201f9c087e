// Modules of multi-token prediction in Hugging Face's files: numbered as layers after the model's. Names: DeepSeek-V3,
// README_WEIGHTS.md of its release, and GLM-4.5, as vLLM reads both (vllm/model_executor/models/deepseek_mtp.py and
// glm4_moe_mtp.py), whose eh_proj multiplies the embedding's norm and then the hidden state's: the paper's equation 21
// (arXiv 2412.19437) has them the other way round. Both files have the embedding and the output matrix again.
#include <fmt/format.h>

#include <set>

#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::runtime::checkpoint {
namespace {

/// eh_proj, (h, 2h): here a matrix for each half of its inputs.
Correspondence projection(const models::Model& m, const std::string& ours, const std::string& theirs) {
  Correspondence c = matrix_of(ours + "mtp.embedding.weight", 2 * m.hidden, {theirs + "eh_proj.weight"}, {m.hidden});
  c.below = ours + "mtp.hidden.weight";
  return c;
}

Correspondence copy_of(const models::Model& m, std::string ours, std::string theirs) {
  Correspondence c = vector_of(std::move(ours), std::move(theirs), m.hidden);
  c.rows = m.vocab;
  c.copy = true;
  return c;
}

}  // namespace

bool names_modules(const std::string& mixture_type) {
  return mixture_type.starts_with("deepseek") || mixture_type == "glm4_moe";
}

void add_module(std::vector<Correspondence>& rows, const models::Model& m, std::int64_t layer) {
  const std::string at = fmt::format("h.{}.", layer), there = fmt::format("model.layers.{}.", layer);
  rows.push_back(vector_of(at + "mtp.embedding_norm.weight", there + "enorm.weight", m.hidden));
  rows.push_back(vector_of(at + "mtp.hidden_norm.weight", there + "hnorm.weight", m.hidden));
  rows.push_back(projection(m, at, there));
  rows.push_back(vector_of(at + "mtp.norm.weight", there + "shared_head.norm.weight", m.hidden));
}

void add_shared_of_modules(std::vector<Correspondence>& rows, const models::Model& m) {
  const char* output = m.tied_embeddings ? "wte.weight" : "lm_head.weight";
  for (std::int64_t layer = m.layers; layer < m.layers + m.mtp_depth(); ++layer) {
    const std::string there = fmt::format("model.layers.{}.", layer);
    rows.push_back(copy_of(m, "wte.weight", there + "embed_tokens.weight"));
    rows.push_back(copy_of(m, output, there + "shared_head.head.weight"));
  }
}

std::int64_t modules_in(std::span<const SafetensorsFile> files, std::int64_t layers) {
  std::set<std::string> projections;
  for (const SafetensorsFile& file : files) {
    for (const TensorEntry& entry : file.header().tensors) {
      if (entry.name.ends_with(".eh_proj.weight")) projections.insert(entry.name);
    }
  }
  std::int64_t count = 0;
  while (projections.contains(fmt::format("model.layers.{}.eh_proj.weight", layers + count))) ++count;
  return count;
}

}  // namespace trivium::runtime::checkpoint
