#include "tests/fidelity/plans.h"

#include "base/error.h"
#include "program/plan/job_json.h"

namespace trivium::fidelity {
namespace {

constexpr const char* kSmall = "4 layers of 64";
constexpr const char* kMiddle = "4 layers of 128";
constexpr const char* kLarge = "6 layers of 192";

models::Model model_of(const std::string& name) {
  constexpr std::int64_t kHeadDim = 32, kVocabulary = 256, kSequence = 128;
  models::Model model;
  model.name = name;
  model.layers = name == kLarge ? 6 : 4;
  model.hidden = name == kSmall ? 64 : name == kMiddle ? 128 : 192;
  model.head_dim = name == kSmall ? kHeadDim / 2 : kHeadDim;
  model.heads = model.kv_heads = model.hidden / model.head_dim;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = kVocabulary;
  model.max_sequence = kSequence;
  return model;
}

}  // namespace

std::vector<Case> plans() {
  return {{kSmall, {{"micro_batch", "4"}}},
          {kSmall, {{"recompute", "full"}}},
          {kSmall, {{"pipeline", "2"}}},
          {kSmall, {{"data", "2"}, {"micro_batch", "2"}}},
          {kSmall, {{"tensor", "2"}, {"pipeline", "2"}}},
          {kSmall, {{"data", "4"}, {"zero_stage", "3"}}},
          {kSmall, {{"tensor", "2"}, {"pipeline", "2"}, {"data", "2"}}},
          {kMiddle, {{"micro_batch", "2"}}},
          {kMiddle, {{"tensor", "2"}, {"sequence_parallel", "true"}}},
          {kMiddle, {{"context", "2"}, {"attention", "flash"}}},
          {kMiddle, {{"data", "2"}, {"zero_stage", "1"}, {"micro_batch", "4"}}},
          {kMiddle, {{"pipeline", "4"}}},
          {kMiddle, {{"tensor", "4"}}},
          {kMiddle, {{"data", "8"}}},
          {kLarge, {{"recompute", "selective"}}},
          {kLarge, {{"tensor", "2"}, {"micro_batch", "4"}}},
          {kLarge, {{"pipeline", "2"}, {"virtual_stages", "3"}, {"schedule", "interleaved"}}},
          {kLarge, {{"pipeline", "2"}, {"data", "2"}, {"micro_batch", "2"}}},
          {kLarge, {{"context", "2"}, {"data", "2"}, {"attention", "flash"}}},
          {kLarge, {{"tensor", "2"}, {"data", "4"}, {"zero_stage", "1"}, {"recompute", "full"}}}};
}

std::vector<Case> lessons() {
  return {{kSmall, {{"data", "2"}, {"zero_stage", "1"}}},
          {kSmall, {{"context", "2"}, {"attention", "flash"}, {"micro_batch", "2"}}},
          {kMiddle, {{"tensor", "2"}, {"recompute", "selective"}}},
          {kMiddle, {{"micro_batch", "4"}, {"recompute", "full"}}},
          {kLarge, {{"data", "2"}, {"micro_batch", "2"}}},
          {kLarge, {{"tensor", "2"}, {"sequence_parallel", "true"}}}};
}

program::Job job_of(const Case& one) {
  program::Job job;
  job.model = model_of(one.model);
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 8;
  job.plan.precision = program::DType::kFp32;
  for (const auto& [field, text] : one.fields) program::set_field(job.plan, job.training, field, text);
  return job;
}

}  // namespace trivium::fidelity
