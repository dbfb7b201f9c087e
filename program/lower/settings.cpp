#include "program/lower/settings.h"

#include <numeric>

#include "models/model.h"
#include "program/ir/fp8_layout.h"
#include "program/lower/adapters.h"
#include "program/lower/chunk_shape.h"
#include "program/lower/layout.h"
#include "program/lower/parameter_gather.h"
#include "program/lower/sharding.h"

namespace trivium::program {
namespace {

std::array<Storage, kSpaces> storage_by_space(const Offload& offload) {
  std::array<Storage, kSpaces> storage{};
  const auto put = [&](Space space, Storage where) { storage[static_cast<std::size_t>(space)] = where; };
  put(Space::kOffloadedState, offload.optimizer);
  put(Space::kOffloadedGradient, offload.gradients);
  put(Space::kOffloadedActivation, offload.activations);
  put(Space::kOffloadedParameter, offload.parameters);
  return storage;
}

std::int64_t sent_bytes_per_sample(Job job) {
  job.plan.micro_batch = 1;
  const ChunkShape shape(job);
  return shape.own_tokens * shape.hidden * size_of(shape.type);
}

// The number in its own type; of frozen ones also one of the two casts that the Program keeps.
std::int64_t spared_of_cast(const Job& job, const StackTraits& stack) {
  const std::int64_t wide = size_of(job.plan.precision);
  if (job.training.lora.used()) return stack.frozen_in_8_bits ? wide + size_of(DType::kUint8) : 0;
  return keeps_parameters_in_8_bits(job.plan, stack) ? wide : 0;
}

void set_rotary(Settings& s, const models::Model& model) {
  s.rotary = {models::rotary_frequencies(model), model.rotary.amplitude};
  s.window_rotary = s.rotary;
  if (model.window && model.window->rotary) {
    const models::Rotary& rotary = *model.window->rotary;
    s.window_rotary = {models::rotary_frequencies(model, rotary), rotary.amplitude};
  }
}

Routing routing_of(const models::Experts& experts) {
  Routing r;
  r.sigmoid = experts.scores == models::Scores::kSigmoid;
  r.normalised = experts.normalised && experts.top_k > 1;  // a single choice's share would teach the router nothing
  r.dropless = experts.dropless;
  r.groups = experts.groups, r.top_groups = experts.top_groups, r.group_best = experts.group_best;
  r.scale = experts.scale;
  r.balance_loss = experts.balance_loss;
  return r;
}

}  // namespace

std::int64_t Batch::first_sample(std::int64_t number, int data) const {
  if (micro_batch.size() == 1) return (number * replicas + data) * micro_batch.front();
  const auto sum = [&](auto end) { return std::accumulate(micro_batch.begin(), end, std::int64_t{0}); };
  return number * sum(micro_batch.end()) + sum(micro_batch.begin() + data);
}

Settings settings_of(const Job& job, const StackTraits& stack, const Settings* other) {
  const Plan& plan = job.plan;
  Settings s;
  s.precision = plan.precision;
  s.reduce_dtype = plan.reduce_dtype;
  s.moments = plan.moment_dtype;
  s.storage = storage_by_space(plan.offload);
  s.stage_nodes = plan.stage_nodes;
  s.context_method = plan.context_method;
  s.batch.sequence = job.training.sequence;
  s.batch.samples = job.training.global_batch;
  s.batch.replicas = plan.data;
  s.batch.micro_batch = plan.replica_micro_batch;
  if (s.batch.micro_batch.empty()) s.batch.micro_batch = {plan.micro_batch};
  s.dropout = job.training.dropout;
  s.seed = job.training.seed;
  s.documents = job.training.documents;
  s.optimizer = job.training.optimizer;
  s.loss_scaling = job.training.loss_scaling;
  s.scales_loss = plan.precision == DType::kFp16;
  s.vocabulary = job.model.vocab;
  s.padded_vocabulary = padded_vocabulary(job);
  if (other != nullptr) {
    s.rotary = other->rotary;
    s.window_rotary = other->window_rotary;
  } else {
    set_rotary(s, job.model);
  }
  if (job.model.experts) s.routing = routing_of(*job.model.experts);
  s.shards_parameters = plan.zero_stage == 3;
  s.gathers_first = Sharding(job, stack).gathers_first;
  s.compresses = plan.compression != Compression::kNone;
  s.frozen = job.training.lora.used();
  s.spared_of_cast = spared_of_cast(job, stack);
  s.gathers_in_8_bits = !s.frozen && gathers_in_8_bits(plan, stack);
  s.sent_bytes_per_sample = sent_bytes_per_sample(job);
  s.model_flops_per_token = flops_per_token(job).model;
  return s;
}

}  // namespace trivium::program
