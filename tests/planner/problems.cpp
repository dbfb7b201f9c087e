#include "tests/planner/problems.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "hardware_profiles/load.h"
#include "tests/support/one_of.h"

namespace trivium::planner {
namespace {

using support::one_of;

void resize(models::Model& model, std::int64_t layers, std::int64_t heads) {
  model.layers = layers;
  model.heads = model.kv_heads = heads;
  model.head_dim = 64;
  model.hidden = heads * model.head_dim;
  model.ffn_hidden = 4 * model.hidden;
}

}  // namespace

SearchRequest small_problem() {
  SearchRequest request;
  request.job.model.name = "small";
  resize(request.job.model, 4, 4);
  request.job.model.vocab = 1000;
  request.job.model.max_sequence = 512;
  request.job.training.sequence = 256;
  request.job.training.global_batch = 8;
  request.cluster = hardware::load_cluster("dgx-a100-80gb:1");
  return request;
}

SearchRequest random_problem(std::mt19937& random) {
  SearchRequest request = small_problem();
  resize(request.job.model, one_of<std::int64_t>(random, {2, 4, 6}), one_of<std::int64_t>(random, {2, 4, 6}));
  request.job.training.global_batch = one_of<std::int64_t>(random, {6, 8, 12, 16});
  request.job.plan.overlap.gradient_reduction = one_of(random, {true, false});
  request.cluster = hardware::load_cluster(one_of<const char*>(
      random, {"dgx-a100-80gb:1", "dgx1-v100-32gb:1", "generic-cpu:1", "dgx-a100-80gb:1+dgx-h100-80gb:1"}));
  const bool mixed = !request.cluster.homogeneous();
  for (auto& group : request.cluster.groups) {
    group.node.devices = one_of(random, {2, 3, 4});
    if (!mixed) group.count = one_of(random, {1, 2});
    // Weights and frames of these models take 20 to 400 MiB: some of the plans do not fit in what is left here.
    if (one_of(random, {true, false}))
      group.node.device.memory = group.node.device.reserved + base::Bytes(80 * base::kMiB);
  }
  if (mixed && one_of(random, {true, false})) {
    request.cluster.groups.back().site = 1;
    const base::BytesPerSecond bandwidth(one_of(random, {1e8, 5e9}));
    request.cluster.links.push_back({0, 1, {bandwidth, base::Seconds(one_of(random, {20e-6, 1e-3})), 1}, "random"});
  }
  if (one_of(random, {true, false, false, false})) {
    request.job.model.layers = one_of<std::int64_t>(random, {3, 4, 5});
    request.job.model.experts = models::Experts{
        .count = 4, .every = one_of<std::int64_t>(random, {1, 2}), .dropless = one_of(random, {true, false})};
  }
  request.job.plan.precision = one_of(random, {program::DType::kFp32, program::DType::kBf16});  // refused on V100
  request.best = one_of(random, {1, 3, 10});
  request.ignore_memory = one_of(random, {false, false, true});
  if (one_of(random, {true, false, false})) {
    request.fixed.insert("tensor");
    request.job.plan.tensor = one_of(random, {1, 2});
  }
  // Every field of the space is open in some of the problems, and few of them in one: all its plans are to be
  // simulated.
  std::vector<const char*> fields{
      "micro_batch",       "recompute",          "zero_stage",     "sequence_parallel",
      "schedule",          "placement",          "overlap.tensor", "overlap.gradient_reduction",
      "stage_layers",      "stage_recompute",    "compression",    "overlap.parameter_gather",
      "offload.optimizer", "offload.activations"};
  std::shuffle(fields.begin(), fields.end(), random);
  for (std::size_t i = one_of<std::size_t>(random, {2, 3, 4, 5}); i < fields.size(); ++i) {
    request.fixed.insert(fields[i]);
  }
  std::mt19937 apart = random;
  if (!request.job.model.experts && one_of(apart, {true, false, false})) {
    request.job.training.lora = {.rank = 8, .alpha = 16};
  } else if (one_of(apart, {true, false, false, false})) {
    request.job.training.optimizer.kind = program::Update::kMuon;
  }
  std::mt19937 aside = random;  // so that all else stays as it was
  aside.discard(1);
  if (request.job.model.experts && !request.job.model.mtp && one_of(aside, {true, false, false}) &&
      request.job.training.optimizer.kind == program::Update::kAdamW) {
    const bool attention = one_of(aside, {true, false}), mlp = !attention || one_of(aside, {true, false});
    request.job.training.lora = {
        .rank = 8, .alpha = 16, .qkv = attention, .projection = attention, .fc1 = mlp, .fc2 = mlp};
  }
  if (!request.job.model.mtp && one_of(apart, {true, false, false})) {
    request.job.training.documents = {{40, 300, 5000}, {5, 2, 1}};
  }
  if (one_of(random, {true, false, false, false, false, false})) {
    request.job.plan.offload.parameters = program::Storage::kHost;
    request.job.plan.zero_stage = 3;  // where it is not open
  }
  return request;
}

SearchRequest random_crowded_problem(std::mt19937& random) {
  SearchRequest request = random_problem(random);
  while (!request.cluster.groups.front().node.asynchronous_lanes) request = random_problem(random);
  for (auto& group : request.cluster.groups) {
    hardware::Node& node = group.node;
    node.adapters = 1;
    node.devices_per_host_link = node.devices;
    const double slower = one_of(random, {.02, .1, .5});
    node.network.bandwidth = node.network.bandwidth * slower;
    node.host_link = node.host_link * one_of(random, {.05, .2});
    if (request.cluster.homogeneous()) group.count = 2;
  }
  for (const char* field : {"offload.optimizer", "offload.activations", "schedule"}) {
    if (one_of(random, {true, false})) request.fixed.erase(field);
  }
  // Activations come and go while stages send to each other, and reductions overlap with both.
  request.fixed.insert({"overlap.gradient_reduction", "pipeline", "recompute"});
  request.job.plan.recompute = program::Recompute::kNone;
  request.job.plan.overlap.gradient_reduction = true;
  request.job.plan.pipeline = 2;
  if (request.fixed.contains("offload.activations")) request.job.plan.offload.activations = program::Storage::kHost;
  return request;
}

SearchRequest random_pair_problem(std::mt19937& random) {
  SearchRequest request = random_problem(random);
  while (!request.cluster.groups.front().node.asynchronous_lanes || !request.cluster.homogeneous()) {
    request = random_problem(random);
  }
  hardware::NodeGroup& group = request.cluster.groups.front();
  group.node.devices = one_of(random, {2, 4});
  group.count = 2;
  group.node.network.bandwidth = group.node.network.bandwidth * one_of(random, {.02, .1, 1.0});
  models::Model& model = request.job.model;
  model.layers = one_of<std::int64_t>(random, {2, 4, 5});
  model.experts = models::Experts{.count = one_of<std::int64_t>(random, {4, 8}),
                                  .top_k = 2,
                                  .dropless = one_of(random, {true, false}),
                                  .shared_hidden = one_of<std::int64_t>(random, {0, 64})};
  request.job.training.global_batch = one_of<std::int64_t>(random, {16, 32});
  for (const char* field : {"placement", "stage_recompute", "compression"}) request.fixed.insert(field);
  if (one_of(random, {true, true, false})) request.fixed.erase("schedule");
  if (one_of(random, {true, false, false, false})) {
    request.fixed.insert("overlap.expert");
    request.job.plan.overlap.expert = true;
  }
  return request;
}

}  // namespace trivium::planner
