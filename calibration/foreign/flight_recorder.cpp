#include "calibration/foreign/flight_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/refuse.h"
#include "calibration/foreign/rank_in_name.h"
#include "calibration/measurements/pickle.h"

namespace trivium::calibration::foreign {
namespace {

using base::refuse;
using imports::PickleNode;

// "[0, 1]" as the dump writes ranks.
std::vector<int> numbers_in(std::string_view text) {
  std::vector<int> numbers;
  for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string_view::npos;) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (error == std::errc()) numbers.push_back(number);
    at = static_cast<std::size_t>(end - text.data());
  }
  return numbers;
}

// JSON and pickles behind one face.
class JsonSide {
 public:
  explicit JsonSide(const nlohmann::json& json) : json_(&json) {}
  std::optional<JsonSide> member(const char* key) const {
    if (!json_->is_object() || !json_->contains(key)) return std::nullopt;
    return JsonSide((*json_)[key]);
  }
  std::vector<JsonSide> elements() const {
    std::vector<JsonSide> all;
    if (json_->is_array()) {
      for (const nlohmann::json& element : *json_) all.emplace_back(element);
    }
    return all;
  }
  std::string text() const { return json_->is_string() ? json_->get<std::string>() : std::string(); }
  std::int64_t integer() const { return json_->is_number_integer() ? json_->get<std::int64_t>() : 0; }
  bool flag() const { return json_->is_boolean() && json_->get<bool>(); }

 private:
  const nlohmann::json* json_;
};

class PickleSide {
 public:
  explicit PickleSide(const PickleNode& node) : node_(&node) {}
  std::optional<PickleSide> member(const char* key) const {
    const PickleNode* found = node_->member(key);
    return found == nullptr ? std::nullopt : std::optional(PickleSide(*found));
  }
  std::vector<PickleSide> elements() const {
    std::vector<PickleSide> all;
    for (const PickleNode* element : node_->elements()) all.emplace_back(*element);
    return all;
  }
  std::string text() const { return node_->text(); }
  std::int64_t integer() const { return node_->integer().value_or(0); }
  bool flag() const { return node_->flag().value_or(false); }

 private:
  const PickleNode* node_;
};

template <class Side>
std::string text_of(const Side& side, const char* key) {
  const auto found = side.member(key);
  return found ? found->text() : std::string();
}

template <class Side>
std::int64_t integer_of(const Side& side, const char* key) {
  const auto found = side.member(key);
  return found ? found->integer() : 0;
}

// "4096x1024 BFloat16, 8 Float"
template <class Side>
std::string shape_of(const Side& entry) {
  std::vector<std::string> tensors;
  const auto sizes = entry.member("input_sizes");
  const auto types = entry.member("input_dtypes");
  if (!sizes) return {};
  const auto kinds = types ? types->elements() : std::vector<Side>();
  for (const Side& tensor : sizes->elements()) {
    std::vector<std::int64_t> extents;
    for (const Side& extent : tensor.elements()) extents.push_back(extent.integer());
    const std::string kind = tensors.size() < kinds.size() ? " " + kinds[tensors.size()].text() : std::string();
    tensors.push_back(fmt::format("{}{}", fmt::join(extents, "x"), kind));
  }
  return fmt::format("{}", fmt::join(tensors, ", "));
}

template <class Side>
std::string place_of(const Side& entry) {
  const auto frames = entry.member("frames");
  if (!frames) return {};
  for (const Side& frame : frames->elements()) {
    const std::string file = text_of(frame, "filename");
    if (file.find("/torch/") != std::string::npos || file.empty()) continue;
    return fmt::format("{}:{} {}", std::filesystem::path(file).filename().string(), integer_of(frame, "line"),
                       text_of(frame, "name"));
  }
  return {};
}

template <class Side>
RecordedCall call_of(const Side& entry) {
  RecordedCall call;
  const auto transfer = entry.member("is_p2p"), retired = entry.member("retired");
  call.transfer = transfer && transfer->flag();
  call.sequence = integer_of(entry, call.transfer ? "p2p_seq_id" : "collective_seq_id");
  call.name = text_of(entry, "profiling_name");
  call.shape = shape_of(entry);
  // Gloo leaves the state at "scheduled"; whatever waited for the end retires the entry.
  call.done = text_of(entry, "state") == "completed" || (retired && retired->flag());
  call.created_ns = integer_of(entry, "time_created_ns");
  call.at = place_of(entry);
  return call;
}

template <class Side>
FlightDump dump_of(const Side& root, const std::string& file) {
  FlightDump dump;
  dump.file = file;
  dump.rank = rank_in_name(file);
  const auto entries = root.member("entries");
  if (!entries) refuse(file, "is no dump of PyTorch's Flight Recorder: it has no entries");
  for (const Side& entry : entries->elements()) {
    const auto group = entry.member("process_group");
    const auto names = group ? group->elements() : std::vector<Side>();
    if (names.empty()) refuse(file, "an entry names no process group; PyTorch does so from 2.5 on");
    const std::string name = names.size() > 1 && !names[1].text().empty() && names[1].text() != "undefined"
                                 ? names[0].text() + " " + names[1].text()
                                 : names[0].text();
    dump.calls[name].push_back(call_of(entry));
    const auto config = root.member("pg_config");
    const auto told = config ? config->member(names[0].text().c_str()) : std::optional<Side>();
    if (told && !dump.members.contains(name)) dump.members[name] = numbers_in(text_of(*told, "ranks"));
  }
  return dump;
}

}  // namespace

bool is_flight_dump(std::string_view bytes) {
  constexpr std::size_t kHead = 1 << 16;
  const std::string_view head = bytes.substr(0, kHead),
                         tail = bytes.substr(bytes.size() - std::min(bytes.size(), kHead));
  const auto holds = [&](std::string_view word) {
    return head.find(word) != std::string_view::npos || tail.find(word) != std::string_view::npos;
  };
  const bool form = imports::is_pickle(bytes) || head.starts_with('{');
  return form && holds("pg_config") && holds("entries");
}

FlightDump read_flight_dump(std::string_view bytes, const std::string& file) {
  if (imports::is_pickle(bytes)) return dump_of(PickleSide(imports::read_pickle(bytes, file).root()), file);
  const nlohmann::json json = nlohmann::json::parse(bytes, nullptr, false);
  if (json.is_discarded()) refuse(file, "is no JSON; was it cut?");
  return dump_of(JsonSide(json), file);
}

namespace {

using Calls = std::map<int, const std::vector<RecordedCall>*>;  // by rank

const RecordedCall* last_of(const std::vector<RecordedCall>& calls) {
  const RecordedCall* last = nullptr;
  for (const RecordedCall& call : calls) {
    if (!call.transfer && (last == nullptr || call.sequence > last->sequence)) last = &call;
  }
  return last;
}

const RecordedCall* numbered(const std::vector<RecordedCall>& calls, std::int64_t sequence) {
  const auto found = std::ranges::find_if(
      calls, [&](const RecordedCall& call) { return !call.transfer && call.sequence == sequence; });
  return found == calls.end() ? nullptr : &*found;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string call_text(const RecordedCall& call) {
  return fmt::format("{} number {}{}{}", call.name, call.sequence, call.shape.empty() ? "" : " of " + call.shape,
                     call.at.empty() ? "" : " (" + call.at + ")");
}

// The first collective of a group that not all of its ranks are through with.
std::optional<Stall> stall_of(const std::string& group, const Calls& calls, const std::vector<int>& members) {
  std::int64_t first_open = 0;
  for (const auto& [rank, list] : calls) {
    for (const RecordedCall& call : *list) {
      if (!call.transfer && !call.done && (first_open == 0 || call.sequence < first_open)) first_open = call.sequence;
    }
  }
  if (first_open == 0) return std::nullopt;
  Stall stall;
  stall.group = group;
  const RecordedCall* one = nullptr;
  for (const int rank : members) {
    const auto known = calls.find(rank);
    const RecordedCall* call = known == calls.end() ? nullptr : numbered(*known->second, first_open);
    if (call == nullptr) {
      const RecordedCall* last = known == calls.end() ? nullptr : last_of(*known->second);
      // A ring buffer forgets: what is older than all it holds was begun.
      if (last == nullptr || last->sequence < first_open) stall.missing.push_back(rank);
      continue;
    }
    if (call->done) continue;
    stall.waiting.push_back(rank);
    if (one != nullptr && (one->name != call->name || one->shape != call->shape)) stall.disagree = true;
    if (one == nullptr || call->created_ns < one->created_ns) one = call;
  }
  if (one == nullptr) return std::nullopt;
  stall.call = *one;
  return stall;
}

std::string words_of(const Stall& stall, const Calls& calls) {
  const std::string where = fmt::format("{} of group {}", call_text(stall.call), stall.group);
  if (stall.disagree) {
    std::string words = fmt::format("{} do not agree in group {}:", ranks_text(stall.waiting), stall.group);
    for (const int rank : stall.waiting) {
      words += fmt::format(" rank {} is in {};", rank, call_text(*numbered(*calls.at(rank), stall.call.sequence)));
    }
    words.back() = '.';
    return words;
  }
  if (stall.missing.empty()) {
    return fmt::format("{} are all in {}, which does not end: the network, a device or a dead process",
                       ranks_text(stall.waiting), where);
  }
  std::string words = fmt::format("{} {} in {} for {}", ranks_text(stall.waiting),
                                  stall.waiting.size() == 1 ? "waits" : "wait", where, ranks_text(stall.missing));
  for (const int rank : stall.missing) {
    const auto known = calls.find(rank);
    const RecordedCall* last = known == calls.end() ? nullptr : last_of(*known->second);
    words += last == nullptr ? fmt::format("; rank {} has begun nothing in this group", rank)
                             : fmt::format("; the last that rank {} began there is {}", rank, call_text(*last));
  }
  return words;
}

// A transfer that is under way tells its other end in its name alone ("nccl:recv 0<-1").
void add_transfers(const std::string& group, const Calls& calls, std::vector<Stall>& stalls) {
  for (const auto& [rank, list] : calls) {
    const auto open = std::ranges::find_if(*list, [](const RecordedCall& call) { return call.transfer && !call.done; });
    if (open == list->end()) continue;
    Stall stall;
    stall.group = group;
    stall.call = *open;
    stall.waiting = {rank};
    stall.what = fmt::format("rank {} waits in {} of group {}", rank, call_text(*open), group);
    stalls.push_back(std::move(stall));
  }
}

}  // namespace

std::vector<Stall> stalls_of(const std::vector<FlightDump>& dumps) {
  std::map<std::string, Calls> groups;
  std::map<std::string, std::set<int>> members;
  int place = 0;
  for (const FlightDump& dump : dumps) {
    const int rank = dump.rank.value_or(place);
    ++place;
    for (const auto& [group, calls] : dump.calls) {
      groups[group][rank] = &calls;
      members[group].insert(rank);
      const auto told = dump.members.find(group);
      if (told != dump.members.end()) members[group].insert(told->second.begin(), told->second.end());
    }
  }
  std::vector<Stall> stalls;
  for (const auto& [group, calls] : groups) {
    if (auto stall = stall_of(group, calls, {members[group].begin(), members[group].end()})) {
      stall->what = words_of(*stall, calls);
      stalls.push_back(std::move(*stall));
    }
    add_transfers(group, calls, stalls);
  }
  std::set<int> waiting;
  for (const Stall& stall : stalls) waiting.insert(stall.waiting.begin(), stall.waiting.end());
  for (Stall& stall : stalls) {
    stall.follows =
        !stall.missing.empty() && std::ranges::all_of(stall.missing, [&](int rank) { return waiting.contains(rank); });
  }
  std::ranges::stable_sort(stalls, [](const Stall& a, const Stall& b) {
    return std::pair(a.follows, a.call.created_ns) < std::pair(b.follows, b.call.created_ns);
  });
  return stalls;
}

nlohmann::json to_json(const std::vector<FlightDump>& dumps, const std::vector<Stall>& stalls) {
  nlohmann::json json{
      {"schema", "trivium.hang/1"}, {"dumps", nlohmann::json::array()}, {"stalls", nlohmann::json::array()}};
  int place = 0;
  for (const FlightDump& dump : dumps) {
    json["dumps"].push_back({{"file", dump.file}, {"rank", dump.rank.value_or(place)}});
    ++place;
  }
  for (const Stall& stall : stalls) {
    json["stalls"].push_back({{"what", stall.what},
                              {"group", stall.group},
                              {"call", stall.call.name},
                              {"sequence", stall.call.sequence},
                              {"shape", stall.call.shape},
                              {"at", stall.call.at},
                              {"waiting", stall.waiting},
                              {"missing", stall.missing},
                              {"disagree", stall.disagree},
                              {"follows", stall.follows}});
  }
  return json;
}

std::string to_text(const std::vector<FlightDump>& dumps, const std::vector<Stall>& stalls) {
  std::set<std::string> groups;
  for (const FlightDump& dump : dumps) {
    for (const auto& [group, calls] : dump.calls) groups.insert(group);
  }
  std::string text = fmt::format("{} dumps, {} groups\n", dumps.size(), groups.size());
  if (stalls.empty()) return text + "nobody waits: all that was begun is done\n";
  for (const Stall& stall : stalls) text += fmt::format("{}{}\n", stall.follows ? "in consequence, " : "", stall.what);
  return text;
}

}  // namespace trivium::calibration::foreign
