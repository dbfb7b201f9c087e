// The search space: every plan a request leaves open, as a tree that is listed level by level where it is looked at.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/space/bounds.h"
#include "planner/space/levels.h"
#include "planner/space/request.h"

namespace trivium::planner {

/// Samples: products are large enough long before.
inline constexpr std::int64_t kMostMicroBatch = 64;

/// Tokens: shorter sequences fit a device; smaller parts leave attention blocks that are too small.
inline constexpr std::int64_t kLongSequence = 8'192, kLeastPart = 4'096;

/// Whether a least number of context ranks is asked for: sequences are then split however short they are.
bool asks_for_context(const SearchRequest& request);

/// Devices that plans of the request use: `request.ranks`, or all of the cluster.
int ranks_of(const SearchRequest& request);

/// How the layers of a split are laid out: the second level.
struct PlacementChoice {
  std::string placement;
  bool sequence_parallel = false;
  bool overlap_tensor = false;
  program::Attention attention = program::Attention::kUnfused;
};

/// What runs in which order: the third level.
struct ScheduleChoice {
  program::Schedule schedule{};
  int virtual_stages = 1;
  bool balanced = false;         ///< layers of the stages by their load (planner/bound/balance.h), else even
  std::vector<int> stage_nodes;  ///< on heterogeneous nodes
  program::Storage activations = program::Storage::kNone;
  bool overlap_expert = false;
};

/// What is kept for the backward: the fourth level. The first `more` chunks of the model keep less than the others.
struct RecomputeChoice {
  program::Recompute recompute = program::Recompute::kNone;
  int more = 0;
  program::Recompute of_more = program::Recompute::kNone;
  std::vector<program::Module> modules{};  ///< of selective recomputation
};

/// What replicas share and what overlaps with the passes: the last level.
struct ShardingChoice {
  int zero_stage = 0, shard_group = 0;
  bool gradient_reduction = false, parameter_gather = false;
  program::Storage optimizer = program::Storage::kNone;
  program::Compression compression = program::Compression::kNone;
  bool operator==(const ShardingChoice&) const = default;
};

/// Levels and their values, in an order that depends on the request alone. A field that the request fixes has its value
/// there; values that a constraint does not allow are left out.
///
/// 1. split: tensor (divisors of the attention heads up to 64, over nodes too), pipeline (any count up to the layers;
///    tensor x context x pipeline divides the ranks, data is the rest), context (1, and divisors of the ranks up to 64
///    that leave parts of 4,096 tokens and more; both methods above 1), expert and expert_tensor (of a mixture model:
///    divisors of its experts and of data; where 1 or, with a constraint lifted, another divisor e of tensor splits
///    them multiples of tensor / e that divide data x tensor / e; dropless ones are split by all tensor ranks only
///    where these cannot hold as many of them whole), expert_dispatch (with
///    spread experts on GPUs: as the stack does it, and the others), fp8_parameter_gather (with fp8 on
///    GPUs and several replicas: as the stack does it, and the other), micro_batch (divisors of
///    a replica's share of the batch, up to 64). Where the fixed fields fit no split of the ranks, the request's own
///    plan stands alone, so that its refusal has a reason.
/// 2. layout: placement (every order of the dimensions that are above 1, on clusters of one kind; of those that seat
///    the same ranks together the first), sequence_parallel and overlap.tensor (both with tensor ranks; the latter,
///    where the stack overlaps through the memory of peers, inside NVLink domains), attention (flash and unfused where
///    devices and stack have fused kernels, else as given).
/// 3. shape: schedule and virtual_stages (those of program/schedules that are searched: 1f1b; zero_bubble with the
///    trivium stack; interleaved with every count that cuts the layers evenly), stage_layers (even, and with one chunk
///    a stage balanced), on heterogeneous nodes stage_nodes (none, and the groups in their order and in the opposite
///    one, balanced), offload.activations (none, host), overlap.expert (with spread experts, and virtual stages or no
///    pipeline; then also interleaved with 2, 3, 4, 6 and 8 chunks of layers that cannot be cut evenly).
/// 4. recompute_choice: recompute (none, selective, full; not full where activations are offloaded), with selective
///    recompute_modules (the attention core; outputs of norms, experts' activations and latents' heads; with them dense
///    MLPs and shared experts; with them whole mixtures), and
/// stage_recompute: the
///    first chunks of the model recompute more than the others, by eighths of the stages, with virtual stages by
///    eighths of the rounds through all stages.
/// 5. state: zero_stage (0, and 1 to 3 with data ranks; up to 1 with split backwards or overlap.expert), shard_group
///    (0, and with zero_stage 3 the replicas that share a node, but for spread experts), overlap.gradient_reduction,
///    overlap.parameter_gather (with zero_stage), offload.optimizer (none, host; disk where opens_disks says so),
///    compression (none, and fp16 with zero_stage 0).
class Space {
 public:
  /// The request must outlive it.
  explicit Space(const SearchRequest& request);

  const std::vector<program::Plan>& splits() const { return splits_; }
  std::vector<PlacementChoice> layouts(const program::Plan& split) const;
  std::vector<ScheduleChoice> shapes(const program::Plan& split, const PlacementChoice& layout) const;
  /// Whether a layout leaves open on which nodes the stages lie, and with them the tensor groups.
  bool places_tensor_groups_later() const;
  /// Whether plans of the split may overlap exchanges with experts with passes: then a layer may take less.
  bool may_overlap_expert(const program::Plan& split) const;
  std::vector<RecomputeChoice> recompute_choices(const program::Plan& split, const ScheduleChoice& shape) const;
  std::vector<ShardingChoice> states(const program::Plan& split, const PlacementChoice& layout,
                                     const ScheduleChoice& shape) const;

  /// Plans of the space, and under a node of it.
  std::int64_t count() const;
  std::int64_t count(const program::Plan& split) const;
  std::int64_t count(const program::Plan& split, const PlacementChoice& layout) const;
  std::int64_t count(const program::Plan& split, const PlacementChoice& layout, const ScheduleChoice& shape) const;
  std::int64_t count_recompute_choices(const program::Plan& split, const ScheduleChoice& shape) const;
  std::int64_t count_sharding_choices(const program::Plan& split, const PlacementChoice& layout,
                                      const ScheduleChoice& shape) const;

 private:
  std::vector<std::pair<program::Schedule, int>> schedules_of(const program::Plan& split) const;
  std::vector<std::pair<program::Schedule, int>> schedules_of_pairs(const program::Plan& split) const;
  bool fixed(const char* field) const { return !is_open(request_, field); }
  bool allows(Level level, const program::Plan& plan) const { return of(level).allow(plan); }
  const Bounds& of(Level level) const { return bounds_[static_cast<std::size_t>(level)]; }
  void add_rules(const TrainerSpace& trainer);
  void add_all_splits();
  void add_splits(program::Plan plan);
  std::vector<int> head_ranks(int context, program::ContextMethod method) const;
  std::vector<program::ExpertDispatch> dispatches(int expert) const;
  std::vector<program::Fp8Gather> parameter_gathers(const program::Plan& split) const;
  std::vector<int> tensors(int ranks) const;
  std::vector<int> contexts(int ranks) const;
  std::vector<int> pipelines(int ranks, int tensor) const;
  std::vector<std::pair<int, int>> expert_splits(const program::Plan& split) const;
  bool is_dominated_by_whole_experts(const program::Plan& split) const;
  std::vector<int> micro_batches(const program::Plan& split) const;
  std::vector<std::string> placements(const program::Plan& split) const;
  bool seats_decide() const;
  bool may_overlap_tensor(const program::Plan& placed) const;
  std::vector<std::vector<program::Module>> module_sets() const;
  void add_modules(std::vector<RecomputeChoice>& all, const ScheduleChoice& shape) const;
  std::vector<program::Attention> attentions(const program::Plan& split) const;
  std::vector<std::vector<int>> stages_on_groups(const program::Plan& placed) const;
  int replicas_on_a_node(const program::Plan& split, const PlacementChoice& layout) const;
  bool has_lanes() const;
  bool may_be_uneven() const;

  const SearchRequest& request_;
  const program::Plan& given_;
  const bool opens_disks_, opens_modules_;
  std::vector<program::Plan> splits_;
  std::vector<Bounds> bounds_;  // by the level that decides them
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<int, int, program::Storage, bool>, std::int64_t> recompute_choices_known_;
  mutable std::map<std::tuple<int, int, int, int, int, bool, bool, std::string>, std::int64_t> sharding_choices_known_;
  mutable std::map<std::tuple<int, int, int, int, int, int, std::string>, std::int64_t> placement_choices_known_;
};

/// A plan with the values of a level.
program::Plan with(program::Plan plan, const PlacementChoice& layout);
program::Plan with(program::Plan plan, const ScheduleChoice& shape);
program::Plan with(program::Plan plan, const RecomputeChoice& recompute_choice);
program::Plan with(program::Plan plan, const ShardingChoice& state);

/// A plan of the space. Its layers are even, or those of planner::balanced.
struct Member {
  program::Plan plan;
  bool balanced = false;
};

/// Every plan of the space, one after the other: for small spaces.
std::vector<Member> enumerate(const SearchRequest& request);

/// Plans that the request's constraints leave out.
std::int64_t count_forbidden(const SearchRequest& request);

/// Every field that the space opens, or that is fixed, with the values its plans take.
std::vector<std::pair<std::string, std::vector<std::string>>> fields_of(const SearchRequest& request);

/// Plans of one family.
struct SpacePart {
  std::int64_t micro_batches = 0;  ///< values of it, times context methods
  std::int64_t layouts = 0;
  std::int64_t plans = 0;  ///< of all of them
};

/// The families of a space in the order of its splits.
std::vector<std::pair<std::string, SpacePart>> parts_of(const Space& space);

/// "TP8 PP16 DP8".
std::string family_of(const program::Plan& plan);

}  // namespace trivium::planner
