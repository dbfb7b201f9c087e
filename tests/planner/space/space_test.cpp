#include "planner/space/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/space/constraints.h"
#include "planner/space/held.h"
#include "planner/space/levels.h"
#include "program/lower/lower.h"
#include "program/plan/fields.h"
#include "program/plan/job_json.h"
#include "program/plan/plan.h"
#include "simulator/predict/simulate.h"
#include "tests/planner/problems.h"
#include "tests/simulator/prepared.h"

namespace trivium::planner {
namespace {

std::set<int> contexts(const SearchRequest& request) {
  std::set<int> found;
  for (const Member& member : enumerate(request)) found.insert(member.plan.context);
  return found;
}

// A field that is new is searched, or it is said why not.
TEST(Levels, DecideEveryFieldOfAPlanOnce) {
  std::vector<std::string> decided, fields = program::plan_fields();
  for (const SearchedField& field : searched_fields()) decided.emplace_back(field.name);
  std::sort(decided.begin(), decided.end());
  std::sort(fields.begin(), fields.end());
  EXPECT_EQ(decided, fields);
}

TEST(Space, OpensContextForLongSequences) {
  SearchRequest request = small_problem();
  EXPECT_EQ(contexts(request), (std::set<int>{1}));
  request.job.training.sequence = 16'384;
  EXPECT_EQ(contexts(request), (std::set<int>{1, 2, 4}));  // parts of 4,096 tokens and more
  request.job.training.sequence = 8'192;
  EXPECT_EQ(contexts(request), (std::set<int>{1, 2}));
  request.job.training.sequence = 8'000;
  EXPECT_EQ(contexts(request), (std::set<int>{1}));
  request.job.plan.context = 2;
  request.fixed = {"context"};
  EXPECT_EQ(contexts(request), (std::set<int>{2}));
}

// Whatever the plan of its file holds there: state stays on the device. ZeRO is searched.
TEST(Space, OfMuonHoldsWhatItCannotTrainBy) {
  SearchRequest request = small_problem();
  request.job.model = models::load_model("mixtral-8x7b");
  request.job.training.optimizer.kind = program::Update::kMuon;
  request.job.plan.offload.optimizer = program::Storage::kHost;
  std::set<int> tensors, stages;
  for (const Member& member : enumerate(with_fields_settled(request))) {
    const auto no = program::check({request.job.model, request.job.training, member.plan});
    ASSERT_NE(no ? no->rule : "", "muon-supported") << program::summary(member.plan);
    tensors.insert(member.plan.tensor);
    stages.insert(member.plan.zero_stage);
  }
  EXPECT_TRUE(tensors.contains(2));
  EXPECT_EQ(stages, (std::set<int>{0, 1, 2, 3}));
  const auto held = held_fields(with_fields_settled(request));
  const auto away = std::ranges::find(held, "offload.optimizer", &Held::field);
  ASSERT_NE(away, held.end());
  EXPECT_EQ(away->value + ": " + away->why, "none: Muon steps matrices where their momentum is");
}

// By trainer: stages of ZeRO with experts on one rank, and spread.
std::pair<std::set<int>, std::set<int>> stages_of_mixtures(const char* trainer) {
  SearchRequest request = small_problem();
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true};
  request.job.plan.stack = find_trainer_space(trainer)->stack;
  request.job.plan.attention = program::Attention::kFlash;
  request = for_trainer(std::move(request), *find_trainer_space(trainer));
  std::pair<std::set<int>, std::set<int>> stages;
  for (const Member& member : enumerate(with_fields_settled(request))) {
    (member.plan.expert == 1 ? stages.first : stages.second).insert(member.plan.zero_stage);
    EXPECT_TRUE(member.plan.expert == 1 || member.plan.context == 1 || std::string_view(trainer) != "torchtitan");
  }
  return stages;
}

// torchtitan tests FSDP 8 with EP 2 (pytorch/torchtitan#1373) and shards whatever is replicated; a single replica whose
// tensor ranks share the experts would run in fp32 (maybe_enable_amp). DeepSpeed asserts "MoE not supported with Stage
// 3" (deepspeed/runtime/engine.py). Megatron-FSDP shards experts over their own group (its README, expt_device_mesh).
TEST(Space, ShardsMixturesAsTheirTrainersDo) {
  using Stages = std::set<int>;
  EXPECT_EQ(stages_of_mixtures("torchtitan"), (std::pair(Stages{0, 2, 3}, Stages{2, 3})));
  EXPECT_EQ(stages_of_mixtures("deepspeed"), (std::pair(Stages{0, 1, 2}, Stages{0, 1, 2})));
  EXPECT_EQ(stages_of_mixtures("megatron"), (std::pair(Stages{0, 1, 2, 3}, Stages{0, 1, 2, 3})));
}

// By schedule: their chunks a stage.
std::map<program::Schedule, std::set<int>> schedules(const SearchRequest& request) {
  std::map<program::Schedule, std::set<int>> found;
  for (const Member& member : enumerate(request)) found[member.plan.schedule].insert(member.plan.virtual_stages);
  return found;
}

TEST(Space, TriesSchedulesInAVWhereTheyAreNamed) {
  using program::Schedule;
  SearchRequest request = small_problem();
  request.job.model.layers = 8;
  EXPECT_FALSE(schedules(request).contains(Schedule::kZbv));
  EXPECT_NE(text_of(held_fields(request)).find("schedule without zbv, dualpipev"), std::string::npos);
  request.fixed = {"schedule", "pipeline"};
  request.job.plan.pipeline = 4;
  for (const Schedule schedule : {Schedule::kZbv, Schedule::kDualPipeV}) {
    request.job.plan.schedule = schedule;
    EXPECT_EQ(schedules(request), (std::map<Schedule, std::set<int>>{{schedule, {2}}}));
  }
  EXPECT_EQ(text_of(held_fields(request)).find("without zbv"), std::string::npos);
}

// (tensor, expert, expert_tensor) of all splits in two stages.
std::set<std::tuple<int, int, int>> expert_splits(const SearchRequest& request) {
  std::set<std::tuple<int, int, int>> found;
  const Space space(request);
  for (const program::Plan& split : space.splits()) {
    if (split.pipeline == 2) found.insert({split.tensor, split.expert, split.expert_tensor});
  }
  return found;
}

// Four ranks, four experts: with capacity both ways, and with two pairs of four tensor ranks; dropless ones are split
// by all of these only where six experts over four ranks say so, or where it is asked for.
TEST(Space, SplitsDroplessExpertsOverTensorRanksOnlyWhereTheseCannotHoldThemWhole) {
  using Splits = std::set<std::tuple<int, int, int>>;
  SearchRequest request = small_problem();
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2};
  EXPECT_EQ(expert_splits(request), (Splits{{1, 1, 0},
                                            {1, 2, 0},
                                            {1, 4, 0},
                                            {2, 1, 0},
                                            {2, 2, 0},
                                            {2, 2, 1},
                                            {2, 4, 1},
                                            {4, 1, 0},
                                            {4, 2, 2},
                                            {4, 4, 1}}));
  request.job.model.experts->dropless = true;
  EXPECT_EQ(expert_splits(request),
            (Splits{{1, 1, 0}, {1, 2, 0}, {1, 4, 0}, {2, 2, 1}, {2, 4, 1}, {4, 2, 2}, {4, 4, 1}}));
  EXPECT_NE(text_of(held_fields(request)).find("dropless experts are whole if they can be: expert_tensor 1 where"),
            std::string::npos);
  request.job.model.experts->count = 6;
  EXPECT_EQ(expert_splits(request), (Splits{{1, 1, 0}, {1, 2, 0}, {2, 2, 0}, {2, 2, 1}, {4, 1, 0}, {4, 2, 2}}));
  request.job.model.experts->count = 4;
  request.fixed = {"expert_tensor"};
  EXPECT_EQ(expert_splits(request), (Splits{{1, 1, 0}, {1, 2, 0}, {1, 4, 0}, {2, 1, 0}, {2, 2, 0}, {4, 1, 0}}));
}

// Experts are whole or split by all tensor ranks, unless more is allowed or a size is asked for.
TEST(Space, SplitsExpertsOverSomeTensorRanksWhereItMay) {
  SearchRequest request = small_problem();
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2};
  const auto sizes = [&] {
    std::set<int> found;
    for (const auto& [tensor, expert, expert_tensor] : expert_splits(request)) found.insert(expert_tensor);
    return found;
  };
  request.constraints = closed_unless_allowed({}, {});
  EXPECT_EQ(sizes(), (std::set<int>{0, 1}));
  EXPECT_NE(text_of(held_fields(request)).find("left out unless --allow expert_tensor: expert_tensor above 1 but all"),
            std::string::npos)
      << text_of(held_fields(request));
  request.constraints = closed_unless_allowed({"expert_tensor"}, {});
  EXPECT_EQ(sizes(), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(text_of(held_fields(request)).find("expert_tensor"), std::string::npos);
  request.fixed = {"expert_tensor", "tensor"};
  request.job.plan.expert_tensor = 2, request.job.plan.tensor = 4;
  request.constraints = closed_unless_allowed({}, request.fixed);
  EXPECT_EQ(expert_splits(request), (std::set<std::tuple<int, int, int>>{{4, 2, 2}}));
}

// Of spread experts on GPUs alone, and what the stack does by itself is not tried twice.
TEST(Space, TriesDispatchesWhereExpertsAreSpread) {
  using program::ExpertDispatch;
  const auto tried = [](const SearchRequest& request, bool spread) {
    std::set<ExpertDispatch> found;
    const Space space(request);
    for (const program::Plan& split : space.splits()) {
      if ((split.expert > 1) == spread) found.insert(split.expert_dispatch);
    }
    return found;
  };
  using Ways = std::set<ExpertDispatch>;
  SearchRequest request = small_problem();
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2};
  EXPECT_EQ(tried(request, false), Ways{ExpertDispatch::kStack});
  EXPECT_EQ(tried(request, true), (Ways{ExpertDispatch::kStack, ExpertDispatch::kDeepEp, ExpertDispatch::kHybrid}));
  request.job.plan.stack = "megatron-bridge-flex";
  EXPECT_EQ(tried(request, true), (Ways{ExpertDispatch::kStack, ExpertDispatch::kAllToAll, ExpertDispatch::kDeepEp}));
  request.constraints = closed_unless_allowed({}, {});
  EXPECT_EQ(tried(request, true), Ways{ExpertDispatch::kStack});
  EXPECT_NE(text_of(held_fields(request)).find("unless --allow expert_dispatch: expert_dispatch stack"),
            std::string::npos);
  request.constraints.clear();
  request.cluster = hardware::load_cluster("generic-cpu:1");
  EXPECT_EQ(tried(request, true), Ways{ExpertDispatch::kStack});
}

TEST(Space, TriesParametersInEightBitsWhereProductsReadThem) {
  using program::Fp8Gather;
  using Ways = std::set<Fp8Gather>;
  const auto tried = [](const SearchRequest& request) {
    Ways found;
    for (const Member& member : enumerate(request)) {
      found.insert(member.plan.fp8_parameter_gather);
      const bool shares = member.plan.zero_stage == 1 || member.plan.zero_stage == 2;
      EXPECT_TRUE(shares || member.plan.fp8_parameter_gather != Fp8Gather::kOn) << program::summary(member.plan);
    }
    return found;
  };
  SearchRequest request = small_problem();
  EXPECT_EQ(tried(request), Ways{Fp8Gather::kStack});
  request.job.plan.fp8 = program::Fp8::kCurrent;
  EXPECT_EQ(tried(request), (Ways{Fp8Gather::kStack, Fp8Gather::kOn}));
  request.job.plan.stack = "megatron-bridge";
  EXPECT_EQ(tried(request), (Ways{Fp8Gather::kStack, Fp8Gather::kOff}));
  request.constraints = closed_unless_allowed({}, {});
  EXPECT_EQ(tried(request), Ways{Fp8Gather::kStack});
  EXPECT_NE(text_of(held_fields(request)).find("unless --allow fp8_parameter_gather: fp8_parameter_gather stack"),
            std::string::npos);
}

// What the space leaves out: on NVLink, over nodes and in a rack, of many small experts and of few large ones.
TEST(Space, WholeDroplessExpertsAreNeverSlower) {
  int compared = 0;
  for (const auto& [name, layers] : {std::pair{"mixtral-8x7b", 2}, {"qwen3-30b-a3b", 2}, {"deepseek-v3", 5}}) {
    for (const char* machines : {"dgx-h100-80gb:4", "dgx1-v100-16gb:4", "gb200-nvl72:8"}) {
      const hardware::Cluster cluster = hardware::load_cluster(machines);
      program::Job job;
      job.model = models::load_model(name);
      job.model.layers = layers;
      job.training.sequence = 4096;
      job.training.global_batch = 128;
      for (const int tensor : {2, 4}) {
        for (const int expert : {1, 2, 4}) {
          for (const bool sequence_parallel : {false, true}) {
            job.plan = {};
            job.plan.tensor = tensor, job.plan.data = 32 / tensor, job.plan.expert = expert;
            job.plan.sequence_parallel = sequence_parallel;
            job.plan.zero_stage = 1;
            job.plan.precision = program::DType::kFp16;
            const auto iteration = [&] {
              return simulator::iteration_ps(simulator::prepared(job, cluster), {}).value_or_throw();
            };
            const auto split = static_cast<double>(iteration());
            job.plan.expert_tensor = 1, job.plan.expert *= tensor;
            if (job.model.experts->count % job.plan.expert != 0) continue;
            EXPECT_LE(static_cast<double>(iteration()), split * 1.001)
                << program::summary(job.plan) << name << machines;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 80);
}

TEST(Space, TriesBothWaysToExchangeKeysUnlessOneIsAskedFor) {
  SearchRequest request = small_problem();
  request.job.plan.context = 2;
  request.fixed = {"context"};
  const auto methods = [&] {
    std::set<program::ContextMethod> found;
    for (const Member& member : enumerate(request)) found.insert(member.plan.context_method);
    return found.size();
  };
  EXPECT_EQ(methods(), 2u);
  request.fixed.insert("context_method");
  EXPECT_EQ(methods(), 1u);
}

// No two plans of the space are the same: a plan is counted once.
TEST(Space, NoPlanIsThereTwice) {
  std::mt19937 random(31);
  for (int i = 0; i < 20; ++i) {
    const SearchRequest request = random_problem(random);
    std::set<std::string> seen;
    for (const Member& member : enumerate(request)) {
      std::string text = member.balanced ? "balanced" : "";
      for (const std::string& field : program::plan_fields()) text += " " + text_of(member.plan, field);
      EXPECT_TRUE(seen.insert(text).second) << text;
    }
  }
}

// All ranks on one node, where no order of the dimensions differs from another: offload of either state, compression.
TEST(Space, OpensPlacementOffloadCompressionAndMixedRecomputation) {
  SearchRequest request = small_problem();
  request.job.plan.tensor = request.job.plan.pipeline = 2;
  request.fixed = {"tensor", "pipeline", "micro_batch"};
  std::set<std::string> placements, states;
  std::set<std::vector<program::Recompute>> kept;
  bool balanced = false;
  for (const Member& member : enumerate(request)) {
    placements.insert(member.plan.placement);
    states.insert(text_of(member.plan, "offload.optimizer") + " " + text_of(member.plan, "offload.activations") + " " +
                  text_of(member.plan, "compression"));
    kept.insert(member.plan.stage_recompute);
    balanced |= member.balanced;
    EXPECT_TRUE(member.plan.compression == program::Compression::kNone || member.plan.zero_stage == 0);
  }
  EXPECT_EQ(placements.size(), 1u);
  EXPECT_EQ(states.size(), 8u);
  // Nowhere; the first of two stages, and the first two of four chunks, by three pairs of ways.
  EXPECT_EQ(kept.size(), 1u + 3u + 3u);
  EXPECT_TRUE(balanced);
}

TEST(Space, FieldsHaveTheValuesThatPlansTake) {
  const SearchRequest request = small_problem();
  std::map<std::string, std::set<std::string>> taken;
  for (const Member& member : enumerate(request)) {
    for (const std::string& field : program::plan_fields()) taken[field].insert(text_of(member.plan, field));
  }
  for (const auto& [field, values] : fields_of(request)) {
    EXPECT_EQ(std::set<std::string>(values.begin(), values.end()), taken[field]) << field;
  }
}

// Every plan that splits the tokens keeps the ranks: tensor x context x pipeline x data.
TEST(Space, EveryPlanUsesAllRanks) {
  SearchRequest request = small_problem();
  request.job.training.sequence = 16'384;
  for (const Member& member : enumerate(request)) EXPECT_EQ(member.plan.ranks(), ranks_of(request));
}

// Pairs of passes need virtual stages, or no pipeline; layers that cannot be cut evenly are cut as evenly as they can.
TEST(Space, OverlapsExpertsWhereTheyAreSpreadAndPassesCanRunInPairs) {
  SearchRequest request = small_problem();
  request.job.model.layers = 5;
  request.job.model.linear_bias = request.job.model.qkv_bias = false;
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true};
  const Space space(request);
  std::set<std::pair<int, int>> found;
  for (const program::Plan& split : space.splits()) {
    EXPECT_EQ(space.may_overlap_expert(split), split.expert > 1);
    for (const PlacementChoice& layout : space.layouts(split)) {
      for (const ScheduleChoice& shape : space.shapes(split, layout)) {
        if (!shape.overlap_expert) continue;
        EXPECT_GT(split.expert, 1);
        found.emplace(split.pipeline, shape.virtual_stages);
        for (const RecomputeChoice& choice : space.recompute_choices(split, shape)) {
          EXPECT_NE(choice.recompute, program::Recompute::kFull);
          program::Job job = request.job;
          job.plan = with(with(with(split, layout), shape), choice);
          const auto no = program::check(job);
          EXPECT_FALSE(no && no->rule.starts_with("overlap")) << no->reason;
        }
      }
    }
  }
  EXPECT_EQ(found, (std::set<std::pair<int, int>>{{1, 1}, {2, 2}}));
}

// Layers that cannot be cut evenly: there pairs have shapes of their own, which are not to replace what was asked for.
TEST(Space, PairsTakeNoOtherScheduleThanTheOneThatIsNamed) {
  SearchRequest request = small_problem();
  request.job.model.layers = 5;
  request.job.model.linear_bias = request.job.model.qkv_bias = false;
  request.job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true};
  request.fixed = {"schedule", "overlap.expert", "pipeline"};
  request.job.plan.pipeline = 2;
  request.job.plan.overlap.expert = true;
  for (const program::Schedule schedule : {program::Schedule::kInterleaved, program::Schedule::kDualPipeV}) {
    request.job.plan.schedule = schedule;
    EXPECT_EQ(schedules(request), (std::map<program::Schedule, std::set<int>>{{schedule, {2}}}));
  }
}

}  // namespace
}  // namespace trivium::planner
