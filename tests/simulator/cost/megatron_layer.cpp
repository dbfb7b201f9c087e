#include "tests/simulator/cost/megatron_layer.h"

#include "program/ir/op_kinds.h"
#include "program/plan/stack.h"
#include "simulator/collectives/collective_cost.h"
#include "simulator/cost/compute_cost.h"

namespace trivium::simulator {
namespace {

using program::Op;
using program::OpKind;
using program::Pass;

constexpr std::int64_t kVocab = 51200;

Op op_of(const MegatronShape& shape, OpKind kind, Pass pass, std::int64_t n, std::int64_t k = 0) {
  Op op;
  op.kind = kind;
  op.pass = pass;
  op.dtype = program::DType::kFp16;
  op.m = shape.tokens, op.n = n, op.k = k;
  op.heads = op.kv_heads = shape.heads / shape.tensor;
  op.head_dim = static_cast<int>(shape.hidden) / shape.heads;
  op.sequence = static_cast<int>(shape.tokens) / shape.samples;
  if (kind == OpKind::kAllReduce) op.elements = op.m * n;
  program::fill_work(op);
  return op;
}

}  // namespace

std::vector<Op> layer_forward(const MegatronShape& shape, Pass pass) {
  const std::int64_t hidden = shape.hidden, local = hidden / shape.tensor;
  const auto op = [&](OpKind kind, std::int64_t n, std::int64_t k = 0) { return op_of(shape, kind, pass, n, k); };
  return {op(OpKind::kNorm, hidden),          op(OpKind::kMatmul, 3 * local, hidden),
          op(OpKind::kAttention, local),      op(OpKind::kMatmul, hidden, local),
          op(OpKind::kAllReduce, hidden),     op(OpKind::kBiasResidual, hidden),
          op(OpKind::kNorm, hidden),          op(OpKind::kMatmul, 4 * local, hidden),
          op(OpKind::kActivation, 4 * local), op(OpKind::kMatmul, hidden, 4 * local),
          op(OpKind::kAllReduce, hidden),     op(OpKind::kBiasResidual, hidden)};
}

std::vector<Op> layer_backward(const MegatronShape& shape) {
  const std::int64_t hidden = shape.hidden, local = hidden / shape.tensor;
  std::vector<Op> ops;
  const auto add = [&](OpKind kind, std::int64_t n, std::int64_t k = 0) {
    ops.push_back(op_of(shape, kind, Pass::kBackward, n, k));
  };
  const auto product = [&](std::int64_t n, std::int64_t k) {
    add(OpKind::kMatmulDgrad, n, k);
    add(OpKind::kMatmulWgrad, n, k);
  };
  add(OpKind::kBiasResidualBackward, hidden);
  product(hidden, 4 * local);
  add(OpKind::kActivationBackward, 4 * local);
  product(4 * local, hidden);
  add(OpKind::kAllReduce, hidden);
  add(OpKind::kNormBackward, hidden);
  add(OpKind::kBiasResidualBackward, hidden);
  product(hidden, local);
  add(OpKind::kAttentionBackward, local);
  product(3 * local, hidden);
  add(OpKind::kAllReduce, hidden);
  add(OpKind::kNormBackward, hidden);
  return ops;
}

std::vector<Op> head(const MegatronShape& shape) {
  const std::int64_t words = kVocab / shape.tensor, hidden = shape.hidden;
  const auto forward = [&](OpKind kind, std::int64_t n, std::int64_t k = 0) {
    return op_of(shape, kind, Pass::kForward, n, k);
  };
  const auto backward = [&](OpKind kind, std::int64_t n, std::int64_t k = 0) {
    return op_of(shape, kind, Pass::kBackward, n, k);
  };
  std::vector<Op> ops{forward(OpKind::kNorm, hidden),
                      forward(OpKind::kMatmul, words, hidden),
                      forward(OpKind::kLossMax, words),
                      forward(OpKind::kLossSums, words),
                      forward(OpKind::kLoss, words),
                      backward(OpKind::kLossBackward, words),
                      backward(OpKind::kMatmulDgrad, words, hidden),
                      backward(OpKind::kMatmulWgrad, words, hidden),
                      backward(OpKind::kAllReduce, hidden),
                      backward(OpKind::kNormBackward, hidden)};
  for (Op& op : ops) {  // statistics of the loss are fp32
    if (op.kind != OpKind::kLossMax && op.kind != OpKind::kLossSums && op.kind != OpKind::kLossBackward) continue;
    op.dtype = program::DType::kFp32;
    program::fill_work(op);
  }
  return ops;
}

double time_of(const std::vector<Op>& ops, const hardware::Node& node) {
  const program::StackTraits& stack = *program::find_stack("megatron");
  const GroupPlacement tensor{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .sharing = 1};
  const std::vector<base::Seconds> costs = segment_costs(ops, node.device, stack);
  double total = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    total += program::is_communication(ops[i].kind)
                 ? collective_cost(ops[i].kind, base::Bytes(ops[i].bytes), tensor, node, stack).value()
                 : costs[i].value();
  }
  return total;
}

}  // namespace trivium::simulator
