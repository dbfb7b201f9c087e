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

std::string text_of(const PickleNode& node, const char* key) {
  const PickleNode* found = node.member(key);
  return found != nullptr ? found->text() : std::string();
}

std::int64_t integer_of(const PickleNode& node, const char* key) {
  const PickleNode* found = node.member(key);
  return found != nullptr ? found->integer().value_or(0) : 0;
}

bool flag_of(const PickleNode& node, const char* key) {
  const PickleNode* found = node.member(key);
  return found != nullptr && found->flag().value_or(false);
}

const PickleNode::List& list_of(const PickleNode& node, const char* key) {
  static const PickleNode::List kNothing;
  const PickleNode* found = node.member(key);
  return found != nullptr ? found->elements() : kNothing;
}

// "4096x1024 BFloat16, 8 Float"
std::string shape_of(const PickleNode& entry) {
  std::vector<std::string> tensors;
  const PickleNode::List& types = list_of(entry, "input_dtypes");
  for (const PickleNode* tensor : list_of(entry, "input_sizes")) {
    std::vector<std::int64_t> extents;
    for (const PickleNode* extent : tensor->elements()) extents.push_back(extent->integer().value_or(0));
    const std::string type = tensors.size() < types.size() ? " " + types[tensors.size()]->text() : std::string();
    tensors.push_back(fmt::format("{}{}", fmt::join(extents, "x"), type));
  }
  return fmt::format("{}", fmt::join(tensors, ", "));
}

std::string place_of(const PickleNode& entry) {
  for (const PickleNode* frame : list_of(entry, "frames")) {
    const std::string file = text_of(*frame, "filename");
    if (file.find("/torch/") != std::string::npos || file.empty()) continue;
    return fmt::format("{}:{} {}", std::filesystem::path(file).filename().string(), integer_of(*frame, "line"),
                       text_of(*frame, "name"));
  }
  return {};
}

RecordedCall call_of(const PickleNode& entry) {
  RecordedCall call;
  call.transfer = flag_of(entry, "is_p2p");
  call.sequence = integer_of(entry, call.transfer ? "p2p_seq_id" : "collective_seq_id");
  call.name = text_of(entry, "profiling_name");
  call.shape = shape_of(entry);
  // Gloo leaves the state at "scheduled"; whatever waited for the end retires the entry.
  call.done = text_of(entry, "state") == "completed" || flag_of(entry, "retired");
  call.created_ns = integer_of(entry, "time_created_ns");
  call.at = place_of(entry);
  return call;
}

RecordedGroup group_of(const PickleNode& root, const PickleNode& entry, const std::string& file) {
  const PickleNode::List& names = list_of(entry, "process_group");
  if (names.empty()) refuse(file, "an entry names no process group; PyTorch does so from 2.5 on");
  RecordedGroup group{names[0]->text(), {}};
  if (const PickleNode* config = root.member("pg_config")) {
    if (const PickleNode* told = config->member(group.name)) group.ranks = numbers_in(text_of(*told, "ranks"));
  }
  const std::string described = names.size() > 1 ? names[1]->text() : std::string();
  if (!described.empty() && described != "undefined") group.name += " " + described;
  return group;
}

FlightDump dump_of(const PickleNode& root, const std::string& file) {
  FlightDump dump;
  dump.file = file;
  dump.rank = rank_in_name(file);
  if (root.member("entries") == nullptr) {
    refuse(file, "is no dump of PyTorch's Flight Recorder: it has no entries");
  }
  for (const PickleNode* entry : list_of(root, "entries")) {
    dump.calls[group_of(root, *entry, file)].push_back(call_of(*entry));
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
  if (imports::is_pickle(bytes)) return dump_of(imports::read_pickle(bytes, file).root(), file);
  const nlohmann::json json = nlohmann::json::parse(bytes, nullptr, false);
  if (json.is_discarded()) refuse(file, "is no JSON; was it cut?");
  return dump_of(imports::plain_data(json).root(), file);
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
  std::map<RecordedGroup, Calls> groups;
  int place = 0;
  for (const FlightDump& dump : dumps) {
    const int rank = dump.rank.value_or(place);
    ++place;
    for (const auto& [group, calls] : dump.calls) {
      groups[group][rank] = &calls;
    }
  }
  std::vector<Stall> stalls;
  for (const auto& [group, calls] : groups) {
    std::set<int> members(group.ranks.begin(), group.ranks.end());
    for (const auto& [rank, list] : calls) members.insert(rank);
    if (auto stall = stall_of(group.name, calls, {members.begin(), members.end()})) {
      stall->what = words_of(*stall, calls);
      stalls.push_back(std::move(*stall));
    }
    add_transfers(group.name, calls, stalls);
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
  std::set<RecordedGroup> groups;
  for (const FlightDump& dump : dumps) {
    for (const auto& [group, calls] : dump.calls) groups.insert(group);
  }
  std::string text = fmt::format("{} dumps, {} groups\n", dumps.size(), groups.size());
  if (stalls.empty()) return text + "nobody waits: all that was begun is done\n";
  for (const Stall& stall : stalls) text += fmt::format("{}{}\n", stall.follows ? "in consequence, " : "", stall.what);
  return text;
}

}  // namespace trivium::calibration::foreign
