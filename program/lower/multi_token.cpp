// Multi-token prediction (DeepSeek-V3: arXiv 2412.19437, section 2.2): what comes before a module's layer. Its layer
// and its use of the output matrix are those of the model (layers.cpp, ends.cpp).
//
// The projection of the two normed halves is a product of each and their sum, so that nothing is copied to concatenate
// them. Tensor ranks do not split it: it is small, and with sequence parallelism each applies it to its own tokens. It
// is never in 8 bits.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

LayerWriter::Product LayerWriter::module_product(const char* parameter) const {
  return {.parameter = parameter, .out = s_.hidden, .in = s_.hidden, .wide = true, .own_tokens = true};
}

LayerWriter::ModuleKept LayerWriter::keep_module(int layer, int previous, int tokens, int labels) {
  const std::int64_t own = s_.own_tokens * s_.hidden;
  const auto keep = [&](const char* name, DType type, std::int64_t elements) {
    return b_.place(fmt::format("mtp {} {}", layer, name), Space::kFrame, type, elements);
  };
  ModuleKept kept;
  kept.layer = layer;
  kept.tokens = tokens;
  kept.previous = previous;
  kept.embedded = keep("embedding", s_.type, own);
  kept.embedding_norm = keep("norm of embedding", s_.type, own);
  kept.embedding_stats = keep("statistics of embedding", s_.wide, 2 * s_.own_tokens);
  kept.previous_norm = keep("norm of what comes", s_.type, own);
  kept.previous_stats = keep("statistics of what comes", s_.wide, 2 * s_.own_tokens);
  kept.input = keep("layer input", s_.type, own);
  kept.head = keep_head(keep("layer output", s_.type, own), labels, layer);
  return kept;
}

void LayerWriter::module_forward(const ModuleKept& kept, const LayerKept& layer, int loss) {
  constexpr Pass kPass = Pass::kForward;
  const int number = kept.layer;
  look_up(kept.tokens, kept.embedded, DropoutSite::kNone);
  norm(kept.embedded, "mtp.embedding_norm", kept.embedding_norm, kept.embedding_stats, number, kPass);
  norm(kept.previous, "mtp.hidden_norm", kept.previous_norm, kept.previous_stats, number, kPass);
  matmul(kept.embedding_norm, module_product("mtp.embedding"), kept.input, number, kPass);
  const int hidden =
      b_.temporary(fmt::format("projection of what comes {}", number), s_.type, s_.own_tokens * s_.hidden);
  matmul(kept.previous_norm, module_product("mtp.hidden"), hidden, number, kPass);
  add(hidden, kept.input, number, kPass);
  layer_forward(number, layer, kept.head.input, kPass);
  head_forward(kept.head, loss);
}

int LayerWriter::module_backward(const ModuleKept& kept, int d) {
  const int number = kept.layer;
  const std::int64_t own = s_.own_tokens * s_.hidden;
  const int d_embedding = gradient_of("norm of embedding", own, number);
  const int d_hidden = gradient_of("norm of what comes", own, number);
  matmul_backward(kept.embedding_norm, module_product("mtp.embedding"), d, d_embedding, number, {});
  matmul_backward(kept.previous_norm, module_product("mtp.hidden"), d, d_hidden, number, {});
  const int d_embedded = gradient_of("embedding", own, number), d_previous = gradient_of("what comes", own, number);
  norm_backward(kept.embedded, "mtp.embedding_norm", kept.embedding_stats, d_embedding, kNoBuffer, d_embedded, number);
  look_up_backward(kept.tokens, d_embedded, end_embedding_gradient(), DropoutSite::kNone);
  norm_backward(kept.previous, "mtp.hidden_norm", kept.previous_stats, d_hidden, kNoBuffer, d_previous, number);
  return d_previous;
}

}  // namespace trivium::program
