#include "calibration/foreign/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/refuse.h"
#include "base/units.h"
#include "calibration/foreign/rank_in_name.h"
#include "calibration/measurements/pickle.h"
#include "calibration/measurements/quantities.h"

namespace trivium::calibration::foreign {
namespace {

using base::refuse;
using imports::PickleNode;

constexpr std::array<std::string_view, kOwners> kOwnerNames{"parameters", "gathered", "optimizer",
                                                            "forward",    "backward", "other"};
constexpr std::size_t kSitesShown = 5;

std::int64_t whole(const PickleNode& node, std::string_view key) {
  const PickleNode* found = node.member(key);
  return found == nullptr ? 0 : found->integer().value_or(0);
}

std::string words(const PickleNode& node, std::string_view key) {
  const PickleNode* found = node.member(key);
  return found == nullptr ? std::string() : found->text();
}

const PickleNode::List& list(const PickleNode& node, std::string_view key) {
  static const PickleNode::List kNothing;
  const PickleNode* found = node.member(key);
  return found == nullptr ? kNothing : found->elements();
}

struct Frame {
  std::string function, file;
  std::int64_t line = 0;
};

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Innermost first. What runs inside a backward pass belongs to it, a forward that is run again too.
Owner owner_of(const std::vector<Frame>& frames) {
  bool forward = false, backward = false, building = false;
  for (const Frame& frame : frames) {
    const bool of_fsdp = holds(frame.file, "/fsdp/");
    if (of_fsdp && (holds(frame.function, "all_gather") || holds(frame.function, "unshard") ||
                    holds(frame.function, "init_unsharded"))) {
      return Owner::kGathered;
    }
    if (holds(frame.file, "/optim/") || holds(frame.file, "optimizer")) return Owner::kOptimizer;
    backward = backward || holds(frame.function, "backward");
    forward = forward || frame.function == "forward" || frame.function == "_call_impl";
    building = building || frame.function == "__init__" || frame.function == "to_empty" || frame.function == "_apply" ||
               frame.function == "init_weights" || holds(frame.function, "fully_shard");
  }
  if (backward) return Owner::kBackward;
  if (forward) return Owner::kForward;
  return building ? Owner::kParameters : Owner::kOther;
}

std::string site_of(const std::vector<Frame>& frames) {
  const auto own = std::ranges::find_if(frames, [](const Frame& frame) {
    return !frame.file.empty() && !holds(frame.file, "/torch/") && frame.file != "??";
  });
  if (own == frames.end() && frames.empty()) return "(stack not recorded)";
  const Frame& frame = own == frames.end() ? frames.front() : *own;
  return fmt::format("{}:{} {}", std::filesystem::path(frame.file).filename().string(), frame.line, frame.function);
}

struct Block {
  std::int64_t bytes = 0;
  const PickleNode* stack = nullptr;  // of the event, or of the block
};

// One device's events simulated backwards from what lies there now to the moment when most did.
class History {
 public:
  History(const PickleNode& root, std::int64_t device) {
    for (const PickleNode* segment : list(root, "segments")) {
      if (whole(*segment, "device") != device) continue;
      reserved_ += whole(*segment, "total_size");
      std::int64_t address = whole(*segment, "address");
      for (const PickleNode* block : list(*segment, "blocks")) {
        const std::int64_t at = block->member("address") != nullptr ? whole(*block, "address") : address;
        if (words(*block, "state").starts_with("active")) {
          live_[at] = {whole(*block, "size"), block->member("frames")};
          now_ += whole(*block, "size");
        }
        address += whole(*block, "size");
      }
    }
    const auto& traces = list(root, "device_traces");
    if (device < static_cast<std::int64_t>(traces.size()))
      events_ = &traces[static_cast<std::size_t>(device)]->elements();
  }

  std::int64_t reserved() const { return reserved_; }
  std::int64_t now() const { return now_; }
  std::int64_t events() const { return events_ == nullptr ? 0 : static_cast<std::int64_t>(events_->size()); }

  // Live blocks when most was allocated.
  std::unordered_map<std::int64_t, Block> at_peak() {
    std::int64_t level = now_, most = now_;
    std::size_t peak = static_cast<std::size_t>(events());  // after so many events
    for (std::size_t i = peak; i-- > 0;) {
      level -= change_of(*(*events_)[i]);
      if (level > most) most = level, peak = i;
    }
    for (std::size_t i = static_cast<std::size_t>(events()); i-- > peak;) undo(*(*events_)[i]);
    for (std::size_t i = peak; i-- > 0;) name_stack(*(*events_)[i]);
    return std::move(live_);
  }

  std::optional<std::int64_t> refused() const {
    for (std::int64_t i = events(); i-- > 0;) {
      const PickleNode& event = *(*events_)[static_cast<std::size_t>(i)];
      if (words(event, "action") == "oom") return whole(event, "size");
    }
    return std::nullopt;
  }

 private:
  // What is asked to be freed is counted until it is.
  static std::int64_t change_of(const PickleNode& event) {
    const std::string action = words(event, "action");
    if (action == "alloc") return whole(event, "size");
    return action == "free_completed" ? -whole(event, "size") : 0;
  }

  void undo(const PickleNode& event) {
    const std::string action = words(event, "action");
    const std::int64_t at = whole(event, "addr");
    if (action == "alloc") {
      live_.erase(at);
    } else if (action == "free_completed") {
      live_[at] = {whole(event, "size"), nullptr};  // its stack is that of the event that allocated it
    }
  }

  void name_stack(const PickleNode& event) {
    if (words(event, "action") != "alloc") return;
    const auto block = live_.find(whole(event, "addr"));
    if (block == live_.end()) return;
    const PickleNode* stack = block->second.stack;
    if (stack == nullptr || stack->elements().empty()) block->second.stack = event.member("frames");
  }

  std::int64_t reserved_ = 0, now_ = 0;
  std::unordered_map<std::int64_t, Block> live_;  // by address
  const PickleNode::List* events_ = nullptr;
};

std::vector<Frame> frames_of(const PickleNode* stack) {
  std::vector<Frame> frames;
  if (stack == nullptr) return frames;
  for (const PickleNode* frame : stack->elements()) {
    frames.push_back({words(*frame, "name"), words(*frame, "filename"), whole(*frame, "line")});
  }
  return frames;
}

// The device that allocated most of it.
std::int64_t fullest_device(const PickleNode& root) {
  std::map<std::int64_t, std::int64_t> allocated;
  for (const PickleNode* segment : list(root, "segments")) {
    allocated[whole(*segment, "device")] += whole(*segment, "total_size");
  }
  const auto most = std::ranges::max_element(allocated, {}, [](const auto& device) { return device.second; });
  return most == allocated.end() ? 0 : most->first;
}

}  // namespace

std::string_view name_of(Owner owner) { return kOwnerNames.at(static_cast<std::size_t>(owner)); }

bool is_memory_snapshot(std::string_view bytes) {
  constexpr std::size_t kHead = 1 << 20;
  return imports::is_pickle(bytes) && bytes.substr(0, kHead).find("segments") != std::string_view::npos &&
         (bytes.find("device_traces") != std::string_view::npos ||
          bytes.substr(0, kHead).find("segment_type") != std::string_view::npos);
}

MemorySnapshot read_memory_snapshot(std::string_view bytes, const std::string& file) {
  const imports::Pickle pickle = imports::read_pickle(bytes, file);
  if (pickle.root().member("segments") == nullptr) refuse(file, "is no memory snapshot of PyTorch: it has no segments");
  History history(pickle.root(), fullest_device(pickle.root()));
  MemorySnapshot snapshot;
  snapshot.file = file;
  snapshot.rank = rank_in_name(file);
  snapshot.reserved_bytes = history.reserved();
  snapshot.events = history.events();
  snapshot.refused_bytes = history.refused();
  std::map<std::string, AllocationSite> sites;
  for (const auto& [address, block] : history.at_peak()) {
    const std::vector<Frame> frames = frames_of(block.stack);
    const Owner owner = owner_of(frames);
    snapshot.peak_bytes += block.bytes;
    snapshot.at_peak[owner] += block.bytes;
    const std::string at = site_of(frames);
    AllocationSite& site = sites[at + std::string(name_of(owner))];
    site.at = at;
    site.owner = owner;
    site.bytes += block.bytes;
    ++site.blocks;
  }
  if (snapshot.peak_bytes == 0) refuse(file, "nothing was allocated in it");
  for (auto& [key, site] : sites) snapshot.sites.push_back(std::move(site));
  std::ranges::stable_sort(snapshot.sites, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return snapshot;
}

namespace {

struct ComparedPart {
  std::string what;
  std::int64_t measured = 0, predicted = 0;
};

// Gathered parameters lie in the plan's workspace, and so do a backward's temporaries; gradients are a part of their
// own there.
std::vector<ComparedPart> parts_of(const MemorySnapshot& snapshot, const simulator::StageMemory& plan) {
  const auto at = [&](Owner owner) {
    const auto found = snapshot.at_peak.find(owner);
    return found == snapshot.at_peak.end() ? 0 : found->second;
  };
  return {{"parameters", at(Owner::kParameters), plan.parameters},
          {"optimizer", at(Owner::kOptimizer), plan.optimizer},
          {"forward: activations", at(Owner::kForward), plan.activations},
          {"backward, gathered: gradients, workspace", at(Owner::kBackward) + at(Owner::kGathered),
           plan.gradients + plan.workspace},
          {"not told by a stack", at(Owner::kOther), 0}};
}

std::string size_text(std::int64_t bytes) { return base::to_text(base::Bytes(static_cast<double>(bytes))); }

}  // namespace

nlohmann::json to_json(const MemorySnapshot& snapshot, const std::optional<simulator::StageMemory>& predicted) {
  nlohmann::json json{
      {"schema", "trivium.memory-comparison/1"},
      {"file", snapshot.file},
      {"rank", snapshot.rank ? nlohmann::json(*snapshot.rank) : nlohmann::json()},
      {"peak_bytes", snapshot.peak_bytes},
      {"reserved_bytes", snapshot.reserved_bytes},
      {"events", snapshot.events},
      {"refused_bytes", snapshot.refused_bytes ? nlohmann::json(*snapshot.refused_bytes) : nlohmann::json()},
      {"predicted_bytes", predicted ? nlohmann::json(predicted->total() - predicted->reserved) : nlohmann::json()},
      {"owners", nlohmann::json::object()},
      {"parts", nlohmann::json::array()},
      {"sites", nlohmann::json::array()}};
  for (const auto& [owner, bytes] : snapshot.at_peak) json["owners"][std::string(name_of(owner))] = bytes;
  if (predicted) {
    for (const ComparedPart& part : parts_of(snapshot, *predicted)) {
      json["parts"].push_back(
          {{"what", part.what}, {"measured_bytes", part.measured}, {"predicted_bytes", part.predicted}});
    }
  }
  for (std::size_t i = 0; i < std::min(kSitesShown, snapshot.sites.size()); ++i) {
    const AllocationSite& site = snapshot.sites[i];
    json["sites"].push_back(
        {{"at", site.at}, {"owner", name_of(site.owner)}, {"bytes", site.bytes}, {"blocks", site.blocks}});
  }
  return json;
}

std::string to_text(const MemorySnapshot& snapshot, const std::optional<simulator::StageMemory>& predicted) {
  std::string text = fmt::format("{}: {} allocated at most", snapshot.file, size_text(snapshot.peak_bytes));
  if (predicted) {
    const std::int64_t plan = predicted->total() - predicted->reserved;
    text += fmt::format(", {} by the plan ({:+.1f} %)", size_text(plan),
                        kPercent * (static_cast<double>(plan) / static_cast<double>(snapshot.peak_bytes) - 1));
  }
  text += fmt::format("; the allocator holds {}\n", size_text(snapshot.reserved_bytes));
  if (snapshot.events == 0) text += "no history was recorded: this is what lay there when the snapshot was taken\n";
  if (snapshot.refused_bytes)
    text += fmt::format("it ran out of memory, asked for {}\n", size_text(*snapshot.refused_bytes));
  if (predicted) {
    text += fmt::format("\n  {:<42} {:>10} {:>10}\n", "at that moment", "measured", "predicted");
    for (const ComparedPart& part : parts_of(snapshot, *predicted)) {
      text += fmt::format("  {:<42} {:>10} {:>10}\n", part.what, size_text(part.measured), size_text(part.predicted));
    }
  }
  text += fmt::format("\n  {:<52} {:>11} {:>10} {:>7}\n", "allocated by, most first", "as", "size", "blocks");
  for (std::size_t i = 0; i < std::min(kSitesShown, snapshot.sites.size()); ++i) {
    const AllocationSite& site = snapshot.sites[i];
    text += fmt::format("  {:<52.52} {:>11} {:>10} {:>7}\n", site.at, name_of(site.owner), size_text(site.bytes),
                        site.blocks);
  }
  return text;
}

}  // namespace trivium::calibration::foreign
