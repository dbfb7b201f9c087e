#include "tests/proofs/real_jobs.h"

#include <algorithm>
#include <initializer_list>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/space/usual_bounds.h"
#include "simulator/placement/defaults.h"
#include "tests/support/one_of.h"

namespace trivium::planner {
namespace {

using support::one_of;

bool one_in(std::mt19937& random, int n) { return std::uniform_int_distribution<int>(1, n)(random) == 1; }

}  // namespace

SearchRequest real_job(std::mt19937& random) {
  constexpr std::int64_t kLong = 16'384, kUsual = 4'096;
  SearchRequest request;
  program::Job& job = request.job;
  job.model = models::load_model(one_of<const char*>(
      random, {"gpt2-1.5b", "gpt3-6.7b", "gpt3-13b", "gpt3-175b", "llama-7b", "llama2-70b", "falcon-40b", "palm-62b",
               "megatron-145.6b", "megatron-1008.0b", "mixtral-8x7b", "switch-base-8", "switch-base-128"}));
  std::mt19937 apart = random;
  if (job.model.positions == models::Positions::kRotary && one_in(apart, 3)) job.model.mtp.emplace();
  request.cluster = hardware::load_cluster(
      one_of<const char*>(random, {"dgx-a100-80gb:1", "dgx-a100-80gb:3", "dgx-a100-80gb:4", "dgx-a100-80gb:16",
                                   "dgx-h100-80gb:8", "dgx-h100-80gb:16", "h200:4", "azure-ndm-a100-80gb:8",
                                   "dgx1-v100-32gb:8", "dgx2-v100-32gb:2", "a100-pcie-80gb:4", "selene-dgx-a100-80gb:8",
                                   "dgx-a100-80gb:2+dgx-h100-80gb:2", "dgx-a100-80gb:4+dgx1-v100-32gb:4"}));
  job.training.sequence = std::min(job.model.max_sequence, kUsual);
  if (one_in(random, 6)) job.training.sequence = job.model.max_sequence = kLong;
  job.training.global_batch = std::int64_t{request.cluster.devices()} * one_of(random, {1, 2, 4, 8});
  job.plan.precision = simulator::best_precision(request.cluster);
  std::vector<std::string> allowed;
  for (const char* feature : {"compression", "overlap.tensor", "offload"}) {
    if (one_in(random, 3)) allowed.emplace_back(feature);
  }
  if (job.model.experts && one_in(random, 2)) allowed.emplace_back("overlap.expert");
  if (job.model.experts && one_in(apart, 2)) allowed.emplace_back("expert_tensor");
  request.constraints = usual_bounds(request.cluster, job.plan.stack, allowed, {});
  request.ignore_memory = !one_in(random, 3);
  return request;
}

SearchRequest real_sharded_mixture(std::mt19937& random) {
  SearchRequest request;
  program::Job& job = request.job;
  job.model = models::load_model(
      one_of<const char*>(random, {"mixtral-8x7b", "deepseek-v2-lite", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b",
                                   "llama4-scout", "llama4-maverick", "switch-base-8", "switch-base-128"}));
  if (one_in(random, 2)) job.model.layers = std::min<std::int64_t>(job.model.layers, one_of(random, {4, 6, 9, 12}));
  request.cluster = hardware::load_cluster(one_of<const char*>(
      random, {"dgx-a100-80gb:1", "dgx-a100-80gb:3", "dgx-a100-80gb:4", "dgx-h100-80gb:8", "h200:4",
               "azure-ndm-a100-80gb:8", "dgx2-v100-32gb:2", "a100-pcie-80gb:4", "dgx-a100-80gb:2+dgx-h100-80gb:2"}));
  job.training.sequence = std::min<std::int64_t>(job.model.max_sequence, one_of(random, {1'024, 4'096}));
  job.training.global_batch = std::int64_t{request.cluster.devices()} * one_of(random, {1, 2, 4, 8});
  job.plan.precision = simulator::best_precision(request.cluster);
  job.plan.stack = one_of<const char*>(
      random, {"trivium", "torchtitan-fsdp2", "torchtitan-fsdp2-eager", "megatron-core", "megatron-deepspeed"});
  job.plan.zero_stage = one_of(random, {2, 3, 3});
  request.fixed = {"zero_stage"};
  std::vector<std::string> allowed;
  for (const char* feature : {"overlap.tensor", "offload", "expert_tensor", "expert_dispatch"}) {
    if (one_in(random, 4)) allowed.emplace_back(feature);
  }
  request.constraints = usual_bounds(request.cluster, job.plan.stack, allowed, {});
  request.constraints.push_back(parse_constraint(Constraint::Kind::kMin, "expert=2"));
  request.constraints.push_back(parse_constraint(Constraint::Kind::kMin, "data=2"));
  if (one_in(random, 2)) request.constraints.push_back(parse_constraint(Constraint::Kind::kMax, "pipeline=1"));
  if (job.plan.zero_stage == 3 && one_in(random, 8)) job.plan.offload.parameters = program::Storage::kHost;
  request.ignore_memory = !one_in(random, 3);
  return request;
}

SearchRequest real_pairs_in_v(std::mt19937& random) {
  SearchRequest request;
  program::Job& job = request.job;
  job.model = models::load_model(one_of<const char*>(
      random, {"mixtral-8x7b", "deepseek-v2-lite", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b", "switch-base-8"}));
  if (one_in(random, 2)) job.model.layers = std::min<std::int64_t>(job.model.layers, one_of(random, {8, 9, 12, 16}));
  request.cluster = hardware::load_cluster(one_of<const char*>(
      random, {"dgx-a100-80gb:1", "dgx-a100-80gb:4", "dgx-h100-80gb:8", "h800-hgx:16", "azure-ndm-a100-80gb:8"}));
  job.training.sequence = std::min<std::int64_t>(job.model.max_sequence, one_of(random, {1'024, 4'096}));
  job.training.global_batch = std::int64_t{request.cluster.devices()} * one_of(random, {2, 4, 8, 16});
  job.plan.precision = simulator::best_precision(request.cluster);
  job.plan.stack = one_of<const char*>(random, {"trivium", "hai-llm"});
  job.plan.schedule = program::Schedule::kDualPipeV;
  job.plan.virtual_stages = 2;
  job.plan.overlap.expert = true;
  request.fixed = {"schedule", "virtual_stages", "overlap.expert"};
  std::vector<std::string> allowed;
  for (const char* feature : {"overlap.tensor", "expert_tensor", "expert_dispatch", "recompute_modules"}) {
    if (one_in(random, 4)) allowed.emplace_back(feature);
  }
  request.constraints = usual_bounds(request.cluster, job.plan.stack, allowed, request.fixed);
  request.constraints.push_back(parse_constraint(Constraint::Kind::kMin, "expert=2"));
  request.constraints.push_back(parse_constraint(Constraint::Kind::kMin, "pipeline=2"));
  request.ignore_memory = !one_in(random, 3);
  return request;
}

}  // namespace trivium::planner
