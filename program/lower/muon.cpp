// The ops of Muon (runtime/cpu/muon.cpp has the formulas). A matrix is needed whole: with tensor parallelism each rank
// gathers the momenta of all, makes the same iterations, and steps its own part (Liu et al. 2025, arXiv 2502.16982,
// section 2.3, where replicas that share the optimizer's state gather likewise).
#include "program/lower/muon.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/lower/layout.h"
#include "program/lower/optimizer_bodies.h"

namespace trivium::program {

bool is_orthogonalised(const Training& training, const Parameter& p) {
  return training.optimizer.kind == Update::kMuon && p.layer >= 0 && p.decayed;
}

std::optional<Infeasible> check_muon(const Job& job) {
  const Optimizer& o = job.training.optimizer;
  const Plan& plan = job.plan;
  if (o.kind != Update::kMuon) {
    if (o.muon_momentum == Optimizer{}.muon_momentum && o.muon_iterations == Optimizer{}.muon_iterations) return {};
    return Infeasible{"muon-needs-optimizer",
                      "muon_momentum and muon_iterations without Muon; give optimizer muon, or leave them out"};
  }
  const auto without = [](const std::string& what) {
    return Infeasible{"muon-supported", "optimizer muon is not implemented: " + what};
  };
  if (plan.zero_stage > 0) return without("matrices whose state is shared out; use zero_stage 0, or optimizer adamw");
  if (job.training.lora.used()) return without("adapters; use lora_rank 0, or optimizer adamw");
  if (plan.moment_dtype != Moments::kFp32) return without("a momentum in 16 bits; use moment_dtype fp32");
  const Offload& away = plan.offload;
  if (away.optimizer != Storage::kNone || away.gradients != Storage::kNone || away.parameters != Storage::kNone) {
    return without("offloaded state; of offload use activations alone");
  }
  if (plan.compression != Compression::kNone) return without("compressed gradients; use compression none");
  if (folds_experts(plan)) return without("experts that tensor ranks hold whole; use expert_tensor 0");
  if (plan.expert > 1 && job.model.linear_bias) {
    return without("biases of experts that are spread over ranks; use expert 1, or a model without them");
  }
  const StackTraits* stack = find_stack(plan.stack);
  if (stack != nullptr && stack->keeps_half_gradients(plan.precision)) {
    return without(
        fmt::format("gradients that stack {} keeps in fp16; use precision bf16, or stack trivium", plan.stack));
  }
  return std::nullopt;
}

int OptimizerBodies::whole_momentum(const Parameter& p, int momentum) {
  if (!is_cut(p) || job_.plan.tensor == 1) return momentum;
  const Buffer own = b_.buffer(momentum);
  const int whole = b_.temporary(own.name + ", all tensor ranks'", own.dtype, own.elements * job_.plan.tensor);
  Op& op = b_.add(OpKind::kAllGather, Pass::kOptimizer, {momentum}, {whole});
  op.lane = Lane::kCompute;
  op.group = Group::kTensor;
  op.dtype = own.dtype;
  op.elements = own.elements * job_.plan.tensor;
  return whole;
}

void OptimizerBodies::orthogonalise(int index, int pair) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  const std::vector<Parameter> parameters = b_.kind().parameters;
  for (const Parameter& p : parameters) {
    if (holds(bucket, p)) step_matrices(p, bucket, index, pair);
  }
}

void OptimizerBodies::step_matrices(const Parameter& p, const Bucket& bucket, int index, int pair) {
  const DType precision = job_.plan.precision, wide = is_half(precision) ? DType::kFp32 : precision;
  const std::int64_t count = p.local_rows * p.local_columns, experts = std::max<std::int64_t>(1, p.local_experts);
  const auto in_state = [&](const char* what, int array) {
    const std::int64_t before = StateArrays{precision, Moments::kFp32, false}.offset(array, bucket.shard);
    return b_.view(fmt::format("{} of {}, layer {}", what, p.name, p.layer), Space::kOptimizer, wide, count,
                   bucket.optimizer_offset + before + (p.offset - bucket.begin) * size_of(wide));
  };
  const int momentum = in_state("momentum", StateArrays::kFirstMoment);
  Op& moved = b_.add(OpKind::kMuonMomentum, Pass::kOptimizer, {pair, p.gradient}, {momentum});
  moved.dtype = wide;
  moved.bucket = static_cast<std::int16_t>(index);
  moved.elements = moved.m = count;
  moved.n = 1;
  const int whole = whole_momentum(p, momentum);
  const int copy = is_half(precision) ? in_state("fp32 copy", StateArrays::kMaster) : p.value;
  const std::int64_t rows = p.rows / std::max<std::int64_t>(1, p.experts);
  for (std::size_t section = 0; section < std::max<std::size_t>(1, p.sections.size()); ++section) {
    const bool cut = !p.sections.empty();
    const std::int64_t columns = cut ? p.sections[section] : p.columns;
    const std::int64_t m = std::min(rows, columns), n = std::max(rows, columns);
    const int room = b_.temporary(fmt::format("room for {}, layer {}, section {}", p.name, p.layer, section), wide,
                                  2 * (m * n + m * m));
    Op& op = b_.add(OpKind::kMuonStep, Pass::kOptimizer, {pair, whole},
                    {copy, is_half(precision) ? p.value : kNoBuffer, room});
    op.dtype = precision;
    op.bucket = static_cast<std::int16_t>(index);
    op.m = m, op.n = n, op.k = job_.training.optimizer.muon_iterations;
    op.experts = static_cast<std::int32_t>(experts);
    op.parts = static_cast<std::int32_t>(section);
    op.elements = p.local_rows * (cut ? local_section(p, section, job_.plan.tensor) : p.local_columns);
  }
}

}  // namespace trivium::program
