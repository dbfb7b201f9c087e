// Chrome JSON traces: the Trace Event Format, as PyTorch's profiler and `trivium run --trace` write it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurements/file_text.h"

namespace trivium::calibration::imports {

/// A complete event (`ph` X). Times in microseconds, as they stand in the file.
struct ChromeEvent {
  std::string name, category;
  std::int64_t process = -1, thread = -1;  ///< -1 where they are not numbers
  double start_us = 0, duration_us = 0;
  nlohmann::json args;
};

struct ChromeTrace {
  std::string file;
  nlohmann::json head;  ///< the document's members other than the events
  std::vector<ChromeEvent> events;
  bool is_truncated = false;
};

/// The object form; the array form (`[ {…}, …`) is not written by either. Events up to where a truncated file ends are
/// kept. Errors: Failure(kInput) where there is no complete event.
ChromeTrace read_chrome_trace(std::string_view text, const std::string& file);

bool is_chrome_trace(const FileText& file);

}  // namespace trivium::calibration::imports
