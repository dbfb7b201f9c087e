// The MLP of a mixture layer: a router sends every token to top_k experts (Shazeer et al. 2017, arXiv 1701.06538; one:
// Fedus et al. 2021, Switch, arXiv 2101.03961; two: Jiang et al. 2024, Mixtral, arXiv 2401.04088). Every expert accepts
// C tokens of a sample, so shapes are static: the expected imbalance is capacity that is padded, and tokens beyond it
// pass by on the residual stream. Experts lie on the ranks of the expert group, their matrices split over the tensor
// group as a dense MLP's; every tensor rank routes all tokens.
//
// A rank sends the rows that it owns and no others (program/ir/expert_rows.h). Tensor ranks have the same tokens and
// deal out the rows among them: each sends its part over the expert group, where it is gathered over the tensor group,
// as each of that has a part of every expert; sums go back likewise, scattered over the tensor group first.
//
// Where tensor ranks hold experts of their own (Megatron's expert tensor size e below t), neighbours split each of
// these e ways: rows are gathered and sums scattered among them alone, and the expert group has every e-th tensor rank.
// With e = 1 experts are whole, and nothing is gathered or scattered. With sequence parallelism and no capacity each
// tensor rank routes the tokens that it has, which need not be gathered either; logits are, as the balance loss looks
// at whole samples.
//
// Context ranks hold parts of a sample, whose capacity is counted in the order of all its tokens: so logits are
// gathered over the context group and every rank lists all choices. Each has an even part of an expert's rows for a
// sample, which its own tokens take; what does not fit there spills into the parts of others. As all ranks have the
// list, they know how much, without asking.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {
namespace {

std::string row_name(Pass pass, const char* rows) {
  return pass == Pass::kBackward ? std::string("gradient of ") + rows : rows;
}

}  // namespace

// An op on the tokens that this rank routes.
Op& LayerWriter::own_routing_op(Op& op, std::int64_t n, int layer) {
  routing_op(op, n, layer);
  op.m = s_.routed_tokens;
  op.token_sharded = s_.routes_own;
  if (s_.routes_own) op.parts = 1;
  return op;
}

Op& LayerWriter::routing_op(Op& op, std::int64_t n, int layer) {
  rows(op, s_.tokens, n, layer).token_sharded = false;
  op.k = s_.top_k;
  op.sequence = static_cast<std::int32_t>(s_.sequence);
  op.experts = static_cast<std::int32_t>(s_.experts);
  op.parts = s_.tensor;
  op.elements = s_.own_rows;
  return op;
}

// What a rank of the tensor and the expert group sent is a part; all rows of a single expert lie together.
Op& LayerWriter::expert_op(Op& op, std::int64_t out, std::int64_t in, int layer) {
  rows(op, s_.expert_rows / s_.local_experts, out, layer).token_sharded = false;
  op.k = in;
  op.parts = static_cast<std::int32_t>(expert_parts());
  op.experts = static_cast<std::int32_t>(s_.local_experts);
  return op;
}

Op& LayerWriter::row_collective(OpKind kind, Group group, int from, int to, int layer, Pass pass) {
  Op& op = b_.add(kind, pass, {from}, {to});
  if (group == Group::kTensor || group == Group::kExpertTensor) op.lane = s_.collective_lane;
  op.group = group;
  op.dtype = s_.type;
  op.elements = std::max(b_.buffer(from).elements, b_.buffer(to).elements);
  op.layer = static_cast<std::int16_t>(layer);
  return op;
}

// An exchange with the experts, where passes run in pairs on a lane of its own and apart from what is computed.
void LayerWriter::exchange_rows(int from, int to, const char* name, int layer, Pass pass) {
  if (s_.pairs) b_.cut(fmt::format("layer {} {}", layer, name));
  Op& op = row_collective(OpKind::kAllToAll, Group::kExpert, from, to, layer, pass);
  if (s_.pairs) op.lane = Lane::kExpert;
}

void LayerWriter::cut(const char* name, int layer) {
  if (s_.pairs) b_.cut(fmt::format("layer {} {}", layer, name));
}

// This rank's rows of all experts -> all rows of this rank's experts. The result is in `to`, unless nothing
// moves. `beside`: work that may overlap with the exchange.
int LayerWriter::rows_to_experts(int own, int to, int layer, Pass pass, const std::function<void()>& beside) {
  int arrived = own;
  if (s_.expert > 1) {
    arrived = s_.expert_split == 1 ? to : row_scratch(row_name(pass, "rows from the expert group"), s_.own_rows, layer);
    exchange_rows(own, arrived, "to the experts", layer, pass);
    if (s_.pairs && beside) {
      cut("beside the exchange", layer);
      beside();
    }
    cut("experts", layer);
  }
  if (s_.expert_split == 1) return arrived;
  row_collective(OpKind::kAllGather, s_.splitting_experts, arrived, to, layer, pass);
  return to;
}

// Sums of this rank's experts that are partial over the ranks that split them -> this rank's rows of all experts.
// `between`: work that may overlap with the first of the two collectives or, in pairs, with the second.
int LayerWriter::rows_from_experts(int partial, int to, int layer, Pass pass, const std::function<void()>& between) {
  int summed = partial;
  if (s_.expert_split > 1) {
    summed = s_.expert == 1 ? to : row_scratch(row_name(pass, "rows to the expert group"), s_.own_rows, layer);
    row_collective(OpKind::kReduceScatter, s_.splitting_experts, partial, summed, layer, pass);
  }
  if (between && !s_.pairs) between();
  if (s_.expert == 1) return summed;
  exchange_rows(summed, to, "from the experts", layer, pass);
  if (between && s_.pairs) {
    cut("weights of the experts", layer);
    between();
  }
  cut("behind the experts", layer);
  return to;
}

int LayerWriter::row_scratch(const std::string& name, std::int64_t rows, int layer) {
  return b_.temporary(fmt::format("{} {}", name, layer), s_.type, rows * s_.hidden);
}

Op& LayerWriter::logits_collective(Group group, int from, int to, int layer, Pass pass) {
  Op& op = row_collective(OpKind::kAllGather, group, from, to, layer, pass);
  op.dtype = s_.wide;
  return op;
}

// Logits of this rank's tokens -> those of all tokens of their samples, one sample after the other.
int LayerWriter::list_logits(int own, int layer, Pass pass) {
  if (s_.routes_own) {
    const int whole =
        b_.temporary(fmt::format("router logits of the tensor group {}", layer), s_.wide, s_.tokens * s_.experts);
    logits_collective(Group::kTensor, own, whole, layer, pass);
    own = whole;
  }
  if (s_.context == 1) return own;
  const std::int64_t elements = s_.tokens * s_.context * s_.experts;
  const int arrived = b_.temporary(fmt::format("router logits by rank {}", layer), s_.wide, elements);
  logits_collective(Group::kContext, own, arrived, layer, pass);
  const int listed = b_.temporary(fmt::format("router logits of all tokens {}", layer), s_.wide, elements);
  context_op(b_.add(OpKind::kUnpackTokens, pass, {arrived}, {listed}), s_.tokens * s_.context, s_.experts, layer)
      .dtype = s_.wide;
  return listed;
}

// Moves rows that came from other context ranks, or returns them: with even choices there are few or none.
Op& LayerWriter::spill_op(Op& op, const LayerKept& kept, int layer) {
  rows(op, s_.even_spills, s_.hidden, layer).token_sharded = false;
  op.in[1] = kept.spills;
  op.parts = s_.context;
  op.elements = s_.most_received;
  if (op.kind == OpKind::kAllToAll) {
    op.group = Group::kContext;
    op.elements = s_.even_spills * s_.hidden;
  }
  return op;
}

// Rows of this rank's tokens that have room elsewhere -> there, along with its own rows; as many come from others.
void LayerWriter::receive_spills(int spilled, int rows, const LayerKept& kept, int layer, Pass pass) {
  if (s_.most_sent == 0) return;
  const int arrived = row_scratch(row_name(pass, "rows from other ranks"), s_.most_received, layer);
  spill_op(b_.add(OpKind::kAllToAll, pass, {spilled}, {arrived}), kept, layer);
  spill_op(b_.add(OpKind::kPlaceRows, pass, {arrived}, {rows}), kept, layer);
}

// The way back: what the experts made of rows that came from other ranks goes there, and what is left comes home.
int LayerWriter::return_spills(int rows, const std::string& name, const LayerKept& kept, int layer, Pass pass) {
  if (s_.most_sent == 0) return kNoBuffer;
  const int picked = row_scratch(name + " for other ranks", s_.most_received, layer);
  spill_op(b_.add(OpKind::kPickRows, pass, {rows}, {picked}), kept, layer);
  const int home = row_scratch(name + " from other ranks", s_.most_sent, layer);
  spill_op(b_.add(OpKind::kAllToAll, pass, {picked}, {home}), kept, layer).k = 1;
  return home;
}

LayerWriter::Product LayerWriter::router_product() const {
  return {.parameter = "mlp.router",
          .out = s_.experts,
          .in = s_.hidden,
          .biased = true,
          .wide = true,
          .own_tokens = s_.routes_own};
}

LayerWriter::Product LayerWriter::experts_up(const LayerKept& kept) const {
  return {.parameter = "mlp.experts.c_fc",
          .out = s_.expert_mlp.fc,
          .in = s_.hidden,
          .cast = kept.casts.dispatched,
          .adapted = kept.adapted.fc1,
          .of_experts = true,
          .counts = kept.counts};
}

LayerWriter::Product LayerWriter::experts_down(const LayerKept& kept) const {
  return {.parameter = "mlp.experts.c_proj",
          .out = s_.hidden,
          .in = s_.expert_mlp.ffn,
          .cast = kept.casts.act,
          .adapted = kept.adapted.fc2,
          .of_experts = true,
          .counts = kept.counts};
}

// Each row that a product of the experts returns gets the bias of its expert; tensor ranks have a part of the first
// product's columns, and partial sums of the second's. `elements` says whether the rows leave the experts: trainers add
// these biases otherwise than those inside (simulator/cost/transformer_engine.h).
void LayerWriter::expert_bias(const char* parameter, int rows, int counts, std::int64_t width, bool leaves, int layer,
                              Pass pass) {
  const int bias = p_.value(parameter, layer);
  if (bias == kNoBuffer) return;
  const int once = leaves && s_.expert_split > 1 ? 1 : 0;
  expert_op(b_.add(OpKind::kExpertBias, pass, {rows, bias, counts}, {rows}), width, once, layer).elements =
      leaves ? 1 : 0;
}

void LayerWriter::expert_bias_backward(const char* parameter, int d, int counts, std::int64_t width, bool leaves,
                                       int layer) {
  const int gradient = p_.gradient(parameter, layer);
  if (gradient == kNoBuffer) return;
  const int once = leaves && s_.expert_split > 1 ? 1 : 0;
  expert_op(b_.add(OpKind::kExpertBiasBackward, Pass::kBackward, {d, kNoBuffer, counts}, {gradient}), width, once,
            layer)
      .elements = leaves ? 1 : 0;
}

// Gives choices their rows, and tells every rank of the expert group how many come for each of its experts.
void LayerWriter::count_rows(const LayerKept& kept, int layer, Pass pass) {
  const std::int64_t elements = s_.experts * s_.expert_split;
  const int sent = s_.expert == 1 ? kept.counts
                                  : b_.temporary(fmt::format("rows sent by expert {}", layer), DType::kInt32, elements);
  Op& count = routing_op(b_.add(OpKind::kCountRows, pass, {kept.slots}, {kept.slots, sent}), s_.local_experts, layer);
  count.dtype = s_.wide;
  count.m = s_.tokens * s_.context;
  count.parts = s_.expert_split;
  count.token_sharded = s_.routes_own;
  if (s_.expert > 1)
    row_collective(OpKind::kAllToAll, Group::kExpert, sent, kept.counts, layer, pass).dtype = DType::kInt32;
}

void LayerWriter::activate_experts(int from, int activated, int layer, Pass pass) {
  Op& act = rows(b_.add(OpKind::kActivation, pass, {from}, {activated}), s_.expert_rows, s_.expert_mlp.ffn, layer);
  act.token_sharded = false;
  act.k = s_.activation;
}

int LayerWriter::mixture_branch(int read, const LayerKept& kept, int layer, Pass pass,
                                const std::function<void()>& beside) {
  const auto scratch = [&](const char* name, std::int64_t elements, DType type) {
    return b_.temporary(fmt::format("{} {}", name, layer), type, elements);
  };
  const std::int64_t row_elements = s_.own_rows * s_.hidden;
  const int logits = scratch("router logits", s_.routed_tokens * s_.experts, s_.wide);
  matmul(read, router_product(), logits, layer, pass);
  // What is routed again in the backward has been counted in the loss.
  const int loss = pass == Pass::kForward ? kept.loss : kNoBuffer;
  const int listed = list_logits(logits, layer, pass);
  const std::int64_t listed_tokens = s_.tokens * s_.context;
  const bool spills = s_.context > 1 && !s_.dropless;
  const int slots =
      spills ? scratch("rows of all context ranks", 2 * listed_tokens * s_.top_k, DType::kInt32) : kept.slots;
  Op& route = routing_op(
      b_.add(OpKind::kRoute, pass, {listed, p_.value("mlp.router.correction", layer)}, {kept.router, slots, loss}),
      s_.experts, layer);
  route.dtype = s_.wide;
  route.m = listed_tokens;
  route.elements = s_.capacity;
  if (spills) {
    Op& spill = routing_op(b_.add(OpKind::kSpill, pass, {slots}, {kept.slots, kept.spills}), 1, layer);
    spill.dtype = s_.wide;
    spill.m = listed_tokens;
  }
  if (s_.dropless) count_rows(kept, layer, pass);
  const bool moves = s_.expert > 1 || s_.tensor > 1;
  const std::int64_t all_elements = s_.expert_rows * s_.hidden;
  const int dispatched = kept_or_temporary(kept.dispatched, "rows into experts", all_elements, layer);
  const int rows_in = moves ? scratch("dispatched rows", row_elements, s_.type) : dispatched;
  const int spilled = s_.most_sent > 0 ? row_scratch("spilled rows", s_.most_sent, layer) : kNoBuffer;
  const int gates = s_.scales_input ? kept.router : kNoBuffer;
  own_routing_op(b_.add(OpKind::kDispatch, pass, {read, kept.slots, gates}, {rows_in, spilled}), s_.hidden, layer);
  receive_spills(spilled, rows_in, kept, layer, pass);
  const int arrived = rows_to_experts(rows_in, dispatched, layer, pass, beside);
  const auto [ffn, fc] = s_.expert_mlp;
  expert_matmul(arrived, experts_up(kept), kept.fc, layer, pass);
  expert_bias("mlp.experts.c_fc.bias", kept.fc, kept.counts, fc, false, layer, pass);
  const int activated = kept_or_temporary(kept.act, "mlp activated", s_.expert_rows * ffn, layer);
  activate_experts(kept.fc, activated, layer, pass);
  const int rows_out = moves ? scratch("rows of experts", s_.expert_rows * s_.hidden, s_.type) : kept.returned;
  expert_matmul(activated, experts_down(kept), rows_out, layer, pass);
  expert_bias("mlp.experts.c_proj.bias", rows_out, kept.counts, s_.hidden, true, layer, pass);
  rows_from_experts(rows_out, kept.returned, layer, pass);
  const int home = return_spills(kept.returned, "returned rows", kept, layer, pass);
  const auto own_tokens = [&] {
    if (kept.branch2 != kNoBuffer) return kept.branch2;
    return scratch("mlp projection of own tokens", s_.own_tokens * s_.hidden, s_.type);
  };
  const int partial = s_.routes_own ? own_tokens() : branch_buffer(kept.branch2, "mlp projection", layer);
  own_routing_op(b_.add(OpKind::kCombine, pass, {kept.returned, combining_gates(kept), kept.slots, home}, {partial}),
                 s_.hidden, layer);
  if (!s_.pairs && beside) beside();
  return partial;
}

void LayerWriter::mixture_branch_backward(const LayerKept& kept, int read, int d_branch, int layer,
                                          const std::function<void(int)>& between,
                                          const std::function<void()>& beside) {
  constexpr Pass kPass = Pass::kBackward;
  const std::int64_t row_elements = s_.own_rows * s_.hidden, all_elements = s_.expert_rows * s_.hidden;
  const bool moves = s_.expert > 1 || s_.tensor > 1;
  const auto [ffn, fc] = s_.expert_mlp;
  const Product up = experts_up(kept), down = experts_down(kept);
  if (!s_.pairs && beside) beside();
  const int home = return_spills(kept.returned, "returned rows again", kept, layer, kPass);
  const int d_combined = gradient_of("returned rows", row_elements, layer);
  const int d_spilled = home == kNoBuffer ? kNoBuffer : gradient_of("spilled rows", s_.most_sent * s_.hidden, layer);
  const int d_gate = b_.temporary(fmt::format("gradient of gates {}", layer), s_.wide, s_.routed_tokens * s_.top_k);
  own_routing_op(
      b_.add(OpKind::kCombineBackward, kPass, {d_branch, kept.returned, combining_gates(kept), kept.slots, home},
             {d_combined, s_.scales_input ? kNoBuffer : d_gate, d_spilled}),
      s_.hidden, layer);
  receive_spills(d_spilled, d_combined, kept, layer, kPass);
  const int d_out = rows_to_experts(
      d_combined, moves ? gradient_of("rows of experts", all_elements, layer) : d_combined, layer, kPass, beside);
  expert_bias_backward("mlp.experts.c_proj.bias", d_out, kept.counts, s_.hidden, true, layer);
  const int d_act = gradient_of("mlp activated", s_.expert_rows * ffn, layer);
  const GradientOperands of_down = expert_dgrad(kept.act, down, d_out, d_act, layer);
  if (!s_.pairs) expert_wgrad(of_down, down, layer);
  const int d_fc = gradient_of("mlp inner", s_.expert_rows * fc, layer);
  Op& act =
      rows(b_.add(OpKind::kActivationBackward, kPass, {kept.fc, kNoBuffer, d_act}, {d_fc}), s_.expert_rows, ffn, layer);
  act.token_sharded = false;
  act.k = s_.activation;
  expert_bias_backward("mlp.experts.c_fc.bias", d_fc, kept.counts, fc, false, layer);
  const int d_in = gradient_of("rows into experts", all_elements, layer);
  const GradientOperands of_up = expert_dgrad(kept.dispatched, up, d_fc, d_in, layer);
  const int d_rows =
      rows_from_experts(d_in, moves ? gradient_of("dispatched rows", row_elements, layer) : d_in, layer, kPass, [&] {
        if (s_.pairs) expert_wgrad(of_down, down, layer);
        expert_wgrad(of_up, up, layer);
      });
  const int d_home = return_spills(d_rows, "gradient of dispatched rows", kept, layer, kPass);

  if (s_.scales_input && read == kNoBuffer) read = gather_tokens(kept.norm2, "norm2 again", layer, kPass);
  int d_tokens = kNoBuffer;
  const auto tokens_back = [&] {
    d_tokens = gradient_of("dispatched tokens", s_.routed_tokens * s_.hidden, layer);
    const bool gated = s_.scales_input;
    own_routing_op(b_.add(OpKind::kDispatchBackward, kPass,
                          {d_rows, kept.slots, d_home, gated ? read : kNoBuffer, gated ? kept.router : kNoBuffer},
                          {d_tokens, gated ? d_gate : kNoBuffer}),
                   s_.hidden, layer);
  };
  // In pairs what waits for an exchange comes first: segments wait as a whole. Gates of inputs have their gradient
  // here.
  if (s_.pairs || s_.scales_input) tokens_back();

  // Experts' matrices have their gradients here, also where others wait for the second half of a split backward.
  const int d_logits = hold(fmt::format("gradient of router logits {}", layer), s_.wide, s_.routed_tokens * s_.experts);
  own_routing_op(b_.add(OpKind::kRouteBackward, kPass, {kept.router, kept.slots, d_gate}, {d_logits}), s_.experts,
                 layer)
      .dtype = s_.wide;
  if (read == kNoBuffer && !s_.lora.used()) read = gather_tokens(kept.norm2, "norm2 again", layer, kPass);
  const int d_norm = gradient_of("norm2", s_.routed_tokens * s_.hidden, layer);
  matmul_backward(read, router_product(), d_logits, d_norm, layer, [&] {
    if (d_tokens == kNoBuffer) tokens_back();
    add(d_tokens, d_norm, layer, kPass);
    between(d_norm);
  });
}

}  // namespace trivium::program
