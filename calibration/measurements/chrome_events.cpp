#include "calibration/measurements/chrome_events.h"

#include "base/error.h"
#include "calibration/measurements/json_events.h"

namespace trivium::calibration::imports {

using nlohmann::json;

ChromeTrace read_chrome_trace(std::string_view text, const std::string& file) {
  ChromeTrace trace;
  trace.file = file;
  const auto integer = [](const json& value) { return value.is_number_integer() ? value.get<std::int64_t>() : -1; };
  const JsonList list = read_list(text, "traceEvents", [&](json&& event) {
    const auto phase = event.find("ph"), start = event.find("ts"), duration = event.find("dur");
    if (!event.is_object() || phase == event.end() || *phase != "X") return;
    if (start == event.end() || !start->is_number() || duration == event.end() || !duration->is_number()) return;
    ChromeEvent each;
    each.name = event.value("name", json("")).is_string() ? event.value("name", "") : "";
    each.category = event.value("cat", json("")).is_string() ? event.value("cat", "") : "";
    each.process = integer(event.value("pid", json()));
    each.thread = integer(event.value("tid", json()));
    each.start_us = start->get<double>();
    each.duration_us = duration->get<double>();
    if (const auto args = event.find("args"); args != event.end() && args->is_object()) each.args = std::move(*args);
    trace.events.push_back(std::move(each));
  });
  trace.head = list.head;
  trace.is_truncated = !list.is_whole;
  if (trace.events.empty()) {
    throw base::Failure(base::ErrorKind::kInput,
                        file + "#/traceEvents: holds no complete event" +
                            (list.is_whole ? "" : "; the file ends early or is broken at " + list.fault));
  }
  return trace;
}

bool is_chrome_trace(const FileText& file) {
  return file.form() == FileText::Form::kJson && has(file.whole(), "\"traceEvents\"");
}

}  // namespace trivium::calibration::imports
