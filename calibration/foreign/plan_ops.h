// What a plan has a rank do in one iteration, by the names that a foreign run's kernels are matched to.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "simulator/iteration/simulation.h"

namespace trivium::calibration::foreign {

/// Of one iteration of one rank. Seconds of a collective are without its waits for other members.
struct PlannedOp {
  double count = 0, seconds = 0;
  double launches = 0;  ///< kernels of one op in the plan's stack
  double flops = 0;
};

struct RankPlan {
  double iteration_s = 0;
  std::map<std::string, PlannedOp> ops;
  std::map<std::string, double> exposed_s;  ///< by collective: waits and transfers that no kernel hides
  double idle_s = 0;                        ///< neither kernels nor collectives run
};

/// A product with a matrix of the model, by its forward shape: (m, k) · (k, n) with any m that is tokens.
struct PlanProduct {
  std::string name;          ///< "qkv", "attention_out", "fc1", "fc2", "head", …
  std::int64_t k = 0;        ///< width of what it reads
  std::set<std::int64_t> n;  ///< widths of what it gives: whole, or parts that trainers keep as matrices of their own
  std::set<std::int64_t> rows;  ///< tokens of a micro-batch on a rank
  bool any_rows = false;        ///< of experts: as many tokens as chose them
};

/// Shapes that tell foreign kernels apart.
struct PlanShapes {
  std::vector<PlanProduct> products;
  std::vector<PlanProduct> unsplit;     ///< those that tensor ranks share, whole: trainers differ in what they split
  std::set<std::int64_t> rows;          ///< tokens of a micro-batch on a rank, whole or of a sequence-parallel part
  std::set<std::int64_t> inner;         ///< widths inside MLPs, gate and up together too
  std::set<std::int64_t> logits;        ///< local vocabularies
  std::set<std::int64_t> head;          ///< widths of a head, or of half of one
  std::set<std::int64_t> expert_inner;  ///< widths inside experts, gate and up together too
  std::int64_t hidden = 0, sequence = 0;
  bool flash = false;  ///< attention in one kernel
};

/// Products of all matrices together, where a trace tells no shapes.
inline constexpr const char* kAnyProduct = "matmul";
bool is_product(const std::string& op);

/// All products of a plan as one.
RankPlan with_products_together(RankPlan plan);

/// The name of an op: its kind or, for a product, its matrix, with "_dgrad" or "_wgrad" appended. Parts of the loss
/// share one name, as do blocks of attention.
std::string name_of(const program::Program& program, const program::Body& body, const program::Op& op);

PlanShapes shapes_of(const program::Program& program);

/// Of the ranks given. `simulation` keeps its timeline. Errors: Failure(kInterrupted) where `stop` asked.
std::map<int, RankPlan> plans_of(const program::Program& program, const simulator::Simulation& simulation,
                                 const std::set<int>& ranks, const std::stop_token& stop);

}  // namespace trivium::calibration::foreign
