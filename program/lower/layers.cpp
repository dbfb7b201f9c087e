#include "program/lower/layers.h"

#include <fmt/format.h>

namespace trivium::program {

Op& LayerWriter::rows(Op& op, std::int64_t m, std::int64_t n, int layer) {
  op.dtype = s_.type;
  op.m = m;
  op.n = n;
  op.layer = static_cast<std::int16_t>(layer);
  op.token_sharded = s_.sequence_parallel && m == s_.own_tokens;
  return op;
}

void LayerWriter::all_reduce(int buffer, Reduction reduction, int layer, Pass pass) {
  if (s_.tensor == 1) return;
  Op& op = b_.add(OpKind::kAllReduce, pass, {buffer}, {buffer});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.reduction = reduction;
  op.dtype = b_.buffer(buffer).dtype;
  op.elements = b_.buffer(buffer).elements;
  op.layer = static_cast<std::int16_t>(layer);
}

// Partial sums over all tokens -> sums: all-reduce, or with sequence parallel reduce-scatter to this rank's tokens.
// `own`: where the latter go, unless it is for this to choose.
int LayerWriter::reduce_tokens(int partial, const char* name, int layer, Pass pass, int own) {
  if (s_.tensor == 1) return partial;
  if (!s_.sequence_parallel) {
    all_reduce(partial, Reduction::kSum, layer, pass);
    return partial;
  }
  if (own == kNoBuffer) {
    own = b_.temporary(fmt::format("{} {} own tokens", name, layer), s_.type, s_.own_tokens * s_.hidden);
  }
  Op& op = b_.add(OpKind::kReduceScatter, pass, {partial}, {own});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.dtype = s_.type;
  op.elements = s_.tokens * s_.hidden;
  op.layer = static_cast<std::int16_t>(layer);
  return own;
}

// This rank's tokens -> all tokens: nothing without sequence parallel, or of what is not kept, else all-gather.
int LayerWriter::gather_tokens(int own, const char* name, int layer, Pass pass) {
  if (!s_.sequence_parallel || own == kNoBuffer) return own;
  const std::string whole_name = fmt::format("{} {} all tokens", name, layer);
  const bool read_late = pass == Pass::kBackward && (s_.fp8 == Fp8::kNone || reads_wide(layer) || s_.latent());
  const int whole = read_late ? hold(whole_name, s_.type, s_.tokens * s_.hidden)
                              : b_.temporary(whole_name, s_.type, s_.tokens * s_.hidden);
  Op& op = b_.add(OpKind::kAllGather, pass, {own}, {whole});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.dtype = s_.type;
  op.elements = s_.tokens * s_.hidden;
  op.layer = static_cast<std::int16_t>(layer);
  return whole;
}

void LayerWriter::matmul(int x, const Product& product, int y, int layer, Pass pass) {
  const std::string name(product.parameter);
  const bool low = in_8_bits(product);
  const std::int64_t tokens = tokens_of(product);
  const int read = low ? cast_input(x, product, {tokens, product.in}, layer, pass) : x;
  const int weight = low ? cast_weight(product, 0, false, layer, pass) : p_.value(name + ".weight", layer);
  const int bias = product.biased ? p_.value(name + ".bias", layer) : kNoBuffer;
  Op& op = rows(b_.add(OpKind::kMatmul, pass, {read, weight, bias}, {y}), tokens, product.out, layer);
  op.k = product.in;
  if (low) op.fp8 = s_.fp8;
  if (product.adapted != kNoBuffer) adapt(x, product, y, layer, pass);
}

// Data gradient first: see Between.
void LayerWriter::matmul_backward(int x, const Product& product, int dy, int dx, int layer, const Between& between) {
  const std::string name(product.parameter);
  const bool low = in_8_bits(product);
  const std::int64_t tokens = tokens_of(product);
  int dbias = product.biased ? p_.gradient(name + ".bias", layer) : kNoBuffer;
  const bool adapted = product.adapted != kNoBuffer;
  const int dy_wide = dy, x_wide = x;
  int read = dy, weight = kNoBuffer;
  if (low) {
    const CastTo to = cast_gradient(dy, product, {tokens, product.out}, dbias, layer);
    weight = cast_weight(product, 0, true, layer, Pass::kBackward);
    read = to.along_rows, dy = to.along_columns, dbias = kNoBuffer;
  } else {
    weight = p_.value(name + ".weight", layer);
  }
  Op& dgrad = rows(b_.add(OpKind::kMatmulDgrad, Pass::kBackward, {read, weight}, {dx}), tokens, product.out, layer);
  dgrad.k = product.in;
  if (low) dgrad.fp8 = s_.fp8;
  const int d_adapted = adapted ? adapt_backward(product, dy_wide, dx, layer) : kNoBuffer;
  if (between) between();
  if (adapted) adapter_gradients(x_wide, product, dy_wide, d_adapted, layer);
  if (s_.lora.used()) return;
  if (low) x = cast_again(x, product, {tokens, product.in}, layer);
  weight_gradient({x, dy, p_.gradient(name + ".weight", layer), dbias, tokens, product.out, product.in, layer, false,
                   low ? s_.fp8 : Fp8::kNone});
}

void LayerWriter::norm(int x, const char* parameter, int y, int stats, int layer, Pass pass) {
  const std::string name(parameter);
  rows(b_.add(OpKind::kNorm, pass, {x, p_.value(name + ".weight", layer), p_.value(name + ".bias", layer)}, {y, stats}),
       s_.own_tokens, s_.hidden, layer)
      .epsilon = s_.norm_epsilon;
}

void LayerWriter::norm_backward(int x, const char* parameter, int stats, int dy, int dskip, int dx, int layer) {
  const std::string name(parameter);
  const int bias = s_.lora.used() ? p_.value(name + ".bias", layer) : kNoBuffer;  // a frozen one tells the kind
  rows(b_.add(OpKind::kNormBackward, Pass::kBackward, {x, p_.value(name + ".weight", layer), stats, dy, dskip, bias},
              {dx, p_.gradient(name + ".weight", layer), p_.gradient(name + ".bias", layer)}),
       s_.own_tokens, s_.hidden, layer);
}

Op& LayerWriter::of_heads(Op& op, std::int64_t n, int layer) {
  rows(op, s_.tokens, n, layer);
  op.heads = s_.heads, op.kv_heads = s_.kv_heads, op.head_dim = s_.head_dim;
  op.value_dim = s_.value_dim == s_.head_dim ? 0 : s_.value_dim;
  op.sequence = static_cast<std::int32_t>(s_.sequence);
  return op;
}

// What positions do to heads, forward and backward alike: `turning`, or where they do not turn, longer queries.
void LayerWriter::place_heads(OpKind turning, int qkv, int layer, Pass pass) {
  if (!s_.rotary) return;
  const models::Model& model = *s_.layers_of;
  if (s_.turns(layer)) {
    Op& op = of_heads(b_.add(turning, pass, {qkv}, {qkv}), s_.qkv, layer);
    if (model.window && model.window->rotary && s_.kind(layer).window > 0) op.k = 1;
  } else if (model.temperature) {
    Op& op = of_heads(b_.add(OpKind::kScaleQueries, pass, {qkv}, {qkv}), s_.query, layer);
    op.k = model.temperature->run;
    op.score_scale = model.temperature->slope;
  }
}

// Where a projection's sums over all tokens go: where a norm reads them, if they are whole there.
int LayerWriter::branch_buffer(int kept, const char* name, int layer) {
  if (kept != kNoBuffer && (s_.tensor == 1 || !s_.sequence_parallel)) return kept;
  return b_.temporary(fmt::format("{} {}", name, layer), s_.type, s_.tokens * s_.hidden);
}

int LayerWriter::normed_branch(int branch, const char* parameter, int stats, int layer, Pass pass) {
  if (!s_.branch_norms) return branch;
  const int normed = b_.temporary(fmt::format("{} {}", parameter, layer), s_.type, s_.own_tokens * s_.hidden);
  norm(branch, parameter, normed, stats, layer, pass);
  return normed;
}

// The gradient `d` stays, as the residual stream has it too.
int LayerWriter::normed_branch_backward(int branch, const char* parameter, int stats, int d, int layer) {
  if (!s_.branch_norms) return d;
  const std::int64_t own = s_.own_tokens * s_.hidden;
  const int dx = s_.sequence_parallel ? gradient_of(parameter, own, layer) : late_gradient_of(parameter, own, layer);
  norm_backward(branch, parameter, stats, d, kNoBuffer, dx, layer);
  return dx;
}

int LayerWriter::attention_branch(int read, const LayerKept& kept, int layer, Pass pass) {
  const int qkv =
      s_.exchanges() ? b_.temporary(fmt::format("qkv of own tokens {}", layer), s_.type, s_.tokens * s_.qkv) : kept.qkv;
  const bool norms = s_.norms_heads(layer);
  matmul(read, qkv_product(kept), norms ? kept.projected : qkv, layer, pass);
  if (norms) {
    of_heads(b_.add(OpKind::kHeadNorm, pass,
                    {kept.projected, p_.value("attn.q_norm.weight", layer), p_.value("attn.k_norm.weight", layer)},
                    {qkv, kept.head_sigma}),
             s_.head_dim, layer)
        .epsilon = s_.norm_epsilon;
  }
  return attend(qkv, kept, layer, pass);
}

// From queries, keys and values to the projection of what the heads attend to.
int LayerWriter::attend(int qkv, const LayerKept& kept, int layer, Pass pass) {
  place_heads(OpKind::kRotary, qkv, layer, pass);
  attention(qkv, kept, layer, pass);
  const int partial = branch_buffer(kept.branch1, "attention projection", layer);
  matmul(kept.attended, projection_product(kept), partial, layer, pass);
  return partial;
}

LayerWriter::Product LayerWriter::qkv_product(const LayerKept& kept) const {
  Product product{"attn.c_attn", s_.qkv, s_.hidden, kept.casts.norm1, true};
  product.adapted = kept.adapted.qkv;
  return product;
}

LayerWriter::Product LayerWriter::projection_product(const LayerKept& kept) const {
  Product product{"attn.c_proj", s_.hidden, s_.attended, kept.casts.attended};
  product.adapted = kept.adapted.projection;
  return product;
}

LayerWriter::Mlp LayerWriter::dense_mlp(const LayerKept& kept) const {
  Product up{"mlp.c_fc", s_.mlp.fc, s_.hidden, mlp_cast(kept)};
  Product down{"mlp.c_proj", s_.hidden, s_.mlp.ffn, kept.casts.act};
  up.adapted = kept.adapted.fc1, down.adapted = kept.adapted.fc2;
  return {up, down, kept.fc, kept.act, "mlp", "norm2", kept.branch2};
}

// Next to a router, which reads the same tokens: they are kept uncast, and cast again for gradients.
LayerWriter::Mlp LayerWriter::shared_mlp(const LayerKept& kept) const {
  Product up{"mlp.shared.c_fc", s_.shared_mlp.fc, s_.hidden};
  Product down{"mlp.shared.c_proj", s_.hidden, s_.shared_mlp.ffn};
  up.adapted = kept.adapted.shared_fc1, down.adapted = kept.adapted.shared_fc2;
  return {up, down, kept.shared_fc, kept.shared_act, "shared mlp", "norm2, of the shared mlp"};
}

int LayerWriter::plain_mlp(const Mlp& mlp, int read, int layer, Pass pass) {
  const std::string bias = std::string(mlp.up.parameter) + ".bias";
  matmul(read, mlp.up, mlp.fc, layer, pass);
  const int activated =
      kept_or_temporary(mlp.act, fmt::format("{} activated", mlp.name).c_str(), s_.tokens * mlp.down.in, layer);
  Op& act = rows(b_.add(OpKind::kActivation, pass, {mlp.fc, p_.value(bias, layer)}, {activated}), s_.tokens,
                 mlp.down.in, layer);
  act.k = s_.activation;
  const int partial = branch_buffer(mlp.branch, (std::string(mlp.name) + " projection").c_str(), layer);
  matmul(activated, mlp.down, partial, layer, pass);
  return partial;
}

int LayerWriter::mlp_branch(int read, const LayerKept& kept, int layer, Pass pass) {
  if (!s_.kind(layer).mixture) return plain_mlp(dense_mlp(kept), read, layer, pass);
  if (s_.shared_mlp.ffn == 0) return mixture_branch(read, kept, layer, pass);
  int shared = kNoBuffer;
  const int partial =
      mixture_branch(read, kept, layer, pass, [&] { shared = plain_mlp(shared_mlp(kept), read, layer, pass); });
  add(shared, partial, layer, pass);
  return partial;
}

// From a norm's own tokens to whole sums of these.
int LayerWriter::mlp_sums(int norm2, const LayerKept& kept, int layer, Pass pass) {
  if (!s_.routes_own || !s_.kind(layer).mixture) {
    const int partial = mlp_branch(gather_tokens(norm2, "norm2", layer, pass), kept, layer, pass);
    return reduce_tokens(partial, "mlp projection", layer, pass, kept.branch2);
  }
  if (s_.shared_mlp.ffn == 0) return mixture_branch(norm2, kept, layer, pass);
  int shared = kNoBuffer;
  const int sums = mixture_branch(norm2, kept, layer, pass, [&] {
    const int partial = plain_mlp(shared_mlp(kept), gather_tokens(norm2, "norm2", layer, pass), layer, pass);
    shared = reduce_tokens(partial, "shared mlp projection", layer, pass);
  });
  add(shared, sums, layer, pass);
  return sums;
}

void LayerWriter::layer_forward(int layer, const LayerKept& kept, int output, Pass pass) {
  if (s_.parallel_block) return parallel_forward(layer, kept, output, pass);
  const int norm1 = kept_or_temporary(kept.norm1, "norm1", s_.own_tokens * s_.hidden, layer);
  norm(kept.input, "ln_1", norm1, kept.stats1, layer, pass);
  const int partial1 = s_.latent() ? latent_branch(norm1, kept, layer, pass)
                                   : attention_branch(gather_tokens(norm1, "norm1", layer, pass), kept, layer, pass);
  const int sums1 = reduce_tokens(partial1, "attention projection", layer, pass, kept.branch1);
  const int branch1 = normed_branch(sums1, "ln_1_out", kept.branch_stats1, layer, pass);
  rows(b_.add(OpKind::kBiasResidual, pass, {branch1, p_.value("attn.c_proj.bias", layer), kept.input},
              {kept.middle, kept.mask1}),
       s_.own_tokens, s_.hidden, layer)
      .dropout = dropout_at(DropoutSite::kAttentionResidual);
  const int norm2 = kept_or_temporary(kept.norm2, "norm2", s_.own_tokens * s_.hidden, layer);
  norm(kept.middle, "ln_2", norm2, kept.stats2, layer, pass);
  const int sums2 = mlp_sums(norm2, kept, layer, pass);
  const int branch2 = normed_branch(sums2, "ln_2_out", kept.branch_stats2, layer, pass);
  Op& last = rows(b_.add(OpKind::kBiasResidual, pass, {branch2, p_.value("mlp.c_proj.bias", layer), kept.middle},
                         {output, kept.mask2}),
                  s_.own_tokens, s_.hidden, layer);
  last.dropout = dropout_at(DropoutSite::kMlpResidual);
  if (s_.dropout) last.k = 1;
}

int LayerWriter::gradient_of(const char* name, std::int64_t elements, int layer) {
  return b_.temporary(fmt::format("gradient of {} {}", name, layer), s_.type, elements);
}

int LayerWriter::late_gradient_of(const char* name, std::int64_t elements, int layer) {
  if (s_.fp8 != Fp8::kNone) return gradient_of(name, elements, layer);  // a cast of it is
  return hold(fmt::format("gradient of {} {}", name, layer), s_.type, elements);
}

// The gradient of a branch of the residual stream: that of the stream itself, or with dropout what it let through.
int LayerWriter::branch_backward(int d, int mask, const char* first, const char* second, DropoutSite site, int layer) {
  const int dbias = p_.gradient(first, layer), other = second != nullptr ? p_.gradient(second, layer) : kNoBuffer;
  if (dbias == kNoBuffer && other == kNoBuffer && mask == kNoBuffer) return d;
  int d_branch = kNoBuffer;
  if (mask != kNoBuffer) {
    const std::string name = fmt::format("branch with {}", first);
    const std::int64_t own = s_.own_tokens * s_.hidden;
    d_branch =
        s_.sequence_parallel ? gradient_of(name.c_str(), own, layer) : late_gradient_of(name.c_str(), own, layer);
  }
  rows(b_.add(OpKind::kBiasResidualBackward, Pass::kBackward, {d, mask}, {dbias, other, d_branch}), s_.own_tokens,
       s_.hidden, layer)
      .dropout = dropout_at(site);
  return mask == kNoBuffer ? d : d_branch;
}

void LayerWriter::mlp_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                                      const std::function<void(int)>& between) {
  const auto gather = [&] { return gather_tokens(kept.norm2, "norm2 again", layer, Pass::kBackward); };
  if (!s_.kind(layer).mixture) return plain_mlp_backward(dense_mlp(kept), {read, gather}, d_branch, layer, between);
  if (s_.shared_mlp.ffn == 0) return mixture_branch_backward(kept, read, d_branch, layer, between);
  if (read == kNoBuffer && (!s_.lora.used() || s_.scales_input || kept.adapted.shared_fc1 != kNoBuffer))
    read = gather();
  int d_shared = kNoBuffer;
  const auto add_shared = [&](int d_norm) {
    add(d_shared, d_norm, layer, Pass::kBackward);
    between(d_norm);
  };
  mixture_branch_backward(kept, read, d_branch, layer, add_shared, [&] {
    plain_mlp_backward(shared_mlp(kept), {read, gather}, d_branch, layer, [&](int d_norm) { d_shared = d_norm; });
  });
}

void LayerWriter::plain_mlp_backward(const Mlp& mlp, const Read& read, int d_branch, int layer,
                                     const std::function<void(int)>& between) {
  const std::string bias = std::string(mlp.up.parameter) + ".bias";
  const auto named = [&](const char* what) { return fmt::format("{} {}", mlp.name, what); };
  const int d_act = gradient_of(named("activated").c_str(), s_.tokens * mlp.down.in, layer);
  matmul_backward(mlp.act, mlp.down, d_branch, d_act, layer, {});
  const int d_fc = late_gradient_of(named("inner").c_str(), s_.tokens * mlp.up.out, layer);
  Op& act = rows(b_.add(OpKind::kActivationBackward, Pass::kBackward, {mlp.fc, p_.value(bias, layer), d_act},
                        {d_fc, p_.gradient(bias, layer)}),
                 s_.tokens, mlp.down.in, layer);
  act.k = s_.activation;
  const bool reads = !s_.lora.used() || mlp.up.adapted != kNoBuffer;
  const int x = reads && read.buffer == kNoBuffer ? read.gather() : read.buffer;
  const int d_norm = gradient_of(mlp.input, s_.tokens * s_.hidden, layer);
  matmul_backward(x, mlp.up, d_fc, d_norm, layer, [&] { between(d_norm); });
}

// Back through attention's projection, and from there to queries, keys and values.
int LayerWriter::d_projection(const LayerKept& kept, int d_branch, int layer) {
  const int d_attended = gradient_of("attention output", s_.tokens * s_.attended, layer);
  matmul_backward(kept.attended, projection_product(kept), d_branch, d_attended, layer, {});
  return d_attended;
}

void LayerWriter::d_heads(const LayerKept& kept, int d_attended, int d_qkv, int layer) {
  attention_backward(kept, d_attended, d_qkv, layer);
  place_heads(OpKind::kRotaryBackward, d_qkv, layer, Pass::kBackward);
}

void LayerWriter::attention_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                                            const std::function<void(int)>& between) {
  const int d_attended = d_projection(kept, d_branch, layer);
  const int d_qkv = late_gradient_of("qkv", s_.tokens * s_.qkv, layer);
  d_heads(kept, d_attended, d_qkv, layer);
  if (s_.norms_heads(layer)) {
    of_heads(b_.add(OpKind::kHeadNormBackward, Pass::kBackward,
                    {kept.projected, p_.value("attn.q_norm.weight", layer), p_.value("attn.k_norm.weight", layer),
                     kept.head_sigma, d_qkv},
                    {d_qkv, p_.gradient("attn.q_norm.weight", layer), p_.gradient("attn.k_norm.weight", layer)}),
             s_.head_dim, layer);
  }
  if (read == kNoBuffer) read = gather_tokens(kept.norm1, "norm1 again", layer, Pass::kBackward);
  const int d_norm = gradient_of("norm1", s_.tokens * s_.hidden, layer);
  matmul_backward(read, qkv_product(kept), d_qkv, d_norm, layer, [&] { between(d_norm); });
}

// From the gradient of the sums of own tokens to that of what their norm gave.
int LayerWriter::mlp_sums_backward(const LayerKept& kept, int d_sums, int layer) {
  constexpr Pass kPass = Pass::kBackward;
  int d_own = kNoBuffer;
  if (!s_.routes_own || !s_.kind(layer).mixture) {
    const int d_branch = gather_tokens(d_sums, "gradient of mlp projection", layer, kPass);
    mlp_branch_backward(kept, kNoBuffer, d_branch, layer,
                        [&](int d_norm) { d_own = reduce_tokens(d_norm, "mlp.c_fc", layer, kPass); });
    return d_own;
  }
  int d_shared = kNoBuffer;
  const auto shared_backward = [&] {
    if (s_.shared_mlp.ffn == 0) return;
    const int d_branch = gather_tokens(d_sums, "gradient of mlp projection", layer, kPass);
    const auto gather = [&] { return gather_tokens(kept.norm2, "norm2 again", layer, kPass); };
    plain_mlp_backward(shared_mlp(kept), {kNoBuffer, gather}, d_branch, layer,
                       [&](int d_norm) { d_shared = reduce_tokens(d_norm, "shared mlp.c_fc", layer, kPass); });
  };
  const auto add_shared = [&](int d_norm) {
    if (d_shared != kNoBuffer) add(d_shared, d_norm, layer, kPass);
    d_own = d_norm;
  };
  mixture_branch_backward(kept, kept.norm2, d_sums, layer, add_shared, shared_backward);
  return d_own;
}

void LayerWriter::layer_backward(int layer, const LayerKept& kept, int d, int d_input) {
  if (s_.parallel_block) return parallel_backward(layer, kept, d, d_input);
  int reduced = kNoBuffer;
  const int d_mlp = branch_backward(d, kept.mask2, "mlp.c_proj.bias", nullptr, DropoutSite::kMlpResidual, layer);
  const int d_sums2 = normed_branch_backward(kept.branch2, "ln_2_out", kept.branch_stats2, d_mlp, layer);
  const int reduced2 = mlp_sums_backward(kept, d_sums2, layer);
  const int d_middle = keeps_gradients() ? late_gradient_of("middle", s_.own_tokens * s_.hidden, layer) : d;
  norm_backward(kept.middle, "ln_2", kept.stats2, reduced2, d, d_middle, layer);
  d = d_middle;
  const int d_attention =
      branch_backward(d, kept.mask1, "attn.c_proj.bias", nullptr, DropoutSite::kAttentionResidual, layer);
  const int d_sums1 = normed_branch_backward(kept.branch1, "ln_1_out", kept.branch_stats1, d_attention, layer);
  const int d_branch1 = gather_tokens(d_sums1, "gradient of attention projection", layer, Pass::kBackward);
  if (s_.latent()) {
    reduced = latent_branch_backward(kept, d_branch1, layer);
  } else {
    attention_branch_backward(kept, kNoBuffer, d_branch1, layer, [&](int d_norm) {
      reduced = reduce_tokens(d_norm, "attn.c_attn", layer, Pass::kBackward);
    });
  }
  norm_backward(kept.input, "ln_1", kept.stats1, reduced, d, d_input, layer);
}

}  // namespace trivium::program
