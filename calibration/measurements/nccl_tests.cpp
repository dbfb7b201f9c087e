#include "calibration/measurements/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/refuse.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/json_events.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/text_lines.h"

namespace trivium::calibration::imports {
namespace {

using base::refuse;
using nlohmann::json;
using program::OpKind;

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

/// One size of one run. The bandwidths are as they are printed, in GB/s.
struct Row {
  double bytes = 0, seconds = 0, algorithm = 0, bus = 0;
};

/// What busbw / algbw says of the ranks where their list is missing: all-reduce 2 (n-1)/n, the others (n-1)/n. Of the
/// row with most digits, within half of its last one; 0 where that leaves more than one number.
int ranks_from(OpKind kind, const std::vector<Row>& rows) {
  const auto half_digit = [](double printed) { return printed < 1000 ? .005 : .05; };  // at most six characters
  if (kind == OpKind::kSend) return 2;
  const auto most =
      std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.algorithm < b.algorithm; });
  if (most == rows.end() || most->algorithm <= half_digit(0)) return 0;
  const auto ranks = [&](double bus, double algorithm) {
    const double share = bus / algorithm / (kind == OpKind::kAllReduce ? 2 : 1);
    return share > 0 && share < 1 ? std::lround(1 / (1 - share)) : 0;
  };
  const double bus = half_digit(most->bus), algorithm = half_digit(most->algorithm);
  const auto least = ranks(most->bus - bus, most->algorithm + algorithm),
             greatest = ranks(most->bus + bus, most->algorithm - algorithm);
  return least == greatest ? static_cast<int>(least) : 0;
}

/// One run of one program within a text.
struct Run {
  std::optional<OpKind> kind;
  bool skipped = false;  // a collective that is not used
  int ranks = 0;
  std::set<std::string> hosts;
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

/// Whether rows were there whose ranks cannot be told.
bool finish(const Run& run, CollectiveTimes& result) {
  if (run.rows.empty() || !run.kind) return false;
  const int ranks = run.ranks > 0 ? run.ranks : ranks_from(*run.kind, run.rows);
  if (ranks < 2) return run.ranks == 0;
  for (const Row& row : run.rows) {
    result.times.push_back({*run.kind, ranks, static_cast<int>(run.hosts.size()), row.bytes, row.seconds});
  }
  return false;
}

[[noreturn]] void refuse_ranks(const std::string& file) {
  refuse(file,
         "does not tell how many ranks took part: the lines \"Rank\" are missing, and its bandwidths are too small to "
         "show it; keep those lines, or larger sizes");
}

class NcclTestsReader {
 public:
  NcclTestsReader(std::string_view text, const std::string& file) : file_(file), input_(lines_of(text)) {
    result_.file = file;
    run_.kind = kind_in(file);
    run_.skipped = names_another(file);
  }

  CollectiveTimes read() {
    for (; at_ < input_.lines.size(); ++at_) {
      const std::string& line = input_.lines[at_];
      const std::size_t mark = line.find_first_not_of(" \t");
      if (mark == std::string::npos) continue;
      const bool marked = line[mark] == '#';  // copies are without these marks where they would make headings
      const std::string_view content = std::string_view(line).substr(marked ? mark + 1 : mark);
      const std::vector<std::string> words = words_of(content);
      if (words.empty()) continue;
      if (!marked && !run_.columns.empty() && number_of(words.front())) {
        row(line, words);
      } else if (!comment(content, words) && !marked) {
        note_program(content);  // the command, as a shell or mpirun echoes it
      }
    }
    end_run();
    if (result_.times.empty() && ranks_unknown_) refuse_ranks(file_);
    result_.is_truncated |= !input_.is_last_whole;
    return std::move(result_);
  }

 private:
  void end_run() {
    ranks_unknown_ |= finish(run_, result_);
    run_.rows.clear();
  }

  void note_program(std::string_view line) {
    const auto kind = kind_in(line);
    if (!kind && !names_another(line)) return;
    end_run();
    run_ = {};
    run_.kind = kind;
    run_.skipped = !kind;
  }

  /// Whether the line is one of the tests' own.
  bool comment(std::string_view line, const std::vector<std::string>& words) {
    const auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
    if (has("Collective test concluded")) return true;
    if (has("Collective test starting")) {
      note_program(line);
      return true;
    }
    if (has("nccl-tests version")) {
      result_.version = line.substr(line.find("nccl-tests"));
      return true;
    }
    if (words.front() == "nThread") {  // the next run's settings
      end_run();
      run_.ranks = 0;
      run_.hosts.clear();
      run_.columns.clear();
      return true;
    }
    if (words.size() > 2 && words.front() == "Rank" && has(" Pid ")) {
      ++run_.ranks;
      const auto on = std::find(words.begin(), words.end(), "on");
      if (on != words.end() && std::next(on) != words.end()) run_.hosts.insert(*std::next(on));
      const std::size_t end_of_bus = line.find("] ");
      if (end_of_bus != std::string::npos) result_.device = line.substr(end_of_bus + 2);
      return true;
    }
    if (!has("busbw") || !has("algbw")) return false;
    end_run();
    run_.columns = words;
    return true;
  }

  /// The program of a run whose beginning was not kept, from the line at its end.
  std::optional<OpKind> concluded() const {
    for (std::size_t i = at_; i < input_.lines.size(); ++i) {
      const std::string& line = input_.lines[i];
      if (line.find("Collective test concluded") != std::string::npos) return kind_in(line);
      if (line.find("busbw") != std::string::npos) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Value of the `nth` column of that name.
  std::optional<double> value(const std::vector<std::string>& words, const std::string& name, int nth) const {
    for (std::size_t i = 0; i < run_.columns.size() && i < words.size(); ++i) {
      if (run_.columns[i] == name && nth-- == 0) return number_of(words[i]);
    }
    return std::nullopt;
  }

  void row(const std::string& line, const std::vector<std::string>& words) {
    if (run_.skipped) return;
    if (words.size() < run_.columns.size()) {
      if (at_ + 1 == input_.lines.size() && !input_.is_last_whole) return;
      refuse(file_, fmt::format("\"{}\" has {} columns of {}", line, words.size(), run_.columns.size()));
    }
    if (!run_.kind) run_.kind = concluded();
    if (!run_.kind) {
      refuse(file_,
             "the collective is not told; keep the command or the line \"Collective test starting\", or name the "
             "file after it (all_reduce_perf.txt)");
    }
    for (const int side : {0, 1}) {
      const char* time_column = value(words, "time", side) ? "time" : "cputime";
      const auto size = value(words, run_.columns.front() == "bytes" ? "bytes" : "size", 0),
                 micros = value(words, time_column, side);
      if (!size || !micros || *size <= 0 || *micros <= 0) continue;
      for (const char* wrong : {"#wrong", "wrong"}) {
        if (value(words, wrong, side).value_or(0) > 0) return;
      }
      run_.rows.push_back(
          {*size, *micros * kMicro, value(words, "algbw", side).value_or(0), value(words, "busbw", side).value_or(0)});
      return;
    }
  }

  std::string file_;
  TextLines input_;
  std::size_t at_ = 0;  // line
  Run run_;
  bool ranks_unknown_ = false;
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
  Run run;
  const json config = list.head.value("config", json::object());
  for (const json& device : config.value("devices", json::array())) {
    ++run.ranks;
    run.hosts.insert(device.value("hostname", ""));
    result.device = device.value("device_info", result.device);
  }
  run.kind = kind_in(file);
  for (const json& argument : list.head.value("args", json::array())) {
    if (argument.is_string() && !run.kind) run.kind = kind_in(argument.get<std::string>());
  }
  if (!run.kind) refuse(file, "#/args names no collective of a training (all_reduce_perf, reduce_scatter_perf, …)");
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
      run.rows.push_back({size, micros * kMicro, number_at(*timed, {"alg_bw"}), number_at(*timed, {"bus_bw"})});
      break;
    }
  }
  if (finish(run, result)) refuse_ranks(file);
  return result;
}

}  // namespace

CollectiveTimes read_nccl_tests(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  CollectiveTimes result = is_json ? read_json(text, file) : NcclTestsReader(text, file).read();
  if (result.times.empty()) {
    refuse(file, "holds no complete row of a collective that a training uses; was the test cut short?");
  }
  return result;
}

bool is_nccl_tests(const FileText& file) {
  switch (file.form()) {
    case FileText::Form::kText:
      return has(file.head(), "algbw") && has(file.head(), "busbw");
    case FileText::Form::kJson:
      return !is_chrome_trace(file) && (has(file.whole(), "\"out_of_place\"") || has(file.whole(), "\"nccl_version\""));
    case FileText::Form::kSqlite:
      break;
  }
  return false;
}

}  // namespace trivium::calibration::imports
