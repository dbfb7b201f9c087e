#include "gui/timeline/spans/trace_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/seconds.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/nsight.h"
#include "gui/timeline/spans/store_builder.h"

namespace trivium::gui {
namespace {

namespace json = simdjson::ondemand;

constexpr double kPsPerUs = 1e6;
constexpr double kLatestUs = 4e12;  // a month and a half; in picoseconds still well inside 63 bits
constexpr std::uint64_t kLargestFile = (std::uint64_t{1} << 32) - 64;
constexpr std::string_view kLayer = " layer ";
constexpr std::string_view kSqlite = "SQLite format 3";

/// What profilers call by two names that would get two colours.
std::string_view kind_words(std::string_view kind) {
  if (kind == "user_annotation" || kind == "gpu_user_annotation") return "annotation";
  return kind == "cuda_runtime" || kind == "cuda_driver" ? "CUDA call" : kind;
}

/// Ranges that name work, of the user or of Python's functions: not work themselves.
bool is_annotation(std::string_view kind) {
  return kind == "user_annotation" || kind == "gpu_user_annotation" || kind == "python_function";
}

/// What an event may say.
struct RawEvent {
  std::string_view phase, name, kind;
  std::string_view named;  ///< args.name, of metadata
  std::int64_t process = 0, thread = 0, id = 0;
  double ts = 0, duration = 0, wait = 0, sort_index = 0;
  bool has_ts = false, has_duration = false;
};

class Reader {
 public:
  Reader(std::string file, const std::stop_token& stop) : file_(std::move(file)), stop_(stop), cancellation_(stop) {
    root_ = builder_.add_row(kNoRow, RowKind::kCluster, std::filesystem::path(file_).filename().string(), 0);
  }

  Trace read(const simdjson::padded_string& text) {
    try {
      json::parser parser;
      json::document document = parser.iterate(text);
      if (document.type() == json::json_type::array) {
        pointer_ = "";
        read_events(document.get_array());
      } else if (document.type() == json::json_type::object) {
        pointer_ = "/traceEvents";
        auto events = document.get_object().find_field("traceEvents");
        if (events.error() == simdjson::NO_SUCH_FIELD) {
          fail("",
               "has no \"traceEvents\"; a trace as Chrome, Perfetto or `trivium simulate --trace` write it is wanted");
        }
        read_events(events.get_array());
      } else {
        fail("", "is no trace: an array of events, or an object with \"traceEvents\", is wanted");
      }
    } catch (const simdjson::simdjson_error& error) {
      refuse(error);
    }
    return finish();
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}#{}: {}", file_, pointer, what));
  }
  [[noreturn]] void fail_here(const std::string& what) const { fail(fmt::format("{}/{}", pointer_, index_), what); }

  [[noreturn]] void refuse(const simdjson::simdjson_error& error) const {
    switch (error.error()) {
      case simdjson::EMPTY:
        fail("", "is empty");
      case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      case simdjson::UNCLOSED_STRING:
        fail("", "is not JSON: it ends in the middle; was it cut off while it was written?");
      case simdjson::UTF8_ERROR:
        fail("", "is not JSON: it holds bytes that are not UTF-8; a compressed trace must be unpacked first");
      case simdjson::CAPACITY:
      case simdjson::MEMALLOC:
        fail("", "is too large to be read at once; record fewer steps");
      default:
        fail_here(fmt::format("is not what a trace holds there: {}", error.what()));
    }
  }

  void read_events(json::array events) {
    for (auto value : events) {
      cancellation_.step();
      json::value event = value.value();
      if (event.type() != json::json_type::object) fail_here("is no event; every event is an object");
      take(parse(event.get_object()));
      ++index_;
    }
  }

  RawEvent parse(json::object object) {
    RawEvent event;
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      json::value value = field.value();
      if (key == "ph") {
        event.phase = value.get_string();
      } else if (key == "name") {
        event.name = value.get_string();
      } else if (key == "cat") {
        event.kind = value.get_string();
      } else if (key == "pid") {
        event.process = identity(value);
      } else if (key == "tid") {
        event.thread = identity(value);
      } else if (key == "id") {
        event.id = identity(value);
      } else if (key == "ts") {
        event.ts = value.get_double();
        event.has_ts = true;
      } else if (key == "dur") {
        event.duration = value.get_double();
        event.has_duration = true;
      } else if (key == "args" && value.type() == json::json_type::object) {
        parse_arguments(value.get_object(), event);
      }
    }
    return event;
  }

  static void parse_arguments(json::object arguments, RawEvent& event) {
    for (auto field : arguments) {
      const std::string_view key = field.unescaped_key();
      json::value value = field.value();
      if (key == "name" && value.type() == json::json_type::string) {
        event.named = value.get_string();
      } else if (key == "wait_us" && value.type() == json::json_type::number) {
        event.wait = value.get_double();
      } else if (key == "sort_index" && value.type() == json::json_type::number) {
        event.sort_index = value.get_double();
      }
    }
  }

  /// Processes, threads and flows are identified by number or by name.
  std::int64_t identity(json::value value) {
    if (value.type() == json::json_type::string) {
      const std::string_view text = value.get_string();
      return -1 - static_cast<std::int64_t>(identities_.number(text));
    }
    if (value.type() == json::json_type::number) return static_cast<std::int64_t>(value.get_double());
    return 0;
  }

  std::int64_t picoseconds(double us) const {
    if (!(std::abs(us) < kLatestUs)) fail_here("lies too far from the first event in time; times are microseconds");
    return std::llround(us * kPsPerUs);
  }

  std::int64_t time_of(const RawEvent& event) {
    if (!event.has_ts) fail_here("has no time: a number \"ts\" is wanted");
    if (!placed_) {  // clocks that count from 1970 count from the first event here
      origin_ = std::abs(event.ts) < kLatestUs / 4 ? 0 : event.ts;
      placed_ = true;
    }
    return picoseconds(event.ts - origin_);
  }

  void take(const RawEvent& event) {
    const char phase = event.phase.size() == 1 ? event.phase[0] : ' ';
    switch (phase) {
      case 'X':
        return take_complete(event);
      case 'B':
        open_[lane_row(event.process, event.thread)].push_back(add(event, time_of(event), 0));
        return;
      case 'E':
        return take_end(event);
      case 'M':
        return take_metadata(event);
      case 's':
      case 'f':
        return take_flow(event, phase == 's');
      default:
        ++ignored_;
    }
  }

  void take_complete(const RawEvent& event) {
    const std::int64_t start = time_of(event);
    if (event.duration < 0) fail_here("lasts less than nothing: \"dur\" is negative");
    const std::int64_t length = picoseconds(event.duration);
    const std::int64_t wait = std::min(picoseconds(std::max(0.0, event.wait)), length);
    if (wait > 0) builder_.at(add(event, start, wait)).category = builder_.category(Category::kWaiting);
    if (wait < length || wait == 0) add(event, start + wait, length - wait);
  }

  void take_end(const RawEvent& event) {
    auto& open = open_[lane_row(event.process, event.thread)];
    if (open.empty()) {
      ++unfinished_;
      return;
    }
    NewSpan& span = builder_.at(open.back());
    span.end_ps = std::max(span.start_ps, time_of(event));
    open.pop_back();
  }

  void take_metadata(const RawEvent& event) {
    if (event.name == "process_name") builder_.rename(device_row(event.process), std::string(event.named));
    if (event.name == "process_sort_index") {
      builder_.set_order(device_row(event.process), static_cast<std::int64_t>(event.sort_index));
    }
    if (event.name != "thread_name" && event.name != "thread_sort_index") return;
    const std::int32_t row = lane_row(event.process, event.thread);
    if (event.name == "thread_sort_index") builder_.set_order(row, static_cast<std::int64_t>(event.sort_index));
    if (event.name == "thread_name") builder_.rename(row, std::string(event.named));
  }

  void take_flow(const RawEvent& event, bool begins) {
    const FlowEnd end{lane_row(event.process, event.thread), time_of(event)};
    if (begins) {
      flows_[event.id] = end;
    } else if (const auto from = flows_.find(event.id); from != flows_.end()) {
      builder_.add_flow_at(from->second.row, from->second.ps, end.row, end.ps);
      flows_.erase(from);
    }
  }

  std::uint32_t add(const RawEvent& event, std::int64_t start, std::int64_t length) {
    NewSpan span;
    const bool annotation = is_annotation(event.kind) && event.phase == "X";
    span.row = annotation ? ranges_row(event.process, event.thread) : lane_row(event.process, event.thread);
    span.start_ps = start;
    span.end_ps = start + length;
    const std::size_t cut = event.name.find(kLayer);
    span.title = builder_.title(event.name.substr(0, cut));
    if (cut != std::string_view::npos) span.detail = builder_.detail(event.name.substr(cut + 1));
    const Category known = gui::category_of(event.name, event.kind, builder_.name_of_row(span.row));
    span.category = known != Category::kOther || event.kind.empty() ? builder_.category(known)
                                                                    : builder_.category(kind_words(event.kind));
    note_kernel(event, span.row, known);
    if (is_host_operator(event.kind)) host_operators_.push_back(builder_.size());
    return builder_.add(span);
  }

  /// Where a trace has kernels, lanes with kernels that compute are the compute lanes, and the host's lanes do no work.
  void note_kernel(const RawEvent& event, std::int32_t row, Category category) {
    if (!is_kernel(event.kind)) return;
    has_kernels_ = true;
    const bool computes = category != Category::kCollective && category != Category::kCopy;
    bool& known = device_lanes_[row];
    known = known || computes;
  }

  std::int32_t device_row(std::int64_t process) {
    const auto [known, fresh] = devices_.try_emplace(process, kNoRow);
    if (fresh) known->second = builder_.add_row(root_, RowKind::kDevice, fmt::format("process {}", process), process);
    return known->second;
  }

  std::int32_t lane_row(std::int64_t process, std::int64_t thread) {
    if (process == last_process_ && thread == last_thread_ && last_row_ != kNoRow) return last_row_;
    const auto [known, fresh] = lanes_.try_emplace({process, thread}, kNoRow);
    if (fresh) {
      known->second = builder_.add_row(device_row(process), RowKind::kLane, fmt::format("thread {}", thread), thread);
    }
    last_process_ = process, last_thread_ = thread;
    return last_row_ = known->second;
  }

  /// Ranges of a thread or stream, a row of their own next to it.
  std::int32_t ranges_row(std::int64_t process, std::int64_t thread) {
    const std::int32_t lane = lane_row(process, thread);
    const auto [known, fresh] = ranges_.try_emplace(lane, kNoRow);
    if (fresh) known->second = builder_.add_row(device_row(process), RowKind::kLane, "", thread);
    return known->second;
  }

  void finish_ranges() {
    for (const auto& [lane, row] : ranges_) {
      builder_.rename(row, "ranges of " + builder_.name_of_row(lane));
      builder_.set_order(row, builder_.order_of(lane));
      builder_.set_primary(row, false);
      builder_.set_work(row, false);
    }
    if (!has_kernels_) return;
    bool computing = false;
    for (const auto& [lane, computes] : device_lanes_) computing |= computes;
    for (const auto& [key, lane] : lanes_) {
      const auto device = device_lanes_.find(lane);
      builder_.set_work(lane, device != device_lanes_.end());
      builder_.set_primary(lane, device != device_lanes_.end() && (device->second || !computing));
    }
  }

  Trace finish() {
    std::map<std::int64_t, bool> computes;
    for (const auto& [key, row] : lanes_) computes[key.first] |= builder_.name_of_row(row) == "compute";
    for (const auto& [key, row] : lanes_) {
      builder_.set_primary(row, !computes[key.first] || builder_.name_of_row(row) == "compute");
    }
    finish_ranges();
    // Where devices have work of their own, operators of the host only launch it.
    for (const std::uint32_t span : has_kernels_ ? host_operators_ : std::vector<std::uint32_t>{}) {
      builder_.at(span).category = builder_.category("host operator", hue_of(Category::kOther));
    }
    Trace trace;
    trace.ignored = ignored_;
    trace.unfinished = unfinished_;
    for (const auto& [row, open] : open_) trace.unfinished += open.size();
    trace.spans = builder_.build(stop_);
    return trace;
  }

  struct FlowEnd {
    std::int32_t row;
    std::int64_t ps;
  };
  std::string file_;
  std::stop_token stop_;
  base::CancellationPoint cancellation_;
  std::string pointer_;
  std::uint64_t index_ = 0, ignored_ = 0, unfinished_ = 0;
  bool placed_ = false;
  double origin_ = 0;
  bool has_kernels_ = false;
  std::vector<std::uint32_t> host_operators_;
  StoreBuilder builder_;
  std::int32_t root_ = kNoRow;
  std::int64_t last_process_ = 0, last_thread_ = 0;
  std::int32_t last_row_ = kNoRow;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> lanes_;
  std::map<std::int64_t, std::int32_t> devices_;
  std::map<std::int32_t, std::int32_t> ranges_;  // by the lane that they name work of
  std::map<std::int32_t, bool> device_lanes_;    // lanes with kernels; whether any of them computes
  std::unordered_map<std::int32_t, std::vector<std::uint32_t>> open_;
  std::unordered_map<std::int64_t, FlowEnd> flows_;
  Names identities_;
};

/// A process is a device's row, a stream a lane.
Trace trace_of_kernels(const std::filesystem::path& path, const std::stop_token& stop) {
  base::CancellationPoint cancellation(stop);
  StoreBuilder builder;
  const std::int32_t root = builder.add_row(kNoRow, RowKind::kCluster, path.filename().string(), 0);
  std::int64_t number = 0;
  for (const calibration::imports::KernelTrace& trace : calibration::imports::read_nsight_processes(path)) {
    std::map<int, std::int32_t> devices;
    std::map<std::pair<int, std::int64_t>, std::int32_t> streams;
    for (const calibration::imports::Kernel& kernel : trace.kernels) {
      cancellation.step();
      const auto [device, new_device] = devices.try_emplace(kernel.device, kNoRow);
      if (new_device) {
        const std::string name = trace.rank ? fmt::format("rank {} · GPU {}", *trace.rank, kernel.device)
                                            : fmt::format("GPU {}", kernel.device);
        device->second = builder.add_row(root, RowKind::kDevice, name, number++);
      }
      const auto [stream, new_stream] = streams.try_emplace({kernel.device, kernel.stream}, kNoRow);
      if (new_stream) {
        stream->second =
            builder.add_row(device->second, RowKind::kLane, fmt::format("stream {}", kernel.stream), kernel.stream);
      }
      NewSpan span;
      span.row = stream->second;
      span.start_ps = std::llround(kernel.start_s / base::kSecondsPerPs);
      span.end_ps = span.start_ps + std::llround(kernel.seconds / base::kSecondsPerPs);
      span.title = builder.title(trace.name_of(kernel));
      span.category = builder.category(gui::category_of(trace.name_of(kernel), "kernel", {}));
      builder.add(span);
    }
  }
  return {builder.build(stop)};
}

}  // namespace

bool is_packed_trace(std::string_view begin) {
  return begin.starts_with(kSqlite) || calibration::imports::is_gzip(begin);
}

Trace read_trace(const std::filesystem::path& path, const std::stop_token& stop) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw base::Failure(base::ErrorKind::kInput, path.string() + ": there is no such file");
  }
  if (std::filesystem::file_size(path, error) > kLargestFile) {
    throw base::Failure(base::ErrorKind::kInput, path.string() + ": is larger than 4 GiB; record fewer steps");
  }
  std::array<char, kSqlite.size()> begin{};
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  const std::string_view head(begin.data(), begin.size());
  if (head == kSqlite) return trace_of_kernels(path, stop);
  if (calibration::imports::is_gzip(head)) {
    return parse_trace(calibration::imports::unpacked(base::read_file(path), path.string()), path.string(), stop);
  }
  simdjson::padded_string text;
  if (simdjson::padded_string::load(path.string()).get(text) != simdjson::SUCCESS) {
    throw base::Failure(base::ErrorKind::kInput, path.string() + ": cannot be read");
  }
  return Reader(path.string(), stop).read(text);
}

Trace parse_trace(const std::string& text, const std::string& file_name, const std::stop_token& stop) {
  return Reader(file_name, stop).read(simdjson::padded_string(text));
}

}  // namespace trivium::gui
