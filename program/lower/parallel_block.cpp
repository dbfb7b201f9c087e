// Blocks whose attention and MLP both read the layer's input and are added to it together: y = x + A(n(x)) + M(n'(x)).
// n and n' are one norm (GPT-J, PaLM, Falcon 7B) or two (GPT-NeoX, Falcon 40B). Both branches end in sums that are
// partial over the tensor group, so they are added before the one all-reduce of the forward (Chowdhery et al. 2022,
// arXiv 2204.02311, section 2). Dropout of the residual branch takes their sum, with one mask.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

void LayerWriter::add(int from, int to, int layer, Pass pass) {
  Op& op = rows(b_.add(OpKind::kAdd, pass, {from}, {to}), b_.buffer(to).elements, 1, layer);
  op.dtype = b_.buffer(to).dtype;
  op.elements = b_.buffer(to).elements;
  op.token_sharded = false;
}

void LayerWriter::parallel_forward(int layer, const LayerKept& kept, int output, Pass pass) {
  const std::int64_t own = s_.own_tokens * s_.hidden;
  const int norm1 = kept_or_temporary(kept.norm1, "norm1", own, layer);
  norm(kept.input, "ln_1", norm1, kept.stats1, layer, pass);
  int norm2 = kNoBuffer;
  if (!s_.shared_norm) {
    norm2 = kept_or_temporary(kept.norm2, "norm2", own, layer);
    norm(kept.input, "ln_2", norm2, kept.stats2, layer, pass);
  }
  const int read1 = gather_tokens(norm1, "norm1", layer, pass);
  const int partial = attention_branch(read1, kept, layer, pass);
  const int read2 = s_.shared_norm ? read1 : gather_tokens(norm2, "norm2", layer, pass);
  add(mlp_branch(read2, kept, layer, pass), partial, layer, pass);
  const int branch = reduce_tokens(partial, "block projections", layer, pass);
  rows(b_.add(OpKind::kBiasResidual, pass,
              {branch, p_.value("attn.c_proj.bias", layer), kept.input, p_.value("mlp.c_proj.bias", layer)},
              {output, kept.mask1}),
       s_.own_tokens, s_.hidden, layer)
      .dropout = dropout_at(DropoutSite::kAttentionResidual);
}

void LayerWriter::parallel_backward(int layer, const LayerKept& kept, int d, int d_input) {
  const int d_both =
      branch_backward(d, kept.mask1, "attn.c_proj.bias", "mlp.c_proj.bias", DropoutSite::kAttentionResidual, layer);
  const int d_branch = gather_tokens(d_both, "gradient of block projections", layer, Pass::kBackward);
  const auto reduce = [&](int d_norm, const char* name) { return reduce_tokens(d_norm, name, layer, Pass::kBackward); };
  int reduced1 = kNoBuffer, reduced2 = kNoBuffer;
  if (s_.shared_norm) {
    const LayerKept::Adapted& adapted = kept.adapted;
    const bool mixture = s_.kind(layer).mixture, by_mlp = (mixture ? adapted.shared_fc1 : adapted.fc1) != kNoBuffer;
    const bool reads = !s_.lora.used() || adapted.qkv != kNoBuffer || by_mlp || (mixture && s_.scales_input);
    const int read = reads ? gather_tokens(kept.norm1, "norm1 again", layer, Pass::kBackward) : kNoBuffer;
    int of_mlp = kNoBuffer;
    mlp_branch_backward(kept, read, d_branch, layer, [&](int d_norm) { of_mlp = d_norm; });
    attention_branch_backward(kept, read, d_branch, layer, [&](int d_norm) {
      add(of_mlp, d_norm, layer, Pass::kBackward);
      reduced1 = reduce(d_norm, "norm1");
    });
    return norm_backward(kept.input, "ln_1", kept.stats1, reduced1, d, d_input, layer);
  }
  mlp_branch_backward(kept, kNoBuffer, d_branch, layer, [&](int d_norm) { reduced2 = reduce(d_norm, "norm2"); });
  attention_branch_backward(kept, kNoBuffer, d_branch, layer, [&](int d_norm) { reduced1 = reduce(d_norm, "norm1"); });
  const int d_between = keeps_gradients() ? gradient_of("input, of the mlp", s_.own_tokens * s_.hidden, layer) : d;
  norm_backward(kept.input, "ln_2", kept.stats2, reduced2, d, d_between, layer);
  norm_backward(kept.input, "ln_1", kept.stats1, reduced1, d_between, d_input, layer);
}

}  // namespace trivium::program
