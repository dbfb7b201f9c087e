#include "gui/timeline/spans/view_history.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kMostParts = 200;

}  // namespace

void ViewHistory::clear() {
  parts_.clear();
  at_ = 0;
}

// Appends after the current entry, unless it is the same; forward history is dropped then.
void ViewHistory::note(const SeenPart& now) {
  if (!parts_.empty() && parts_[at_] == now) return;
  if (!parts_.empty()) parts_.resize(at_ + 1);
  parts_.push_back(now);
  if (parts_.size() > kMostParts) parts_.erase(parts_.begin());
  at_ = parts_.size() - 1;
}

void ViewHistory::jump(const SeenPart& from, const SeenPart& to) {
  note(from);
  if (from == to) return;
  parts_.resize(at_ + 1);
  note(to);
}

bool ViewHistory::can_go_back(const SeenPart& now) const {
  return at_ > 0 || (!parts_.empty() && !(parts_[at_] == now));
}

SeenPart ViewHistory::back(const SeenPart& now) {
  note(now);
  return parts_[--at_];
}

SeenPart ViewHistory::forward() { return parts_[++at_]; }

}  // namespace trivium::gui
