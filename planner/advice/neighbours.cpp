#include "planner/advice/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "planner/bound/evaluate.h"
#include "planner/search/parallel.h"
#include "program/plan/fields.h"

namespace trivium::planner {
namespace {

using program::ContextMethod;
using program::Plan;
using program::Recompute;
using simulator::Part;

class Neighbourhood {
 public:
  explicit Neighbourhood(const program::Job& job) : job_(job), here_(job.plan) {}

  std::vector<Neighbour> all() {
    splits();
    groups();
    micro_batches();
    interleaving();
    split_backward();
    recomputation();
    switches();
    return std::move(found_);
  }

 private:
  void add(std::string change, Part against, const Plan& plan) {
    program::Job job = job_;
    job.plan = plan;
    if (!program::check(job)) found_.push_back({std::move(change), against, plan});
  }

  // `field` halves or doubles and data takes the other half.
  void split(const char* name, int Plan::*field, Part less, Part more) {
    const auto change = [&](int value, int data, Part against) {
      Plan plan = here_;
      plan.*field = value;
      plan.data = data;
      program::settle_schedule(plan);
      if (plan.tensor == 1) plan.sequence_parallel = false;
      if (plan.data == 1) plan.zero_stage = 0;
      if (plan.zero_stage == 0 || (plan.shard_group > 0 && plan.data % plan.shard_group != 0)) plan.shard_group = 0;
      add(fmt::format("{} {} to {}, data {} to {}", name, here_.*field, value, here_.data, data), against, plan);
    };
    if (here_.*field % 2 == 0) change(here_.*field / 2, here_.data * 2, less);
    if (here_.data % 2 == 0) change(here_.*field * 2, here_.data / 2, more);
  }

  void splits() {
    if (!here_.stage_layers.empty() || !here_.stage_recompute.empty()) return;  // written for this pipeline alone
    if (!here_.replica_micro_batch.empty()) return;                             // or for these replicas
    split("tensor", &Plan::tensor, Part::kExposedTensor, Part::kBubble);
    split("pipeline", &Plan::pipeline, Part::kBubble, Part::kExposedData);
    if (here_.context > 1) split("context", &Plan::context, Part::kExposedContext, Part::kExposedData);
  }

  void groups() {
    if (here_.context > 1) {
      Plan plan = here_;
      const bool ring = here_.context_method == ContextMethod::kRing;
      plan.context_method = ring ? ContextMethod::kAllToAll : ContextMethod::kRing;
      plan.context_heads = 1;
      add(fmt::format("context_method {} to {}", name_of(here_.context_method), name_of(plan.context_method)),
          Part::kExposedContext, plan);
    }
    if (!job_.model.experts) return;
    const auto change = [&](int value, Part against) {
      Plan plan = here_;
      plan.expert = value;
      add(fmt::format("expert {} to {}", here_.expert, value), against, plan);
    };
    change(here_.expert * 2, Part::kExposedData);
    if (here_.expert % 2 == 0) change(here_.expert / 2, Part::kExposedExpert);
    if (here_.expert > 1) {
      Plan plan = here_;
      plan.overlap.expert = !here_.overlap.expert;
      add(plan.overlap.expert ? "overlap.expert on" : "overlap.expert off", Part::kExposedExpert, plan);
    }
    if (here_.tensor > 1) other_expert_tensor();
  }

  // Experts over the same replicas, whole or split by all tensor ranks where they are not.
  void other_expert_tensor() {
    for (const int part : {1, 0}) {
      Plan plan = here_;
      plan.expert_tensor = part;
      if (program::expert_tensor_ranks(plan) == program::expert_tensor_ranks(here_)) continue;
      plan.expert = program::expert_replicas(here_) * program::tensor_parts_of_experts(plan);
      add(fmt::format("expert_tensor {} to {} (expert {})", here_.expert_tensor, plan.expert_tensor, plan.expert),
          Part::kExposedTensor, plan);
    }
  }

  // The sizes of all replicas twice or half as large.
  void replica_micro_batches() {
    const auto change = [&](auto size, Part against) {
      Plan plan = here_;
      std::transform(plan.replica_micro_batch.begin(), plan.replica_micro_batch.end(), plan.replica_micro_batch.begin(),
                     size);
      add(fmt::format("replica_micro_batch {} to {}", sizes_text(here_), sizes_text(plan)), against, plan);
    };
    const auto& sizes = here_.replica_micro_batch;
    change([](int size) { return 2 * size; }, Part::kCompute);
    const bool even = std::all_of(sizes.begin(), sizes.end(), [](int size) { return size % 2 == 0; });
    if (even) change([](int size) { return size / 2; }, Part::kBubble);
  }

  static std::string sizes_text(const Plan& plan) {
    return fmt::format("{}", fmt::join(program::micro_batch_sizes(plan), " and "));
  }

  void micro_batches() {
    if (!here_.replica_micro_batch.empty()) return replica_micro_batches();
    const auto change = [&](int value, Part against) {
      Plan plan = here_;
      plan.micro_batch = value;
      add(fmt::format("micro_batch {} to {}", here_.micro_batch, value), against, plan);
    };
    change(here_.micro_batch * 2, Part::kCompute);
    if (here_.micro_batch % 2 == 0) change(here_.micro_batch / 2, Part::kBubble);
  }

  // The next counts that cut the layers evenly.
  void interleaving() {
    if (here_.pipeline == 1 || !here_.stage_layers.empty() || !here_.stage_recompute.empty()) return;
    const auto change = [&](int value, Part against) {
      Plan plan = here_;
      plan.virtual_stages = value;
      program::settle_schedule(plan);
      add(fmt::format("virtual_stages {} to {}", here_.virtual_stages, value), against, plan);
    };
    const std::int64_t most = job_.model.layers / here_.pipeline;
    const auto even = [&](std::int64_t count) {
      return job_.model.layers % (count * here_.pipeline) == 0 || count == 1;
    };
    for (int count = here_.virtual_stages + 1; count <= most; ++count) {
      if (!even(count)) continue;
      change(count, Part::kBubble);
      break;
    }
    for (int count = here_.virtual_stages - 1; count >= 1; --count) {
      if (!even(count)) continue;
      change(count, Part::kExposedPipeline);
      break;
    }
  }

  void split_backward() {
    if (here_.pipeline == 1 || here_.virtual_stages > 1) return;
    const bool split = program::traits_of(here_.schedule).splits_backward;
    Plan plan = here_;
    plan.schedule = program::usual_schedule(1, !split);
    add(fmt::format("schedule {} to {}", name_of(here_.schedule), name_of(plan.schedule)), Part::kBubble, plan);
  }

  void recomputation() {
    if (!here_.stage_recompute.empty()) return;
    for (const Recompute how : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      if (how == here_.recompute) continue;
      Plan plan = here_;
      plan.recompute = how;
      program::settle_recomputation(plan);
      add(fmt::format("recompute {} to {}", name_of(here_.recompute), name_of(how)), Part::kRecompute, plan);
    }
  }

  void switches() {
    const auto change = [&](const std::string& text, Part against, auto edit) {
      Plan plan = here_;
      edit(plan);
      add(text, against, plan);
    };
    if (here_.tensor > 1) {
      change(here_.sequence_parallel ? "sequence_parallel off" : "sequence_parallel on", Part::kExposedTensor,
             [](Plan& plan) { plan.sequence_parallel = !plan.sequence_parallel; });
    }
    if (here_.data == 1) return;
    for (const int stage : {here_.zero_stage - 1, here_.zero_stage + 1}) {
      if (stage < 0 || stage > 3) continue;
      change(fmt::format("zero_stage {} to {}", here_.zero_stage, stage), Part::kExposedData,
             [stage](Plan& plan) { plan.zero_stage = stage; });
    }
    if (here_.zero_stage > 0) {
      change(here_.overlap.parameter_gather ? "overlap.parameter_gather off" : "overlap.parameter_gather on",
             Part::kExposedData, [](Plan& plan) { plan.overlap.parameter_gather = !plan.overlap.parameter_gather; });
    }
    change(here_.overlap.gradient_reduction ? "overlap.gradient_reduction off" : "overlap.gradient_reduction on",
           Part::kExposedData, [](Plan& plan) { plan.overlap.gradient_reduction = !plan.overlap.gradient_reduction; });
  }

  const program::Job& job_;
  const Plan& here_;
  std::vector<Neighbour> found_;
};

}  // namespace

std::vector<Neighbour> neighbours(const program::Job& job) { return Neighbourhood(job).all(); }

std::vector<Tried> try_neighbours(const program::Job& job, const hardware::Cluster& cluster,
                                  const std::stop_token& stop) {
  std::vector<Tried> tried;
  for (Neighbour& neighbour : neighbours(job)) tried.push_back({std::move(neighbour), std::int64_t{0}});
  SearchRequest request;
  request.job = job;
  request.cluster = cluster;
  const hardware::Cluster roomy = with_fit_probability(std::move(request), kFitProbability).cluster;
  const int threads = threads_for(0);
  run_parallel(
      tried.size(), threads, stop,
      [&](std::size_t i) {
        program::Job other = job;
        other.plan = tried[i].neighbour.plan;
        if (auto no = refusal(other, cluster, 0)) {
          tried[i].outcome = std::move(*no);
        } else {
          tried[i].outcome = iteration(other, cluster, true, stop);
          tried[i].narrow = tried[i].fits() && out_of_memory(other, roomy);
        }
      },
      [](std::size_t) {});
  if (stop.stop_requested()) tried.clear();
  return tried;
}

}  // namespace trivium::planner
