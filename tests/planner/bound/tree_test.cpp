// Bounds of every level against the plans below them.
#include "planner/bound/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/evaluate.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

// Down one path of the tree, taking a child at random; nothing where all children were refused.
std::optional<std::vector<Node>> random_path(Tree& tree, std::mt19937& random) {
  std::vector<Node> nodes = tree.roots(), path;
  while (!nodes.empty()) {
    path.push_back(nodes[std::uniform_int_distribution<std::size_t>(0, nodes.size() - 1)(random)]);
    if (path.back().is_plan()) return path;
    nodes = tree.open(path.back()).nodes;
  }
  return std::nullopt;
}

// A node that is passed over takes every plan below it along: none may be faster than its bound.
TEST(Tree, NoPlanIsFasterThanTheBoundOfANodeAboveIt) {
  std::mt19937 random(17);
  int plans = 0, tight = 0;
  for (int i = 0; i < 60; ++i) {
    const SearchRequest request = random_problem(random);
    Tree tree(request);
    for (int walk = 0; walk < 20; ++walk) {
      const auto path = random_path(tree, random);
      if (!path) continue;
      const program::Plan& plan = *path->back().plan;
      program::Job job = request.job;
      job.plan = plan;
      SCOPED_TRACE(program::summary(plan) + " " + plan.placement + " on " + request.cluster.name);
      const auto simulated = iteration(job, request.cluster, false);
      ASSERT_TRUE(std::holds_alternative<std::int64_t>(simulated));
      const std::int64_t took = std::get<std::int64_t>(simulated);
      for (std::size_t n = 0; n < path->size(); ++n) {
        EXPECT_LE((*path)[n].bound_ps, took) << "level " << static_cast<int>((*path)[n].level);
        EXPECT_GE((*path)[n].bound_ps, (*path)[n == 0 ? 0 : n - 1].bound_ps);
      }
      ++plans;
      tight += static_cast<double>(path->back().bound_ps) > 0.95 * static_cast<double>(took) ? 1 : 0;
    }
  }
  EXPECT_GT(plans, 300);
  EXPECT_GT(4 * tight, plans);  // a bound of nothing would pass too
}

// Recompute choices below the tree's shapes whose layers are balanced by their load.
std::vector<Node> balanced_choices(Tree& tree) {
  std::vector<Node> choices;
  for (const Node& split : tree.roots()) {
    for (const Node& layout : tree.open(split).nodes) {
      for (const Node& shape : tree.open(layout).nodes) {
        const auto place = static_cast<std::size_t>(shape.path[static_cast<std::size_t>(Node::Level::kSchedule)]);
        if (!shape.branch->shapes[place].balanced) continue;
        for (Node& choice : tree.open(shape).nodes) choices.push_back(std::move(choice));
      }
    }
  }
  return choices;
}

// With such layers a walk refuses the states that need too much memory, and no others. A head that takes as long as
// several layers makes them uneven.
TEST(Tree, WalksRefuseTheStatesWithoutRoomForBalancedLayers) {
  int refused = 0, left = 0;
  for (const double room : {24.0, 48.0, 96.0, 192.0}) {  // MiB
    SearchRequest request = small_problem();
    request.job.model.layers = 10;
    request.job.model.vocab = 20'000;
    hardware::Device& device = request.cluster.groups.front().node.device;
    device.memory = (device.reserved + base::Bytes(room * (1 << 20))) * (1 / device.usable);
    const auto fits = [&](const program::Plan& plan) {
      const program::Job job{request.job.model, request.job.training, plan};
      return !simulator::out_of_memory(simulator::CostEstimator(job, request.cluster).memory(plan));
    };
    Tree tree(request);
    std::vector<Node> choices = balanced_choices(tree);
    for (std::size_t i = 0; i < choices.size(); i += 7) {
      const Node& node = choices[i];
      const Branch& branch = *node.branch;
      const Expansion walked = tree.open(node);
      for (const Rejection& rejection : walked.refused) {
        EXPECT_FALSE(rejection.why.rule == kMemoryRule && fits(rejection.example));
      }
      for (const Node& closer : walked.nodes) {
        const auto choice = static_cast<std::size_t>(node.path[static_cast<std::size_t>(Node::Level::kRecompute)]);
        for (std::size_t state = 0; state < branch.states.size(); ++state) {
          program::Plan plan = with(with(branch.plan, branch.recompute_choices[choice]), branch.states[state]);
          plan.stage_layers = closer.walked->plan.stage_layers;
          if (refusal({request.job.model, request.job.training, plan}, request.cluster, 8)) continue;
          EXPECT_EQ(closer.walked->may_fit[state] != 0, fits(plan)) << program::summary(plan);
          ++(closer.walked->may_fit[state] != 0 ? left : refused);
        }
      }
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(left, 50);
}

// What a look at a split's memory takes for granted of its states.
TEST(StateBytes, AreNoMoreWithNothingBesideThePassesAndShardsOverAllReplicas) {
  std::mt19937 random(31);
  int pairs = 0;
  for (int i = 0; i < 40; ++i) {
    SearchRequest request = random_problem(random);
    request.job.plan.precision = program::DType::kFp32;
    for (const char* field : {"overlap.gradient_reduction", "overlap.parameter_gather", "zero_stage"}) {
      request.fixed.erase(field);
    }
    const Space space(request);
    simulator::SharedCosts shared;
    for (const program::Plan& split : space.splits()) {
      const PlacementChoice layout = space.layouts(split).front();
      const std::vector<ShardingChoice> states = space.states(split, layout, ScheduleChoice{});
      program::Job job = request.job;
      job.plan = with(relaxed(split), layout);
      if (refusal(job, request.cluster, ranks_of(request))) continue;
      StateBytes bytes(job, states, request.cluster, shared);
      for (std::size_t s = 0; s < states.size(); ++s) {
        ShardingChoice smaller = states[s];
        smaller.gradient_reduction = smaller.parameter_gather = false;
        smaller.shard_group = 0;
        const auto at = std::find(states.begin(), states.end(), smaller);
        if (at == states.end() || smaller == states[s]) continue;
        const auto& less = bytes.of(static_cast<std::size_t>(at - states.begin()));
        const auto& more = bytes.of(s);
        for (std::size_t stage = 0; stage < less.size(); ++stage) {
          EXPECT_LE(less[stage].device, more[stage].device) << program::summary(with(job.plan, states[s]));
          EXPECT_LE(less[stage].host, more[stage].host) << program::summary(with(job.plan, states[s]));
        }
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 500);
}

// Costs and bytes that other plans of the search left behind are those of an estimator by itself.
TEST(Tree, SharedCostsAreThoseOfEachPlanAlone) {
  std::mt19937 random(23);
  int plans = 0;
  for (int i = 0; i < 30; ++i) {
    SearchRequest request = random_problem(random);
    request.ignore_memory = true;
    const std::vector<Member> members = enumerate(request);
    simulator::SharedCosts shared;
    for (int k = 0; k < 40; ++k) {
      const Member& member = members[std::uniform_int_distribution<std::size_t>(0, members.size() - 1)(random)];
      program::Job job = request.job;
      job.plan = member.plan;
      if (refusal(job, request.cluster, ranks_of(request))) continue;
      SCOPED_TRACE(program::summary(job.plan) + " " + job.plan.placement + " on " + request.cluster.name);
      simulator::CostEstimator alone(job, request.cluster), other(job, request.cluster, &shared);
      const simulator::ScheduleCosts a = alone.schedule_costs(job.plan), b = other.schedule_costs(job.plan);
      EXPECT_EQ(simulator::lower_bound_ps(a), simulator::lower_bound_ps(b));
      EXPECT_EQ(simulator::lower_bound_ps(a, simulator::recurrence_ends(a)),
                simulator::lower_bound_ps(b, simulator::recurrence_ends(b)));
      const auto needed = alone.memory(job.plan), shares = other.memory(job.plan);
      for (std::size_t s = 0; s < needed.size(); ++s) {
        EXPECT_EQ(shares[s].total(), needed[s].total());
        EXPECT_EQ(shares[s].host, needed[s].host);
      }
      ++plans;
    }
  }
  EXPECT_GT(plans, 300);
}

// In a pipeline this stack's host takes longer for tensor collectives: what was costed there is no bound elsewhere.
TEST(Tree, CostsOfAPipelineAreNotThoseOfOneStage) {
  const SearchRequest request = small_problem();
  program::Job piped = request.job, flat = request.job;
  for (program::Job* job : {&piped, &flat}) {
    job->plan.stack = "nanotron";
    job->plan.tensor = 2;
    job->plan.micro_batch = 1;
  }
  piped.plan.pipeline = piped.plan.data = 2;
  flat.plan.pipeline = 1, flat.plan.data = 4;
  ASSERT_FALSE(refusal(piped, request.cluster, 8) || refusal(flat, request.cluster, 8));
  simulator::SharedCosts shared;
  const auto bound = [&](const program::Job& job, simulator::SharedCosts* costs) {
    return simulator::lower_bound_ps(simulator::CostEstimator(job, request.cluster, costs).schedule_costs(job.plan));
  };
  EXPECT_EQ(bound(piped, &shared), bound(piped, nullptr));
  EXPECT_EQ(bound(flat, &shared), bound(flat, nullptr));
}

TEST(Tree, CostsOfADispatchAndOfParametersInEightBitsAreThoseOfNoOther) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100:1");
  simulator::SharedCosts shared;
  std::set<std::int64_t> bounds;
  for (const auto dispatch : {program::ExpertDispatch::kAllToAll, program::ExpertDispatch::kDeepEp}) {
    for (const auto gather : {program::Fp8Gather::kOff, program::Fp8Gather::kOn}) {
      program::Job job;
      job.model = models::load_model("mixtral-8x7b");
      job.model.layers = 2;
      job.training.sequence = 1024;
      job.training.global_batch = 4;
      job.plan.data = job.plan.expert = 4;
      job.plan.zero_stage = 1;
      job.plan.fp8 = program::Fp8::kCurrent;
      job.plan.expert_dispatch = dispatch;
      job.plan.fp8_parameter_gather = gather;
      SCOPED_TRACE(program::summary(job.plan));
      const auto bound = [&](simulator::SharedCosts* costs) {
        const simulator::ScheduleCosts of_plan = simulator::CostEstimator(job, cluster, costs).schedule_costs(job.plan);
        return simulator::lower_bound_ps(of_plan, simulator::recurrence_ends(of_plan));
      };
      EXPECT_EQ(bound(&shared), bound(nullptr));
      bounds.insert(bound(nullptr));
    }
  }
  EXPECT_GE(bounds.size(), 2U);
}

// Copies between layers, from links that carry them at once to links that everything waits for; chunks of one layer to
// those of many, with state that is gathered and reduced between the layers too.
TEST(Tree, NoPlanWithOffloadedActivationsIsFasterThanItsBound) {
  std::mt19937 random(37);
  const auto one_of = [&](const auto& values) -> const auto& {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  int plans = 0, counted = 0, tight = 0;
  for (int i = 0; i < 250; ++i) {
    SearchRequest request = random_problem(random);
    for (const char* field : {"offload.activations", "offload.optimizer", "schedule", "zero_stage", "micro_batch"}) {
      request.fixed.erase(field);
    }
    request.job.model.layers = one_of(std::vector<std::int64_t>{4, 8, 12, 24});
    request.job.training.global_batch = one_of(std::vector<std::int64_t>{8, 16, 32, 64});
    const double speed = one_of(std::vector<double>{.03, .1, .3, 1, 3});
    for (hardware::NodeGroup& group : request.cluster.groups) {
      group.node.devices = 4;
      group.node.host_link = base::BytesPerSecond(group.node.host_link.value() * speed);
    }
    const Space space(request);
    for (int k = 0; k < 20 && !space.splits().empty(); ++k) {
      const program::Plan& split = one_of(space.splits());
      const std::vector<PlacementChoice> layouts = space.layouts(split);
      const PlacementChoice& layout = one_of(layouts);
      const std::vector<ScheduleChoice> shapes = space.shapes(split, layout);
      const ScheduleChoice& shape = one_of(shapes);
      if (shape.balanced || shape.activations == program::Storage::kNone) continue;
      const std::vector<RecomputeChoice> recompute_choices = space.recompute_choices(split, shape);
      const std::vector<ShardingChoice> states = space.states(split, layout, shape);
      if (states.empty()) continue;
      program::Job job = request.job;
      job.plan = with(with(with(with(split, layout), shape), one_of(recompute_choices)), one_of(states));
      if (refusal(job, request.cluster, ranks_of(request))) continue;
      SCOPED_TRACE(program::summary(job.plan) + " on " + request.cluster.name);
      const simulator::ScheduleCosts schedule_costs =
          simulator::CostEstimator(job, request.cluster).schedule_costs(job.plan);
      const std::int64_t bound = simulator::lower_bound_ps(schedule_costs, simulator::recurrence_ends(schedule_costs));
      const auto simulated = iteration(job, request.cluster, false);
      ASSERT_TRUE(std::holds_alternative<std::int64_t>(simulated));
      EXPECT_LE(bound, std::get<std::int64_t>(simulated));
      EXPECT_EQ(simulator::recurrence_ends(schedule_costs).stages,
                simulator::recurrence_ends(schedule_costs, simulator::Rounds::kAll).stages);
      ++plans;
      if (job.plan.offload.parameters != program::Storage::kNone) continue;  // no bound counts their copies
      ++counted;
      tight += static_cast<double>(bound) > 0.95 * static_cast<double>(std::get<std::int64_t>(simulated)) ? 1 : 0;
    }
  }
  EXPECT_GT(plans, 500);
  EXPECT_GT(2 * tight, counted);
}

// What lets a search leave a state with its optimizer offloaded until the same state without had its turn.
TEST(Tree, NoPlanIsFasterWithItsOptimizerOffloaded) {
  std::mt19937 random(31);
  int plans = 0, slower = 0;
  for (int i = 0; i < 45; ++i) {
    SearchRequest request = random_problem(random);
    request.fixed.erase("zero_stage");
    request.fixed.erase("overlap.parameter_gather");
    const std::vector<Member> members = enumerate(request);
    for (int k = 0; k < 20; ++k) {
      program::Job job = request.job;
      job.plan = members[std::uniform_int_distribution<std::size_t>(0, members.size() - 1)(random)].plan;
      job.plan.offload.optimizer = program::Storage::kNone;
      program::Job away = job;
      away.plan.offload.optimizer = program::Storage::kHost;
      if (refusal(job, request.cluster, ranks_of(request)) || refusal(away, request.cluster, ranks_of(request)))
        continue;
      SCOPED_TRACE(program::summary(job.plan) + " " + job.plan.placement + " on " + request.cluster.name);
      const auto here = iteration(job, request.cluster, false);
      const auto offloaded = iteration(away, request.cluster, false);
      ASSERT_TRUE(std::holds_alternative<std::int64_t>(here) && std::holds_alternative<std::int64_t>(offloaded));
      EXPECT_LE(std::get<std::int64_t>(here), std::get<std::int64_t>(offloaded));
      slower += std::get<std::int64_t>(here) < std::get<std::int64_t>(offloaded) ? 1 : 0;
      ++plans;
    }
  }
  EXPECT_GT(plans, 200);
  EXPECT_GT(slower, plans / 2);
}

TEST(Tree, CountsWhatEnumeratingLists) {
  std::mt19937 random(29);
  for (int i = 0; i < 30; ++i) {
    const SearchRequest request = random_problem(random);
    EXPECT_EQ(Space(request).count(), static_cast<std::int64_t>(enumerate(request).size()));
  }
}

}  // namespace
}  // namespace trivium::planner
