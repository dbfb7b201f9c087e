// The ops of Muon (runtime/cpu/muon.cpp has the formulas). A matrix is needed whole: with tensor parallelism each rank
// gathers the momenta of all, makes the same iterations, and steps its own part (Liu et al. 2025, arXiv 2502.16982,
// section 2.3, where replicas that share the optimizer's state gather likewise).
#include "program/lower/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "program/lower/layout.h"
#include "program/lower/optimizer_bodies.h"

namespace trivium::program {
namespace {

DType wide_of(const Plan& plan) { return is_half(plan.precision) ? DType::kFp32 : plan.precision; }

StateArrays state_arrays(const Plan& plan) { return {plan.precision, Moments::kFp32, false}; }

std::size_t sections_of(const Parameter& p) { return std::max<std::size_t>(1, p.sections.size()); }

/// Rows and columns of one of a parameter's matrices, the smaller number first.
struct Matrix {
  std::int64_t m = 0, n = 0;
};

Matrix matrix_of(const Parameter& p, std::size_t section) {
  const std::int64_t rows = p.rows / std::max<std::int64_t>(1, p.experts);
  const std::int64_t columns = p.sections.empty() ? p.columns : p.sections[section];
  return {std::min(rows, columns), std::max(rows, columns)};
}

/// Of all iterations of a bucket's matrices, how much the rank makes that has parts of the most of them.
double share_of_slowest(const std::vector<Parameter>& parameters, const Bucket& bucket) {
  const std::int64_t ranks = bucket.elements / bucket.shard, part = bucket.elements / bucket.parts;
  std::vector<double> work(static_cast<std::size_t>(ranks), 0);
  std::vector<std::int64_t> last(static_cast<std::size_t>(ranks), -1);
  double all = 0;
  std::int64_t unit = 0;
  for (const Parameter& p : parameters) {
    if (p.offset < bucket.begin || p.offset >= bucket.begin + bucket.elements) continue;
    double of_one = 0;
    for (std::size_t section = 0; section < sections_of(p); ++section) {
      const Matrix matrix = matrix_of(p, section);
      const double m = static_cast<double>(matrix.m), n = static_cast<double>(matrix.n);
      of_one += 4 * m * m * n + 2 * m * m * m;
    }
    const std::int64_t experts = std::max<std::int64_t>(1, p.local_experts);
    const std::int64_t count = p.local_rows / experts * p.local_columns;
    for (std::int64_t expert = 0; expert < experts; ++expert, ++unit) {
      const std::int64_t begin = p.offset - bucket.begin + expert * count, end = begin + count;
      all += of_one;
      for (std::int64_t at = begin; at < end; at = (at / bucket.own_run() + 1) * bucket.own_run()) {
        const auto rank = static_cast<std::size_t>(at % part / bucket.own_run());
        if (last[rank] == unit) continue;
        last[rank] = unit;
        work[rank] += of_one;
      }
    }
  }
  return all > 0 ? *std::ranges::max_element(work) / all : 1;
}

}  // namespace

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
  if (job.training.lora.used()) return without("adapters; use lora_rank 0, or optimizer adamw");
  if (plan.moment_dtype != Moments::kFp32) return without("a momentum in 16 bits; use moment_dtype fp32");
  const Offload& away = plan.offload;
  if (away.optimizer != Storage::kNone || away.gradients != Storage::kNone || away.parameters != Storage::kNone) {
    return without("offloaded state; of offload use activations alone");
  }
  if (plan.compression != Compression::kNone) return without("compressed gradients; use compression none");
  // Momenta are gathered among replicas that come to their steps in different orders.
  if (plan.zero_stage > 0 && !plan.replica_micro_batch.empty()) {
    return without("ZeRO with replicas of different micro-batches; use zero_stage 0, or leave replica_micro_batch out");
  }
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
  const int ranks = cut_ranks(p, job_.plan.tensor);
  if (!is_cut(p) || ranks == 1) return momentum;
  const Buffer own = b_.buffer(momentum);
  const int whole = b_.temporary(own.name + ", all tensor ranks'", own.dtype, own.elements * ranks);
  Op& op = b_.add(OpKind::kAllGather, Pass::kOptimizer, {momentum}, {whole});
  op.lane = Lane::kCompute;
  op.group = p.expert_tensor > 0 ? group_splitting_experts(job_.plan) : Group::kTensor;
  op.dtype = own.dtype;
  op.elements = own.elements * ranks;
  return whole;
}

// Ranks that share the optimizer's state gather the momenta of a bucket, and each makes the iterations of the matrices
// of which it has a part (Liu et al. 2025, arXiv 2502.16982, section 2.3: Distributed Muon).
void OptimizerBodies::place_momenta() {
  std::int64_t widest = 0;
  for (const Bucket& bucket : b_.kind().buckets) {
    if (bucket.muon && bucket.shard < bucket.elements) widest = std::max(widest, bucket.elements);
  }
  if (widest == 0) return;
  momenta_ = b_.buffer(b_.place("momenta of a bucket", Space::kGathered, wide_of(job_.plan), widest)).offset;
}

int OptimizerBodies::gather_momenta(const Bucket& bucket, int index, int pair) {
  const DType wide = wide_of(job_.plan);
  const std::int64_t before = state_arrays(job_.plan).offset(StateArrays::kFirstMoment, bucket.shard);
  const int own = b_.view(fmt::format("momenta of bucket {}, a shard", index), Space::kOptimizer, wide, bucket.shard,
                          bucket.optimizer_offset + before);
  Op& moved = b_.add(OpKind::kMuonMomentum, Pass::kOptimizer, {pair}, {own});
  moved.dtype = wide;
  moved.bucket = static_cast<std::int16_t>(index);
  moved.elements = moved.m = bucket.shard;
  moved.n = 1;
  const int whole =
      b_.view(fmt::format("momenta of bucket {}", index), Space::kGathered, wide, bucket.elements, momenta_);
  for (int part = 0; part < bucket.parts; ++part) {
    const int from = part_of(own, part, bucket.parts), to = part_of(whole, part, bucket.parts);
    Op& op = b_.add(OpKind::kAllGather, Pass::kOptimizer, {from}, {to});
    op.lane = Lane::kCompute;
    op.group = group_of(bucket);
    op.dtype = wide;
    op.elements = bucket.elements / bucket.parts;
  }
  return whole;
}

void OptimizerBodies::orthogonalise(int index, int pair) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  const std::vector<Parameter> parameters = b_.kind().parameters;
  const bool shared = bucket.shard < bucket.elements;
  if (shared) gather_momenta(bucket, index, pair);
  const double share = shared ? share_of_slowest(parameters, bucket) : 1;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!holds(bucket, parameters[i])) continue;
    if (shared) {
      step_shared_matrices(i, bucket, index, pair, share);
    } else {
      step_matrices(parameters[i], bucket, index, pair);
    }
  }
}

Op& OptimizerBodies::step_matrix(const Parameter& p, std::size_t section, int index, int pair, int momentum) {
  const Matrix matrix = matrix_of(p, section);
  const int room = b_.temporary(fmt::format("room for {}, layer {}, section {}", p.name, p.layer, section),
                                wide_of(job_.plan), 2 * (matrix.m * matrix.n + matrix.m * matrix.m));
  Op& op = b_.add(OpKind::kMuonStep, Pass::kOptimizer, {pair, momentum}, {kNoBuffer, kNoBuffer, room});
  op.dtype = job_.plan.precision;
  op.bucket = static_cast<std::int16_t>(index);
  op.m = matrix.m, op.n = matrix.n, op.k = job_.training.optimizer.muon_iterations;
  op.experts = static_cast<std::int32_t>(std::max<std::int64_t>(1, p.local_experts));
  op.parts = static_cast<std::int32_t>(section);
  const bool cut = !p.sections.empty();
  op.elements = p.local_rows * (cut ? local_section(p, section, job_.plan.tensor) : p.local_columns);
  return op;
}

void OptimizerBodies::step_shared_matrices(std::size_t parameter, const Bucket& bucket, int index, int pair,
                                           double share) {
  const Parameter p = b_.kind().parameters[parameter];
  const DType wide = wide_of(job_.plan);
  const int gathered = b_.view(fmt::format("momentum of {}, layer {}", p.name, p.layer), Space::kGathered, wide,
                               p.local_rows * p.local_columns, momenta_ + (p.offset - bucket.begin) * size_of(wide));
  const int whole = whole_momentum(p, gathered);
  for (std::size_t section = 0; section < sections_of(p); ++section) {
    Op& op = step_matrix(p, section, index, pair, whole);
    op.sequence = static_cast<std::int32_t>(parameter);
    op.loss_share = share;
    op.elements = op.elements * bucket.shard / bucket.elements;
  }
}

void OptimizerBodies::step_matrices(const Parameter& p, const Bucket& bucket, int index, int pair) {
  const DType precision = job_.plan.precision, wide = wide_of(job_.plan);
  const std::int64_t count = p.local_rows * p.local_columns;
  const auto in_state = [&](const char* what, int array) {
    const std::int64_t before = state_arrays(job_.plan).offset(array, bucket.shard);
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
  for (std::size_t section = 0; section < sections_of(p); ++section) {
    Op& op = step_matrix(p, section, index, pair, whole);
    op.out[0] = copy;
    if (is_half(precision)) op.out[1] = p.value;
  }
}

}  // namespace trivium::program
