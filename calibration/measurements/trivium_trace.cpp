#include "calibration/measurements/trivium_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace trivium::calibration::imports {
namespace {

constexpr const char* kRun = "trivium.run/1";
constexpr double kPsPerUs = 1e6;

std::int64_t to_ps(double us) { return std::llround(us * kPsPerUs); }

}  // namespace

bool is_run_trace(const ChromeTrace& trace) {
  const auto other = trace.head.find("otherData");
  return other != trace.head.end() && other->is_object() && other->contains(kRun);
}

program::RunRecord run_record_of(const ChromeTrace& trace) {
  nlohmann::json json = trace.head.at("otherData").at(kRun);
  json["timeline"] = {{"fields", nlohmann::json::array()}, {"events", nlohmann::json::array()}};
  program::RunRecord record = program::run_record_from_json(json, trace.file + "#/otherData/trivium.run~11");
  std::map<std::int32_t, std::int64_t> ends;  // of every step, on the trace's clock
  for (const ChromeEvent& event : trace.events) {
    for (const char* key : {"step", "task", "op", "wait_us"}) {
      if (event.args.contains(key) && event.args.at(key).is_number()) continue;
      throw base::Failure(base::ErrorKind::kInput,
                          fmt::format("{}: the event \"{}\" has no number args/{}; was the trace edited?", trace.file,
                                      event.name, key));
    }
    program::Event each;
    each.step = event.args.at("step").get<std::int32_t>();
    each.rank = static_cast<std::int32_t>(event.process);
    each.task = event.args.at("task").get<std::int32_t>();
    each.op = event.args.at("op").get<std::int32_t>();
    each.lane = static_cast<program::Lane>(std::clamp<std::int64_t>(event.thread, 0, program::kLanes - 1));
    each.start_ps = to_ps(event.start_us);
    each.end_ps = each.start_ps + to_ps(event.duration_us);
    each.wait_ps = to_ps(event.args.at("wait_us").get<double>());
    auto& end = ends[each.step];
    end = std::max(end, each.end_ps);
    record.timeline.events.push_back(each);
  }
  if (trace.is_truncated) {
    const std::int32_t cut = ends.rbegin()->first;
    std::erase_if(record.timeline.events, [&](const program::Event& event) { return event.step == cut; });
    if (record.timeline.events.empty()) {
      throw base::Failure(base::ErrorKind::kInput,
                          trace.file + ": ends within its first step; nothing whole is left to learn from");
    }
  }
  std::int64_t begin = 0;
  std::map<std::int32_t, std::int64_t> begins;
  for (const auto& [step, end] : ends) {
    begins[step] = begin;
    begin = end;
  }
  for (program::Event& event : record.timeline.events) {
    event.start_ps -= begins.at(event.step);
    event.end_ps -= begins.at(event.step);
  }
  return record;
}

}  // namespace trivium::calibration::imports
