#include "gui/timeline/spans/flame.h"

#include <algorithm>
#include <unordered_map>

#include "base/cancellation_point.h"
#include "gui/timeline/spans/name_parts.h"

namespace trivium::gui {

using Level = FlameNode::Level;

class FlameBuilder {
 public:
  FlameBuilder(const SpanStore& store, const std::stop_token& stop)
      : store_(store),
        cancellation_(stop),
        phase_(alike(store.titles(), without_micro_batch)),
        segment_(alike(store.details(), layer_in)),
        op_(alike(store.details(), without_layer)) {
    for (const std::string& title : store.titles()) has_task_.push_back(without_micro_batch(title) != title);
    for (const std::string& detail : store.details()) {
      has_segment_.push_back(!layer_in(detail).empty());
      has_op_.push_back(!without_layer(detail).empty());
    }
    flame_.nodes_.emplace_back();
  }

  Flame build(const Stretch& stretch) {
    for (const std::uint32_t track : tracks_of(store_, stretch)) {
      const std::uint32_t to = store_.first_starting_at(track, stretch.end_ps);
      for (std::uint32_t s = store_.first_ending_after(track, stretch.begin_ps); s < to; ++s) {
        cancellation_.step();
        const std::int64_t ps =
            std::min(store_.end_of(s), stretch.end_ps) - std::max(store_.start_of(s), stretch.begin_ps);
        add(s, ps);
      }
    }
    link();
    colour();
    return std::move(flame_);
  }

 private:
  void add(std::uint32_t span, std::int64_t ps) {
    const std::uint32_t title = store_.title_of(span), detail = store_.detail_of(span);
    note(0, span, ps);
    if (store_.is_waiting(span)) return note(enter(0, Level::kPhase, kWaiting, span), span, ps);
    std::uint32_t at = enter(0, Level::kPhase, phase_[title], span);
    note(at, span, ps);
    const auto deeper = [&](bool has, Level level, std::uint32_t key) {
      if (!has) return;
      const std::uint32_t next = enter(at, level, key, span);
      if (next == at) return;
      at = next;
      note(at, span, ps);
    };
    deeper(has_task_[title], Level::kTask, title);
    deeper(has_segment_[detail], Level::kSegment, segment_[detail]);
    deeper(has_op_[detail], Level::kOp, op_[detail]);
  }

  /// The node itself once the limit of nodes is reached.
  std::uint32_t enter(std::uint32_t parent, Level level, std::uint32_t key, std::uint32_t span) {
    const Key whole{static_cast<std::uint64_t>(parent) << 32 | key, level};
    const auto known = known_.find(whole);
    if (known != known_.end()) return known->second;
    if (flame_.nodes_.size() >= kMostFlameNodes) {
      flame_.cut_ = true;
      return parent;
    }
    const auto made = static_cast<std::uint32_t>(flame_.nodes_.size());
    FlameNode node;
    node.level = level;
    node.parent = parent;
    node.like = span;
    node.category = static_cast<std::uint8_t>(store_.category_of(span));
    flame_.nodes_.push_back(node);
    known_.emplace(whole, made);
    return made;
  }

  void note(std::uint32_t at, std::uint32_t span, std::int64_t ps) {
    FlameNode& node = flame_.nodes_[at];
    node.ps += ps;
    ++node.spans;
    if (node.like == kNoSpan || store_.start_of(span) < store_.start_of(node.like)) node.like = span;
  }

  // Children side by side, in order of time.
  void link() {
    const auto count = flame_.nodes_.size();
    flame_.first_child_.assign(count + 1, 0);
    for (std::size_t n = 1; n < count; ++n) ++flame_.first_child_[flame_.nodes_[n].parent + 1];
    for (std::size_t n = 0; n < count; ++n) flame_.first_child_[n + 1] += flame_.first_child_[n];
    flame_.children_.resize(count - 1);
    std::vector<std::uint32_t> next(flame_.first_child_.begin(), flame_.first_child_.end() - 1);
    for (std::uint32_t n = 1; n < count; ++n) flame_.children_[next[flame_.nodes_[n].parent]++] = n;
    for (std::size_t n = 0; n < count; ++n) {
      std::sort(flame_.children_.begin() + flame_.first_child_[n],
                flame_.children_.begin() + flame_.first_child_[n + 1],
                [&](std::uint32_t a, std::uint32_t b) { return starts(a) < starts(b); });
    }
  }

  std::pair<std::int64_t, std::uint32_t> starts(std::uint32_t node) const {
    return {store_.start_of(flame_.nodes_[node].like), node};
  }

  // Children are made after their parents.
  void colour() {
    std::vector<std::int64_t> most(flame_.nodes_.size(), -1);
    for (std::size_t n = flame_.nodes_.size(); n-- > 1;) {
      const FlameNode& node = flame_.nodes_[n];
      if (node.ps <= most[node.parent]) continue;
      most[node.parent] = node.ps;
      flame_.nodes_[node.parent].category = node.category;
    }
  }

  struct Key {
    std::uint64_t place;
    Level level;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(key.place * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(key.level));
    }
  };
  static constexpr std::uint32_t kWaiting = kNoSpan;
  const SpanStore& store_;
  base::CancellationPoint cancellation_;
  std::vector<std::uint32_t> phase_, segment_, op_;
  std::vector<char> has_task_, has_segment_, has_op_;
  std::unordered_map<Key, std::uint32_t, Hash> known_;
  Flame flame_;
};

std::string Flame::name(std::uint32_t n, const SpanStore& store) const {
  const FlameNode& node = nodes_[n];
  if (node.level == Level::kAll || node.like == kNoSpan) return "";
  if (store.is_waiting(node.like)) return "waiting";
  const std::string& title = store.titles()[store.title_of(node.like)];
  const std::string& detail = store.details()[store.detail_of(node.like)];
  switch (node.level) {
    case Level::kPhase:
      return without_micro_batch(title);
    case Level::kTask:
      return title.substr(without_micro_batch(title).size() + 1);
    case Level::kSegment:
      return layer_in(detail);
    default:
      return without_layer(detail);
  }
}

std::string Flame::full_name(std::uint32_t n, const SpanStore& store) const {
  std::string words;
  for (; n != 0; n = nodes_[n].parent) words = name(n, store) + (words.empty() ? "" : " ") + words;
  return words;
}

Flame flame_of(const SpanStore& store, const Stretch& stretch, const std::stop_token& stop) {
  return FlameBuilder(store, stop).build(stretch);
}

}  // namespace trivium::gui
