#include "program/record/run_record.h"

#include <fmt/format.h>

#include "base/json_reader.h"
#include "program/ir/text.h"
#include "program/plan/plan_file.h"

namespace trivium::program {
namespace {

constexpr const char* kSchema = "trivium.run/1";
constexpr std::int64_t kMost = std::int64_t{1} << 62;

Event event_at(const base::JsonReader& reader) {
  const auto fields = reader.elements();
  if (fields.size() != 8)
    reader.fail("must be an array of 8 numbers: step, rank, task, op, lane, start_ps, end_ps, wait_ps");
  Event e;
  e.step = static_cast<std::int32_t>(fields[0].integer(0, 1 << 30));
  e.rank = static_cast<std::int32_t>(fields[1].integer(0, 1 << 24));
  e.task = static_cast<std::int32_t>(fields[2].integer(0, 1 << 30));
  e.op = static_cast<std::int32_t>(fields[3].integer(-1, 1 << 30));
  e.lane = static_cast<Lane>(fields[4].integer(0, kLanes - 1));
  e.start_ps = fields[5].integer(0, kMost);
  e.end_ps = fields[6].integer(e.start_ps, kMost);
  e.wait_ps = fields[7].integer(0, kMost);
  return e;
}

StepRecord step_at(const base::JsonReader& reader) {
  StepRecord s;
  s.step = reader.at("step").integer(0, kMost);
  s.loss = reader.at("loss").number();
  s.grad_norm = reader.at("grad_norm").number();
  if (const auto rate = reader.find("learning_rate")) s.learning_rate = rate->number();
  s.seconds = reader.at("seconds").number();
  s.tokens_per_s = reader.at("tokens_per_s").number();
  if (const auto scale = reader.find("loss_scale")) s.loss_scale = scale->number();
  if (const auto skipped = reader.find("skipped")) s.skipped = skipped->boolean();
  if (const auto mfu = reader.find("mfu")) s.mfu = mfu->number();
  if (const auto loss = reader.find("validation_loss")) s.validation_loss = loss->number();
  return s;
}

}  // namespace

nlohmann::json to_json(const StepRecord& s) {
  nlohmann::json json{{"step", s.step},           {"loss", s.loss},
                      {"grad_norm", s.grad_norm}, {"learning_rate", s.learning_rate},
                      {"seconds", s.seconds},     {"tokens_per_s", s.tokens_per_s}};
  if (s.loss_scale > 0) json["loss_scale"] = s.loss_scale, json["skipped"] = s.skipped;
  if (s.mfu) json["mfu"] = *s.mfu;
  if (s.validation_loss) json["validation_loss"] = *s.validation_loss;
  return json;
}

nlohmann::json to_json(const RunRecord& record) {
  nlohmann::json json{{"schema", kSchema},         {"plan", to_json(PlanFile{record.job, record.cluster})},
                      {"backend", record.backend}, {"program_hash", record.program_hash},
                      {"host", record.host},       {"peak_memory_bytes", record.peak_memory_bytes}};
  auto& steps = json["steps"] = nlohmann::json::array();
  for (const StepRecord& s : record.steps) steps.push_back(to_json(s));
  auto& spikes = json["spikes"] = nlohmann::json::array();
  for (const Spike& s : record.spikes) {
    spikes.push_back({{"step", s.step}, {"of", s.of}, {"value", s.value}, {"typical", s.typical}});
  }
  auto events = nlohmann::json::array();
  for (const Event& e : record.timeline.events) {
    events.push_back({e.step, e.rank, e.task, e.op, static_cast<int>(e.lane), e.start_ps, e.end_ps, e.wait_ps});
  }
  json["timeline"] = {{"fields", {"step", "rank", "task", "op", "lane", "start_ps", "end_ps", "wait_ps"}},
                      {"events", std::move(events)}};
  return json;
}

RunRecord run_record_from_json(const nlohmann::json& json, const std::string& where) {
  const base::JsonReader reader(json, where);
  const std::vector<std::string> schemas{kSchema};
  (void)reader.at("schema").one_of(schemas);
  reader.allow_only(
      {"schema", "plan", "backend", "program_hash", "peak_memory_bytes", "steps", "timeline", "host", "spikes"});
  RunRecord record;
  record.file = where;
  const PlanFile plan = plan_file_from_json(reader.at("plan").json(), where + "#/plan");
  record.job = plan.job;
  record.cluster = plan.cluster;
  record.backend = reader.at("backend").text();
  if (const auto hash = reader.find("program_hash")) record.program_hash = hash->text();
  for (const auto& step : reader.at("steps").elements()) record.steps.push_back(step_at(step));
  if (const auto spikes = reader.find("spikes")) {
    const std::vector<std::string> kinds{"loss", "grad_norm"};
    for (const auto& spike : spikes->elements()) {
      record.spikes.push_back({spike.at("step").integer(0, kMost), spike.at("of").one_of(kinds),
                               spike.at("value").number(), spike.at("typical").number()});
    }
  }
  for (const auto& event : reader.at("timeline").at("events").elements())
    record.timeline.events.push_back(event_at(event));
  if (const auto peaks = reader.find("peak_memory_bytes")) {
    for (const auto& peak : peaks->elements()) record.peak_memory_bytes.push_back(peak.integer(0, kMost));
  }
  if (const auto host = reader.find("host")) {
    for (const auto& [name, fact] : host->members()) record.host[name] = fact.text();
  }
  return record;
}

std::string hash_of(const Program& program) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const Role& role : program.roles) {
    for (const char c : text_of(program, program.representative(role))) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace trivium::program
