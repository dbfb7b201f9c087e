#include "gui/model/plan_controls.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#include "base/readable.h"
#include "gui/model/display_name.h"
#include "program/plan/fields.h"

namespace trivium::gui {
namespace {

using program::Plan;

constexpr std::int64_t kWidestTensor = 64;
constexpr std::int64_t kLargestMicroBatch = 64;

std::vector<std::string> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::string> texts;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) texts.push_back(std::to_string(d));
  }
  return texts;
}

std::vector<std::string> placements() {
  std::vector<std::string> words{"context", "data", "pipeline", "tensor"};
  std::vector<std::string> orders;
  do {
    orders.push_back(words[0] + "-" + words[1] + "-" + words[2] + "-" + words[3]);
  } while (std::next_permutation(words.begin(), words.end()));
  return orders;
}

std::vector<std::string> numbers(std::int64_t from, std::int64_t to) {
  std::vector<std::string> texts;
  for (std::int64_t number = from; number <= to; ++number) texts.push_back(std::to_string(number));
  return texts;
}

int devices_of(const Scenario& scenario) { return scenario.ranks > 0 ? scenario.ranks : scenario.cluster.devices(); }

std::int64_t per_replica(const Scenario& scenario) {
  return std::max<std::int64_t>(1, scenario.file.job.training.global_batch / std::max(1, scenario.file.job.plan.data));
}

void fill_devices(Scenario& scenario) {
  Plan& plan = scenario.file.job.plan;
  const std::int64_t replica = std::int64_t{plan.tensor} * plan.context * plan.pipeline;
  if (const int devices = devices_of(scenario); replica > 0 && devices % replica == 0) {
    plan.data = static_cast<int>(devices / replica);
  }
  while (plan.micro_batch > 1 && per_replica(scenario) % plan.micro_batch != 0) --plan.micro_batch;
}

}  // namespace

const std::vector<PlanControl>& plan_controls() {
  static const std::vector<PlanControl> kKnobs = [] {
    std::vector<PlanControl> plan_controls;
    for (const program::PlanField& field : program::plan_field_table()) {
      if (!field.is_list()) plan_controls.push_back({field.name, field.title, field.help, field.group});
    }
    std::stable_sort(plan_controls.begin(), plan_controls.end(),
                     [](const PlanControl& a, const PlanControl& b) { return a.group < b.group; });
    return plan_controls;
  }();
  return kKnobs;
}

std::string shown(const std::string& field, const std::string& value) {
  if (field == "bucket_bytes") {
    const std::int64_t bytes = std::strtoll(value.c_str(), nullptr, 10);
    return bytes == 0 ? "one a layer" : base::size(bytes);
  }
  if (field == "shard_group" && value == "0") return "all replicas";
  if (field == "expert_tensor" && value == "0") return "as tensor parallel";
  const program::PlanField* known = program::find_plan_field(field);
  if (known != nullptr && known->kind == program::FieldKind::kFlag) return value == "true" ? "on" : "off";
  if (field != "placement") return display_name(value);
  std::string letters;  // orders of dimensions are long words; their first letters fit
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (at > 0 && value[at - 1] != '-') continue;
    letters += (letters.empty() ? "" : " › ") + std::string(1, static_cast<char>(value[at] - 'a' + 'A'));
  }
  return letters;
}

std::string value_of(const Scenario& scenario, const std::string& field) {
  return program::text_of(scenario.file.job.plan, field);
}

std::string words_of(const std::string& field) {
  const program::PlanField* known = program::find_plan_field(field);
  return known == nullptr ? display_name(field) : known->title;
}

std::string field_called(const std::string& words) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (const std::string& field : program::plan_fields()) {
    if (lower(words) == field || lower(words) == lower(words_of(field))) return field;
  }
  return words;
}

std::vector<std::string> choices(const Scenario& scenario, const std::string& field) {
  const program::Job& job = scenario.file.job;
  const std::int64_t devices = devices_of(scenario);
  std::vector<std::string> texts;
  if (field == "tensor") texts = divisors(job.model.heads, std::min(kWidestTensor, devices));
  if (field == "context") texts = divisors(job.training.sequence, std::min<std::int64_t>(16, devices));
  if (field == "pipeline") texts = divisors(job.model.layers, devices);
  if (field == "virtual_stages") texts = divisors(job.model.layers / std::max(1, job.plan.pipeline), job.model.layers);
  if (field == "data") texts = divisors(devices, devices);
  if (field == "micro_batch") texts = divisors(per_replica(scenario), kLargestMicroBatch);
  if (field == "expert") {
    const int sharing = job.plan.data * program::tensor_parts_of_experts(job.plan);
    texts = divisors(job.model.experts ? job.model.experts->count : 1, sharing);
  }
  if (field == "expert_tensor") {
    texts = divisors(job.plan.tensor, std::max(1, job.plan.tensor - 1));
    texts.insert(texts.begin(), "0");
  }
  if (field == "shard_group") {
    texts = divisors(job.plan.data, job.plan.data / 2);
    if (!texts.empty()) texts[0] = "0";  // a group of one shares nothing
  }
  if (field == "bucket_bytes") {
    for (const int mib : {0, 25, 50, 100, 200, 500}) texts.push_back(std::to_string(mib * std::int64_t{1024} * 1024));
  }
  if (field == "placement") texts = placements();
  if (const program::PlanField* known = program::find_plan_field(field)) {
    if (known->names != nullptr) texts = known->names();
    if (known->kind == program::FieldKind::kFlag) texts = {"false", "true"};
    if (field == "zero_stage") texts = numbers(known->least, known->most);
  }
  if (field == "top_k_share" && job.plan.compression == program::Compression::kTopK) {
    texts = {"0.001", "0.01", "0.05", "0.1"};
  }
  const std::string now = present(scenario, field);
  if (std::find(texts.begin(), texts.end(), now) == texts.end()) texts.push_back(now);
  return texts;
}

std::string present(const Scenario& scenario, const std::string& field) {
  return field == "recompute" && !scenario.file.job.plan.stage_recompute.empty() ? kByChunk : value_of(scenario, field);
}

Scenario turn(Scenario scenario, const std::string& field, const std::string& text, bool fill) {
  if (text == kByChunk) return scenario;
  scenario = with_field(std::move(scenario), field, text);
  if (fill && (field == "tensor" || field == "pipeline" || field == "context")) fill_devices(scenario);
  program::settle(scenario.file.job.plan, field);
  return scenario;
}

}  // namespace trivium::gui
