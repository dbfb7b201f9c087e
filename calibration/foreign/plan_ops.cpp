#include "calibration/foreign/plan_ops.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/cancellation_point.h"
#include "base/seconds.h"
#include "calibration/foreign/intervals.h"
#include "program/ir/op_kinds.h"

namespace trivium::calibration::foreign {
namespace {

using base::kSecondsPerPs;
using program::Op;
using program::OpKind;

struct MatrixName {
  std::string_view parameter, name;
};

// The first that the parameter's name ends with: experts and shared MLPs come before plain ones.
constexpr std::array<MatrixName, 13> kMatrices{{{"attn.c_attn.weight", "qkv"},
                                                {"attn.c_proj.weight", "attention_out"},
                                                {"attn.latents.weight", "latents"},
                                                {"attn.query_heads.weight", "query_heads"},
                                                {"attn.key_heads.weight", "key_heads"},
                                                {"experts.c_fc.weight", "expert_fc1"},
                                                {"experts.c_proj.weight", "expert_fc2"},
                                                {"shared.c_fc.weight", "shared_fc1"},
                                                {"shared.c_proj.weight", "shared_fc2"},
                                                {"mlp.c_fc.weight", "fc1"},
                                                {"mlp.c_proj.weight", "fc2"},
                                                {"router.weight", "router"},
                                                {"lm_head.weight", "head"}}};

std::string name_of_matrix(const program::Parameter& parameter) {
  for (const MatrixName& matrix : kMatrices) {
    if (parameter.name.ends_with(matrix.parameter)) return std::string(matrix.name);
  }
  return parameter.name == "wte.weight" ? "head" : "";
}

bool is_forward_product(OpKind kind) { return kind == OpKind::kMatmul || kind == OpKind::kExpertMatmul; }

/// "", "_dgrad" or "_wgrad"; nothing for what is no product.
std::optional<std::string_view> direction_of(OpKind kind) {
  switch (kind) {
    case OpKind::kMatmul:
    case OpKind::kExpertMatmul:
      return "";
    case OpKind::kMatmulDgrad:
    case OpKind::kExpertMatmulDgrad:
      return "_dgrad";
    case OpKind::kMatmulWgrad:
    case OpKind::kExpertMatmulWgrad:
      return "_wgrad";
    default:
      return std::nullopt;
  }
}

/// By the buffer of its matrix, or where a cast was read by the matrix of its shape.
const program::Parameter* matrix_of(const program::ChunkTemplate& kind, const Op& op) {
  const program::Parameter* alike = nullptr;
  for (const program::Parameter& parameter : kind.parameters) {
    if (name_of_matrix(parameter).empty() || (op.layer >= 0 && parameter.layer != op.layer)) continue;
    const bool read = parameter.value >= 0 && op.in[1] == parameter.value,
               written = parameter.gradient >= 0 && op.out[0] == parameter.gradient;
    if (read || written) return &parameter;
    const std::int64_t rows =
        parameter.local_experts > 0 ? parameter.local_rows / parameter.local_experts : parameter.local_rows;
    const bool whole = rows == op.k && parameter.local_columns == op.n,
               turned = rows == op.n && parameter.local_columns == op.k;
    if (alike == nullptr && (whole || turned)) alike = &parameter;
  }
  return alike;
}

/// Kinds that other trainers do in one go, or that are one thing to the eye.
std::string name_of_kind(OpKind kind) {
  switch (kind) {
    case OpKind::kLossMax:
    case OpKind::kLossSums:
      return std::string(name_of(OpKind::kLoss));
    case OpKind::kAttentionBlock:
      return std::string(name_of(OpKind::kAttention));
    case OpKind::kAttentionBlockBackward:
      return std::string(name_of(OpKind::kAttentionBackward));
    case OpKind::kPosition:
      return std::string(name_of(OpKind::kEmbedding));
    case OpKind::kPositionBackward:
      return std::string(name_of(OpKind::kEmbeddingBackward));
    case OpKind::kHeadNorm:
    case OpKind::kLatentNorm:
      return std::string(name_of(OpKind::kNorm));
    case OpKind::kHeadNormBackward:
    case OpKind::kLatentNormBackward:
      return std::string(name_of(OpKind::kNormBackward));
    default:
      return std::string(name_of(kind));
  }
}

/// Widths of a matrix's result: whole, and the parts that trainers keep apart (q, k, v; gate, up).
std::set<std::int64_t> widths_of(const program::Parameter& matrix, const Op& op) {
  std::set<std::int64_t> widths{op.n};
  if (matrix.sections.empty() || matrix.columns == 0) return widths;
  for (const std::int64_t section : matrix.sections) widths.insert(section * op.n / matrix.columns);
  return widths;
}

PlanProduct& product_of(std::vector<PlanProduct>& products, const std::string& name, std::int64_t k) {
  auto found = std::find_if(products.begin(), products.end(),
                            [&](const PlanProduct& product) { return product.name == name && product.k == k; });
  if (found == products.end()) found = products.insert(found, {name, k, {}, {}});
  return *found;
}

/// A matrix that no tensor rank has a part of, cut by columns or by rows in the plan.
void add_unsplit(PlanShapes& shapes, const std::string& name, const PlanProduct& part, int ranks, std::int64_t vocab) {
  PlanProduct &by_columns = product_of(shapes.unsplit, name, part.k),
              &by_rows = product_of(shapes.unsplit, name, part.k * ranks);
  for (const std::int64_t n : part.n) {
    by_columns.n.insert(n * ranks);
    by_rows.n.insert(n);
  }
  if (name == "head") by_columns.n.insert(vocab);  // without rows that make it divide
  for (PlanProduct* each : {&by_columns, &by_rows}) each->rows.insert(part.rows.begin(), part.rows.end());
}

void add_product(PlanShapes& shapes, const std::string& name, const program::Parameter& matrix, const Op& op) {
  PlanProduct& product = product_of(shapes.products, name, op.k);
  product.n.merge(widths_of(matrix, op));
  product.rows.insert(op.m);
  if (op.kind != OpKind::kExpertMatmul) return;
  product.any_rows = true;
  shapes.expert_inner.insert(name == "expert_fc1" ? op.n : op.k);
  if (name == "expert_fc1") shapes.expert_inner.merge(widths_of(matrix, op));
}

/// One simulated rank, event by event.
class RankPlanner {
 public:
  RankPlanner(const program::Program& program, double iteration_s) : program_(program) {
    plan_.iteration_s = iteration_s;
  }

  void add(const program::Event& event, const Op& op, const std::string& name) {
    const TimeSpan span{static_cast<double>(event.start_ps) * kSecondsPerPs,
                        static_cast<double>(event.end_ps) * kSecondsPerPs};
    PlannedOp& planned = plan_.ops[name];
    planned.count += 1;
    planned.seconds += span.seconds() - static_cast<double>(event.wait_ps) * kSecondsPerPs;
    planned.flops += op.flops;
    const program::OpTraits& traits = program::traits_of(op.kind);
    planned.launches = op.flash ? traits.launches.flash : traits.launches.fused;
    if (!program_.stack.fused_kernels && !op.flash) planned.launches += traits.launches.unfused_more;
    if (program::is_communication(op.kind)) {
      communication_[name].push_back(span);
    } else if (!program::is_copy(op.kind)) {
      compute_.push_back(span);
    }
  }

  RankPlan plan() {
    const Intervals compute(std::move(compute_));
    Intervals busy = compute;
    for (auto& [name, spans] : communication_) {
      const Intervals all(std::move(spans)), exposed = all.without(busy);
      plan_.exposed_s[name] = exposed.seconds();
      busy = busy.with(all);
    }
    plan_.idle_s = std::max(0.0, plan_.iteration_s - busy.seconds());
    return std::move(plan_);
  }

 private:
  const program::Program& program_;
  RankPlan plan_;
  std::vector<TimeSpan> compute_;
  std::map<std::string, std::vector<TimeSpan>> communication_;
};

/// Names of all ops of a body, made when one of them is asked for.
class Names {
 public:
  explicit Names(const program::Program& program) : program_(program), names_(program.bodies.size()) {}
  const std::string& of(int body, int op) {
    auto& all = names_[static_cast<std::size_t>(body)];
    const program::Body& of = program_.bodies[static_cast<std::size_t>(body)];
    if (all.empty()) {
      for (const Op& each : of.ops) all.push_back(name_of(program_, of, each));
    }
    return all[static_cast<std::size_t>(op)];
  }

 private:
  const program::Program& program_;
  std::vector<std::vector<std::string>> names_;
};

}  // namespace

bool is_product(const std::string& op) {
  const std::string name = op.substr(0, std::min(op.find("_dgrad"), op.find("_wgrad")));
  return name == kAnyProduct || name == "product" ||
         std::ranges::find(kMatrices, name, &MatrixName::name) != kMatrices.end();
}

RankPlan with_products_together(RankPlan plan) {
  PlannedOp all;
  for (const auto& [name, op] : plan.ops) {
    if (!is_product(name)) continue;
    all.count += op.count, all.seconds += op.seconds, all.flops += op.flops, all.launches = op.launches;
  }
  std::erase_if(plan.ops, [](const auto& op) { return is_product(op.first); });
  if (all.count > 0) plan.ops[kAnyProduct] = all;
  return plan;
}

std::string name_of(const program::Program& program, const program::Body& body, const Op& op) {
  const auto direction = direction_of(op.kind);
  if (!direction) return name_of_kind(op.kind);
  const program::Parameter* matrix = matrix_of(program.kind_of(body), op);
  return (matrix == nullptr ? "product" : name_of_matrix(*matrix)) + std::string(*direction);
}

PlanShapes shapes_of(const program::Program& program) {
  PlanShapes shapes;
  shapes.hidden = program.job.model.hidden;
  shapes.sequence = program.job.training.sequence;
  for (const program::Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      if (op.kind == OpKind::kActivation) shapes.inner.insert({op.n, 2 * op.n});
      if (op.kind == OpKind::kLossSums) shapes.logits.insert(op.n);
      if (op.kind == OpKind::kNorm || op.kind == OpKind::kMatmul) shapes.rows.insert(op.m);
      if (op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBlock) {
        shapes.flash = shapes.flash || op.flash;
        shapes.head.insert({op.head_dim, op.head_dim / 2});
      }
      if (!is_forward_product(op.kind)) continue;
      const program::Parameter* matrix = matrix_of(program.kind_of(body), op);
      if (matrix != nullptr) add_product(shapes, name_of_matrix(*matrix), *matrix, op);
    }
  }
  if (const int ranks = program.job.plan.tensor; ranks > 1) {
    const std::int64_t vocab = program.job.model.vocab;
    for (const PlanProduct& part : shapes.products) {
      if (!part.any_rows) add_unsplit(shapes, part.name, part, ranks, vocab);
    }
    shapes.logits.insert(vocab);
  }
  return shapes;
}

std::map<int, RankPlan> plans_of(const program::Program& program, const simulator::Simulation& simulation,
                                 const std::set<int>& ranks, const std::stop_token& stop) {
  base::CancellationPoint cancellation(stop);
  std::set<int> simulated;
  for (const program::Event& event : simulation.timeline.events) simulated.insert(event.rank);
  // Ranks of a stage do what the one that was simulated does, unless all were.
  std::map<int, int> like;
  std::map<int, RankPlanner> planners;
  for (const int rank : ranks) {
    like[rank] = simulated.contains(rank) ? rank : program.representative(program.role_of(rank));
    planners.try_emplace(like[rank], program, simulation.iteration_s);
  }
  Names names(program);
  for (const program::Event& event : simulation.timeline.events) {
    cancellation.step();
    const auto planner = planners.find(event.rank);
    if (planner == planners.end() || event.op < 0) continue;
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    const Op& op = program.body_of(task).ops[static_cast<std::size_t>(event.op)];
    planner->second.add(event, op, names.of(task.body, event.op));
  }
  std::map<int, RankPlan> done, plans;
  for (auto& [rank, planner] : planners) done[rank] = planner.plan();
  for (const auto& [rank, other] : like) plans[rank] = done[other];
  return plans;
}

}  // namespace trivium::calibration::foreign
