// The table of waiting transfer ends.
#include "runtime/inproc/transfers.h"

namespace trivium::runtime::inproc {

TransferEnd* TransferTable::match_or_leave(const TransferKey& key, TransferEnd& end) {
  Box& box = boxes_[static_cast<std::size_t>(key.destination)];
  const std::lock_guard lock(box.mutex);
  // An end of the same side cannot be there: its rank would still have this transfer in flight and refuse to post
  // another.
  const auto [place, is_first] = box.waiting.emplace(key, &end);
  if (is_first) return nullptr;
  TransferEnd* const other = place->second;
  box.waiting.erase(place);
  return other;
}

}  // namespace trivium::runtime::inproc
