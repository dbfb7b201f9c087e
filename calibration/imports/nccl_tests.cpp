#include "calibration/imports/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "calibration/imports/json_events.h"
#include "calibration/imports/text_lines.h"
#include "edge/error.h"

namespace trivium::calibration::imports {
namespace {

using nlohmann::json;
using program::OpKind;

constexpr double kMicro = 1e-6;

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw edge::Failure(edge::ErrorKind::kInput, file + ": " + what);
}

/// `all_reduce_perf`, wherever it stands in a path.
std::optional<OpKind> kind_in(std::string_view text) {
  static const std::map<std::string_view, OpKind> kKinds = {{"all_reduce_perf", OpKind::kAllReduce},
                                                            {"reduce_scatter_perf", OpKind::kReduceScatter},
                                                            {"all_gather_perf", OpKind::kAllGather},
                                                            {"alltoall_perf", OpKind::kAllToAll},
                                                            {"sendrecv_perf", OpKind::kSend}};
  for (const auto& [name, kind] : kKinds) {
    if (text.find(name) != std::string_view::npos) return kind;
  }
  return std::nullopt;
}

bool names_another(std::string_view text) {
  for (const char* name : {"broadcast_perf", "reduce_perf", "gather_perf", "scatter_perf", "hypercube_perf"}) {
    if (text.find(name) != std::string_view::npos && !kind_in(text)) return true;
  }
  return false;
}

/// What busbw / algbw says of the ranks where their list is missing: all-reduce 2 (n-1)/n, the others (n-1)/n.
int ranks_from(OpKind kind, double ratio) {
  if (kind == OpKind::kSend) return 2;
  const double share = kind == OpKind::kAllReduce ? ratio / 2 : ratio;
  return share > 0 && share < 1 ? static_cast<int>(std::lround(1 / (1 - share))) : 0;
}

/// One run of one program within a text.
struct Run {
  std::optional<OpKind> kind;
  bool skipped = false;  // a collective that is not used
  int ranks = 0;
  std::set<std::string> hosts;
  std::vector<std::string> columns;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : file_(file), input_(lines_of(text)) {
    result_.file = file;
    run_.kind = kind_in(file);
    run_.skipped = names_another(file);
  }

  CollectiveTimes read() {
    for (std::size_t i = 0; i < input_.lines.size(); ++i) {
      const std::string& line = input_.lines[i];
      const bool may_be_cut = i + 1 == input_.lines.size() && !input_.is_last_whole;
      const std::size_t first = line.find_first_not_of(" \t");
      if (first == std::string::npos) continue;
      if (line[first] == '#') {
        comment(line);
      } else if (!run_.columns.empty()) {
        row(line, may_be_cut);
      } else {
        note_program(line);  // the command, as a shell or mpirun echoes it
      }
    }
    result_.is_truncated |= !input_.is_last_whole;
    return std::move(result_);
  }

 private:
  void note_program(const std::string& line) {
    const auto kind = kind_in(line);
    if (!kind && !names_another(line)) return;
    run_ = {};
    run_.kind = kind;
    run_.skipped = !kind;
  }

  void comment(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    if (line.find("Collective test starting") != std::string::npos) return note_program(line);
    if (line.find("nccl-tests version") != std::string::npos) result_.version = line.substr(line.find("nccl-tests"));
    if (line.find("nThread") != std::string::npos) {  // the next run's settings
      run_.ranks = 0;
      run_.hosts.clear();
      run_.columns.clear();
    }
    if (words.size() > 2 && words[1] == "Rank") {
      ++run_.ranks;
      const auto on = std::find(words.begin(), words.end(), "on");
      if (on != words.end() && std::next(on) != words.end()) run_.hosts.insert(*std::next(on));
      const std::size_t end_of_bus = line.find("] ");
      if (end_of_bus != std::string::npos) result_.device = line.substr(end_of_bus + 2);
    }
    const bool is_header = line.find("busbw") != std::string::npos && line.find("algbw") != std::string::npos;
    if (is_header) run_.columns.assign(words.begin() + 1, words.end());
  }

  /// Value of the `nth` column of that name.
  std::optional<double> value(const std::vector<std::string>& words, const std::string& name, int nth) const {
    for (std::size_t i = 0; i < run_.columns.size() && i < words.size(); ++i) {
      if (run_.columns[i] == name && nth-- == 0) return number_of(words[i]);
    }
    return std::nullopt;
  }

  void row(const std::string& line, bool may_be_cut) {
    const std::vector<std::string> words = words_of(line);
    if (!number_of(words.front())) return note_program(line);  // messages between rows
    if (run_.skipped) return;
    if (words.size() < run_.columns.size()) {
      if (may_be_cut) return;
      refuse(file_, fmt::format("\"{}\" has {} columns of {}", line, words.size(), run_.columns.size()));
    }
    if (!run_.kind) {
      refuse(file_,
             "the collective is not told; keep the command or the line \"Collective test starting\", or name the "
             "file after it (all_reduce_perf.txt)");
    }
    for (const int side : {0, 1}) {
      const char* time_column = value(words, "time", side) ? "time" : "cputime";
      const auto size = value(words, run_.columns.front() == "bytes" ? "bytes" : "size", 0),
                 micros = value(words, time_column, side), algorithm = value(words, "algbw", side),
                 bus = value(words, "busbw", side);
      if (!size || !micros || *size <= 0 || *micros <= 0) continue;
      if (value(words, "#wrong", side).value_or(0) > 0) return;
      const int ranks = run_.ranks > 0
                            ? run_.ranks
                            : ranks_from(*run_.kind, algorithm && *algorithm > 0 ? bus.value_or(0) / *algorithm : 0);
      if (ranks < 2) continue;
      const int hosts = std::max(1, static_cast<int>(run_.hosts.size()));
      result_.times.push_back({*run_.kind, ranks, hosts, *size, *micros * kMicro});
      return;
    }
  }

  std::string file_;
  TextLines input_;
  Run run_;
  CollectiveTimes result_;
};

double number_at(const json& value, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = value.find(key);
    if (found == value.end()) continue;
    if (found->is_number()) return found->get<double>();
    if (found->is_string()) return number_of(found->get<std::string>()).value_or(0);
  }
  return 0;
}

/// `-J`: a killed run leaves the document open; its complete results are read all the same.
CollectiveTimes read_json(std::string_view text, const std::string& file) {
  CollectiveTimes result;
  result.file = file;
  std::vector<json> rows;
  const JsonList list = read_list(text, "results", [&](json&& row) { rows.push_back(std::move(row)); });
  result.is_truncated = !list.is_whole;
  std::set<std::string> hosts;
  int ranks = 0;
  const json config = list.head.value("config", json::object());
  for (const json& device : config.value("devices", json::array())) {
    ++ranks;
    hosts.insert(device.value("hostname", ""));
    result.device = device.value("device_info", result.device);
  }
  std::optional<OpKind> kind = kind_in(file);
  for (const json& argument : list.head.value("args", json::array())) {
    if (argument.is_string() && !kind) kind = kind_in(argument.get<std::string>());
  }
  if (!kind) refuse(file, "#/args names no collective of a training (all_reduce_perf, reduce_scatter_perf, …)");
  const json version = list.head.value("nccl_version", json());
  if (!version.is_null())
    result.version = "NCCL " + (version.is_string() ? version.get<std::string>() : version.dump());
  for (const json& row : rows) {
    for (const char* side : {"out_of_place", "in_place"}) {
      const auto timed = row.find(side);
      if (timed == row.end() || !timed->is_object()) continue;
      const double size = number_at(row, {"size"}), micros = number_at(*timed, {"time", "cpu_time"});
      if (size <= 0 || micros <= 0) continue;
      if (number_at(*timed, {"nwrong"}) > 0) break;
      const double algorithm = number_at(*timed, {"alg_bw"});
      const int n =
          ranks > 0 ? ranks : ranks_from(*kind, algorithm > 0 ? number_at(*timed, {"bus_bw"}) / algorithm : 0);
      if (n < 2) break;
      result.times.push_back({*kind, n, std::max(1, static_cast<int>(hosts.size())), size, micros * kMicro});
      break;
    }
  }
  return result;
}

}  // namespace

CollectiveTimes read_nccl_tests(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  CollectiveTimes result = is_json ? read_json(text, file) : Reader(text, file).read();
  if (result.times.empty()) {
    refuse(file, "holds no complete row of a collective that a training uses; was the test cut short?");
  }
  return result;
}

}  // namespace trivium::calibration::imports
