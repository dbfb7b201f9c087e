#include "tests/calibration/foreign/made_pickle.h"

namespace trivium::calibration::foreign {
namespace {

// Protocol 2, by hand: each returns what pushes one value.
std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> static_cast<unsigned>(8 * i) & 0xffU);
  return text;
}

std::string pickled_text(const std::string& text) { return "X" + little(text.size(), 4) + text; }
std::string pickled_number(std::int64_t value) { return "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8); }

std::string pickled_list(const std::vector<std::string>& items) {
  std::string text = "](";
  for (const std::string& item : items) text += item;
  return text + "e";
}

std::string pickled_map(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text = "}(";
  for (const auto& [key, value] : members) text += pickled_text(key) + value;
  return text + "u";
}

std::string pickled_stack(const MadeSnapshot::Call& call) {
  return pickled_list({pickled_map(
      {{"name", pickled_text(call.function)}, {"filename", pickled_text(call.file)}, {"line", pickled_number(1)}})});
}

}  // namespace

std::int64_t MadeSnapshot::before(std::int64_t bytes, Call call) {
  const std::int64_t address = next_;
  next_ += bytes;
  live_[address] = {bytes, std::move(call)};
  return address;
}

std::int64_t MadeSnapshot::alloc(std::int64_t bytes, Call call) {
  const std::int64_t address = before(bytes, call);
  events_.push_back({"alloc", address, bytes, std::move(call)});
  return address;
}

void MadeSnapshot::free(std::int64_t address) {
  const auto [bytes, call] = live_.at(address);
  live_.erase(address);
  events_.push_back({"free_requested", address, bytes, call});
  events_.push_back({"free_completed", address, bytes, call});
}

std::string MadeSnapshot::pickled() const {
  std::vector<std::string> blocks, events;
  std::int64_t total = 0;
  for (const auto& [address, block] : live_) {
    total += block.first;
    blocks.push_back(pickled_map({{"address", pickled_number(address)},
                                  {"size", pickled_number(block.first)},
                                  {"state", pickled_text("active_allocated")},
                                  {"frames", pickled_stack(block.second)}}));
  }
  blocks.push_back(pickled_map({{"address", pickled_number(1)},
                                {"size", pickled_number(12345)},
                                {"state", pickled_text("inactive")},
                                {"frames", pickled_list({})}}));
  for (const Event& event : events_) {
    events.push_back(pickled_map({{"action", pickled_text(event.action)},
                                  {"addr", pickled_number(event.address)},
                                  {"size", pickled_number(event.bytes)},
                                  {"frames", pickled_stack(event.call)}}));
  }
  const std::string segment = pickled_map({{"device", pickled_number(0)},
                                           {"address", pickled_number(4096)},
                                           {"total_size", pickled_number(total + 12345)},
                                           {"segment_type", pickled_text("large")},
                                           {"blocks", pickled_list(blocks)}});
  return "\x80\x02" +
         pickled_map({{"segments", pickled_list({segment})}, {"device_traces", pickled_list({pickled_list(events)})}}) +
         ".";
}

}  // namespace trivium::calibration::foreign
