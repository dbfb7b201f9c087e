// Dumps of PyTorch's Flight Recorder: which ranks wait for which, and where they are.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::calibration::foreign {

/// A collective or transfer that a rank began.
struct RecordedCall {
  std::int64_t sequence = 0;  ///< of the group's collectives, or of its transfers, from 1
  bool transfer = false;      ///< between two ranks
  std::string name;           ///< "nccl:all_reduce"
  std::string shape;          ///< "1000 Float"
  bool done = false;
  std::int64_t created_ns = 0;
  std::string at;  ///< "train.py:33 step": the innermost call outside PyTorch; empty where frames were not kept
};

/// A process group. PyTorch's `split_group` gives groups of different ranks one name.
struct RecordedGroup {
  std::string name;        ///< and what it was described as
  std::vector<int> ranks;  ///< empty where the dump does not say them
  auto operator<=>(const RecordedGroup&) const = default;
};

struct FlightDump {
  std::string file;
  std::optional<int> rank;                                   ///< the number that the file's name ends with
  std::map<RecordedGroup, std::vector<RecordedCall>> calls;  ///< in order
};

/// A pickle or JSON as PyTorch 2.5 to 2.10 write them (`TORCH_FR_BUFFER_SIZE`, `_dump_nccl_trace`). Errors:
/// Failure(kInput) naming the file and what is wrong.
FlightDump read_flight_dump(std::string_view bytes, const std::string& file);

/// Whether the content is such a dump.
bool is_flight_dump(std::string_view bytes);

/// Ranks that wait for others in one group.
struct Stall {
  std::string group;
  RecordedCall call;  ///< in which they wait
  std::vector<int> waiting, missing;
  bool disagree = false;  ///< all are in it, but not with the same call or sizes
  bool follows = false;   ///< each missing rank waits in another group: this is a consequence
  std::string what;       ///< in words
};

/// Stalls, causes before consequences, then the longest first. Empty: all that was begun is done.
std::vector<Stall> stalls_of(const std::vector<FlightDump>& dumps);

/// Schema `trivium.hang/1`.
nlohmann::json to_json(const std::vector<FlightDump>& dumps, const std::vector<Stall>& stalls);
std::string to_text(const std::vector<FlightDump>& dumps, const std::vector<Stall>& stalls);

}  // namespace trivium::calibration::foreign
