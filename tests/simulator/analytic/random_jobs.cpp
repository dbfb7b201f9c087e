#include "tests/simulator/analytic/random_jobs.h"

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "simulator/cost/supported.h"
#include "simulator/predict/simulate.h"
#include "tests/support/one_of.h"

namespace trivium::simulator {
namespace {

using support::one_of;

models::Model random_model(std::mt19937& random) {
  models::Model model;
  model.name = "random";
  model.layers = one_of<std::int64_t>(random, {2, 3, 4, 6, 8, 12});
  model.heads = model.kv_heads = one_of<std::int64_t>(random, {2, 4, 6});
  model.head_dim = one_of<std::int64_t>(random, {32, 64, 128});
  model.hidden = model.heads * model.head_dim;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = one_of<std::int64_t>(random, {1000, 50257});
  model.max_sequence = 1024;
  model.norm = one_of(random, {models::Norm::kLayerNorm, models::Norm::kRmsNorm});
  model.positions = one_of(random, {models::Positions::kLearned, models::Positions::kRotary});
  model.activation = one_of(random, {models::Activation::kGelu, models::Activation::kSwiglu});
  model.parallel_block = one_of(random, {true, false});
  model.shared_norm = one_of(random, {true, false});
  model.tied_embeddings = one_of(random, {true, false});
  if (one_of(random, {true, false, false})) {
    model.linear_bias = model.qkv_bias = false;
    model.experts = models::Experts{
        .count = 4, .top_k = one_of<std::int64_t>(random, {1, 2}), .every = one_of<std::int64_t>(random, {1, 2, 3})};
    if (one_of(random, {true, false})) {
      model.experts->dropless = true;
      model.experts->shared_hidden = one_of<std::int64_t>(random, {0, 240});
      if (model.experts->every == 1) model.experts->dense_layers = one_of<std::int64_t>(random, {0, 1});
      model.experts->dense_hidden = 2 * model.ffn_hidden;
    }
  }
  if (one_of(random, {true, false})) {
    model.window = models::Window{.keys = one_of<std::int64_t>(random, {64, 300}),
                                  .first_layer = one_of<std::int64_t>(random, {0, 1}),
                                  .full_every = one_of<std::int64_t>(random, {0, 2, 3})};
    model.window->chunked = one_of(random, {true, false});
    const bool some_full = model.window->first_layer > 0 || model.window->full_every > 0;
    if (some_full && model.positions == models::Positions::kRotary && one_of(random, {true, false})) {
      model.window->plain_full = model.plain_head_norms = true;
      model.temperature = models::Temperature{.slope = 0.1, .run = 100};
    }
  }
  if (model.experts) model.experts->scales_input = one_of(random, {true, false, false});
  std::mt19937 apart = random;
  if (model.positions == models::Positions::kRotary && one_of(apart, {true, false, false})) {
    model.mtp = models::MultiToken{.depth = one_of<std::int64_t>(apart, {1, 2})};
  }
  return model;
}

program::Plan random_plan(std::mt19937& random) {
  program::Plan plan;
  plan.tensor = one_of(random, {1, 2, 3, 4});
  plan.context = one_of(random, {1, 1, 2, 4});
  plan.context_method = one_of(random, {program::ContextMethod::kRing, program::ContextMethod::kAllToAll});
  plan.attention = one_of(random, {program::Attention::kUnfused, program::Attention::kFlash});
  plan.pipeline = one_of(random, {1, 2, 3, 4, 6});
  plan.data = one_of(random, {1, 2, 3, 4});
  const bool both = plan.context == 4 && plan.context_method == program::ContextMethod::kRing && plan.data > 2;
  plan.context_heads = both ? 2 : 1;
  plan.micro_batch = one_of(random, {1, 2, 4});
  plan.sequence_parallel = plan.tensor > 1 && one_of(random, {true, false});
  plan.zero_stage = plan.data > 1 ? one_of(random, {0, 1, 2, 3}) : 0;
  if (plan.data == 4 && plan.zero_stage > 0) plan.shard_group = one_of(random, {0, 2});
  plan.overlap.parameter_gather = one_of(random, {true, false});
  plan.recompute =
      one_of(random, {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull});
  const program::ScheduleTraits& schedule =
      program::schedule_table()[std::uniform_int_distribution<std::size_t>(0, program::kSchedules - 1)(random)];
  plan.schedule = schedule.schedule;
  if (schedule.virtual_stages) plan.virtual_stages = one_of(random, {2, 3});
  if (schedule.chunks > 0) plan.virtual_stages = schedule.chunks;
  plan.precision = one_of(random, {program::DType::kBf16, program::DType::kFp32});
  plan.overlap.gradient_reduction = one_of(random, {true, false});
  plan.overlap.tensor = one_of(random, {true, false});
  plan.bucket_bytes = one_of<std::int64_t>(random, {0, 0, 4 << 20});
  using program::Storage;
  plan.offload.optimizer = one_of(random, {Storage::kNone, Storage::kNone, Storage::kHost});
  plan.offload.activations = one_of(random, {Storage::kNone, Storage::kNone, Storage::kHost});
  const auto stack = program::all_stacks();
  plan.stack = stack[std::uniform_int_distribution<std::size_t>(0, stack.size() - 1)(random)].name;
  return plan;
}

// The groups stand apart, with a link that is slower than the adapters or not.
void join_sites(std::mt19937& random, hardware::Cluster& cluster) {
  cluster.groups.back().site = 1;
  const base::BytesPerSecond bandwidth(one_of(random, {1e9, 12.5e9, 400e9}));
  cluster.links.push_back({0, 1, {bandwidth, base::Seconds(one_of(random, {0.0, 20e-6, 1e-3})), 0.9}, "random"});
}

hardware::Cluster random_cluster(std::mt19937& random, int ranks) {
  hardware::Cluster cluster = hardware::load_cluster(one_of<const char*>(
      random, {"dgx-a100-80gb:1", "dgx1-v100-32gb:1", "generic-cpu:1", "dgx-a100-80gb:1+dgx-h100-80gb:1"}));
  for (hardware::NodeGroup& group : cluster.groups) {
    group.node.devices = one_of(random, {2, 4, 8});
    group.count = (ranks + group.node.devices - 1) / group.node.devices;
  }
  if (!cluster.homogeneous()) {
    cluster.groups.front().count = 1;  // some stages fall on the second kind
    if (one_of(random, {true, false})) join_sites(random, cluster);
  }
  return cluster;
}

// Modules, first layers, or layers together, of what the plan recomputes.
void recompute_parts(program::Job& job, std::mt19937& random) {
  program::Plan& plan = job.plan;
  if (plan.recompute == program::Recompute::kFull) {
    plan.recompute_layers = one_of(random, {0, 0, 1, 2});
    if (plan.recompute_layers == 0) plan.recompute_group = one_of(random, {1, 2, 3, 4});
  }
  if (plan.recompute != program::Recompute::kSelective || one_of(random, {true, false})) return;
  for (int i = 0; i < program::kModules; ++i) {
    if (one_of(random, {true, false})) continue;
    plan.recompute_modules.push_back(static_cast<program::Module>(i));
    if (program::check(job)) plan.recompute_modules.pop_back();
  }
}

// What the cluster's links do not reach is left out of the plan: the draws that follow stay as they were.
bool settle_what_peers_reach(RandomJob& made) {
  for (auto no = unsupported_by(made.job, made.cluster); no; no = unsupported_by(made.job, made.cluster)) {
    program::Plan& plan = made.job.plan;
    if (no->rule == "tensor-overlap" && plan.overlap.tensor) {
      plan.overlap.tensor = false;
    } else if (no->rule == "expert-dispatch" && plan.expert_dispatch != program::ExpertDispatch::kAllToAll) {
      plan.expert_dispatch = program::ExpertDispatch::kAllToAll;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

RandomJob random_job(std::mt19937& random) {
  for (;;) {
    RandomJob made;
    made.job.model = random_model(random);
    made.job.training.sequence = one_of<std::int64_t>(random, {128, 512});
    made.job.training.global_batch = one_of<std::int64_t>(random, {12, 24, 48, 96});
    made.job.training.dropout = one_of(random, {0.0, 0.1});
    made.job.plan = random_plan(random);
    if (made.job.model.experts) {
      made.job.plan.expert = one_of(random, {1, 2, 4});
      made.job.plan.expert_tensor = one_of(random, {0, 1});
    }
    if (program::check(made.job)) continue;
    std::mt19937 apart = random;
    std::mt19937 aside = random;  // so that all else stays as it was
    using program::ExpertDispatch;
    made.job.plan.expert_dispatch = one_of(
        aside, {ExpertDispatch::kStack, ExpertDispatch::kStack, ExpertDispatch::kAllToAll, ExpertDispatch::kDeepEp});
    if (program::Plan& plan = made.job.plan;
        made.job.model.experts && plan.tensor == 4 && one_of(aside, {true, false})) {
      const program::Plan drawn = plan;
      plan.expert_tensor = 2, plan.expert = std::max(2, plan.expert);
      if (program::check(made.job)) plan = drawn;
    }
    if (one_of(apart, {true, false, false})) {
      const bool attention = one_of(apart, {true, false});
      made.job.training.lora = {.rank = 8, .alpha = 16, .fc1 = !attention, .fc2 = !attention};
      if (made.job.model.experts && one_of(aside, {true, false, false})) {
        made.job.training.lora = {.rank = 8, .alpha = 16, .qkv = false, .projection = false};
      }
      if (program::check(made.job)) made.job.training.lora = {};
    } else if (one_of(apart, {true, false, false})) {
      made.job.training.optimizer.kind = program::Update::kMuon;
      if (program::check(made.job)) made.job.training.optimizer.kind = program::Update::kAdamW;
    }
    if (one_of(apart, {true, false, false})) {
      made.job.training.documents = {{40, 300, 5000}, {5, 2, 1}};
      if (program::check(made.job)) made.job.training.documents = {};
    }
    recompute_parts(made.job, apart);
    made.cluster = random_cluster(random, made.job.plan.ranks());
    if (settle_what_peers_reach(made)) return made;
  }
}

RandomJob random_pair_job(std::mt19937& random) {
  for (;;) {
    RandomJob made = random_job(random);
    program::Plan& plan = made.job.plan;
    if (!made.job.model.experts || plan.expert == 1) continue;
    plan.overlap.expert = true;
    plan.virtual_stages = plan.pipeline > 1 ? one_of(random, {2, 3}) : 1;
    plan.schedule = program::usual_schedule(plan.virtual_stages);
    plan.zero_stage = std::min(plan.zero_stage, 1);
    if (plan.zero_stage == 0) plan.shard_group = 0;
    plan.offload.activations = program::Storage::kNone;
    if (plan.recompute == program::Recompute::kFull) plan.recompute = program::Recompute::kSelective;
    settle_full_recomputation(plan);
    if (!program::check(made.job) && settle_what_peers_reach(made)) return made;
  }
}

}  // namespace trivium::simulator
