#include "program/record/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/json_text.h"

namespace trivium::program {
namespace {

constexpr std::int64_t kPsPerUs = 1'000'000;

const Task& task_of(const Program& program, const Event& event) {
  return program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
}

/// Null for an event that is a whole segment.
const Op* op_of(const Program& program, const Event& event) {
  if (event.op < 0) return nullptr;
  return &program.body_of(task_of(program, event)).ops[static_cast<std::size_t>(event.op)];
}

/// "matmul_wgrad" as people read it.
std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Microseconds without rounding: "1234.000567".
std::string microseconds(std::int64_t ps) { return fmt::format("{}.{:06}", ps / kPsPerUs, ps % kPsPerUs); }

/// When every step begins, so that steps stand one after the other.
std::map<std::int32_t, std::int64_t> step_starts(const Timeline& timeline) {
  std::map<std::int32_t, std::int64_t> ends;
  for (const Event& event : timeline.events) {
    auto& end = ends[event.step];
    end = std::max(end, event.end_ps);
  }
  std::int64_t start = 0;
  for (auto& [step, end] : ends) start += std::exchange(end, start);
  return ends;
}

void append_metadata(const Program& program, const Timeline& timeline, std::string& out) {
  std::set<std::pair<std::int32_t, Lane>> lanes;
  std::set<std::int32_t> ranks;
  for (const Event& event : timeline.events) {
    lanes.emplace(event.rank, event.lane);
    ranks.insert(event.rank);
  }
  for (const std::int32_t rank : ranks) {
    const Coordinates at = program.mesh.coordinates(rank);
    fmt::format_to(
        std::back_inserter(out),
        R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}: stage {1}, tensor {2}, data {3}"}}}},)"
        "\n",
        rank, at.pipeline, at.tensor, at.data);
  }
  for (const auto& [rank, lane] : lanes) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}},)"
                   "\n",
                   rank, static_cast<int>(lane), name_of(lane));
  }
}

void append_event(const Program& program, const Event& event, std::int64_t step_start, std::string& out) {
  const Op* op = op_of(program, event);
  fmt::format_to(std::back_inserter(out),
                 R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                 R"("args":{{"step":{},"task":{},"op":{},"wait_us":{}}}}},)"
                 "\n",
                 name_of(program, event), op != nullptr ? name_of(op->kind) : name_of(task_of(program, event).kind),
                 event.rank, static_cast<int>(event.lane), microseconds(step_start + event.start_ps),
                 microseconds(event.end_ps - event.start_ps), event.step, event.task, event.op,
                 microseconds(event.wait_ps));
}

}  // namespace

std::string name_of(const Program& program, const Event& event) {
  const Task& task = task_of(program, event);
  const Op* op = op_of(program, event);
  const bool again = op != nullptr && op->pass == Pass::kRecompute;
  std::string name = words(again ? name_of(Pass::kRecompute) : name_of(task.kind));
  if (task.micro_batch >= 0) name += fmt::format(" mb{}", task.micro_batch);
  if (op == nullptr) return name;
  if (op->layer >= 0) {
    const Chunk& chunk = program.role_of(event.rank).chunks[static_cast<std::size_t>(task.chunk)];
    name += fmt::format(" layer {}", chunk.first_layer + op->layer);
  }
  return name += fmt::format(" {}", words(name_of(op->kind)));
}

std::string chrome_trace(const Program& program, const Timeline& timeline, const RunRecord* run) {
  std::string out = "{\"displayTimeUnit\":\"ns\",";
  if (run != nullptr) {
    nlohmann::json record = to_json(*run);
    record.erase("timeline");
    out += "\"otherData\":" + base::json_text(nlohmann::json{{record.at("schema").get<std::string>(), record}}) + ",";
  }
  out += "\"traceEvents\":[\n";
  append_metadata(program, timeline, out);
  const std::map<std::int32_t, std::int64_t> starts = step_starts(timeline);
  for (const Event& event : timeline.events) append_event(program, event, starts.at(event.step), out);
  if (out.ends_with(",\n")) out.erase(out.size() - 2, 1);
  return out += "]}\n";
}

}  // namespace trivium::program
