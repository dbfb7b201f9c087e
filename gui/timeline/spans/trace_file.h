// Timelines written by this program or any other: Chrome's and Perfetto's JSON trace files.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

struct Trace {
  std::shared_ptr<const SpanStore> spans;
  std::uint64_t ignored = 0;     ///< events that are no spans: counters, instants, asynchronous ones
  std::uint64_t unfinished = 0;  ///< spans that begin ("B") and never end, or end and never began
};

/// Whether a file that begins so is a trace that is packed by gzip, or an export of Nsight Systems.
bool is_packed_trace(std::string_view begin);

/// The Trace Event Format: an array of events, or an object that holds it as `traceEvents`. Complete ("X") and
/// begin/end
/// ("B", "E") events become spans, flow events ("s", "f") arrows between the spans around them; processes become
/// devices, threads lanes. Also packed by gzip; and the kernels of an SQLite export of Nsight Systems. A million events
/// take under a second. Errors: Failure(kInput) as `FILE#/traceEvents/N: …`, for files that are missing, truncated, not
/// JSON, larger than 4 GiB or no trace; Failure(kInterrupted) where `stop` was requested.
Trace read_trace(const std::filesystem::path& path, const std::stop_token& stop = {});

/// The same from text, as if it stood in a file of that name.
Trace parse_trace(const std::string& text, const std::string& file_name, const std::stop_token& stop = {});

}  // namespace trivium::gui
