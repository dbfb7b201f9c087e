#include "gui/timeline/spans/critical_path.h"

#include <algorithm>
#include <unordered_map>

#include "base/cancellation_point.h"

namespace trivium::gui {
namespace {

class Walker {
 public:
  Walker(const SpanStore& store, const std::stop_token& stop) : store_(store), cancellation_(stop) {
    for (const Flow& flow : store.flows()) {
      cancellation_.step();
      meets_.emplace(flow.from, flow.to);
      meets_.emplace(flow.to, flow.from);
    }
    tracks_of_device_.resize(store.rows().size());
    for (std::uint32_t t = 0; t < store.tracks().size(); ++t) {
      if (!is_work(store.tracks()[t])) continue;
      tracks_of_device_[static_cast<std::size_t>(store.device_of(store.tracks()[t].row))].push_back(t);
    }
  }

  std::vector<std::uint32_t> walk() {
    std::vector<std::uint32_t> path;
    std::vector<bool> visited(store_.size());
    std::uint32_t at = last();
    while (at != kNoSpan && !visited[at]) {
      cancellation_.step();
      visited[at] = true;
      path.push_back(at);
      at = before(at, visited);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  bool is_work(const Track& track) const { return store_.rows()[static_cast<std::size_t>(track.row)].work; }

  std::uint32_t last() const {
    std::uint32_t found = kNoSpan;
    for (const Track& track : store_.tracks()) {
      if (!is_work(track)) continue;
      for (std::uint32_t s = track.first + track.count; s > track.first; --s) {
        if (store_.is_waiting(s - 1)) continue;
        if (found == kNoSpan || store_.end_of(s - 1) > store_.end_of(found)) found = s - 1;
        break;
      }
    }
    return found;
  }

  /// All that starts together with a span, itself first.
  std::vector<std::uint32_t> meeting(std::uint32_t span) const {
    std::vector<std::uint32_t> members{span};
    for (std::size_t m = 0; m < members.size(); ++m) {
      const auto [from, to] = meets_.equal_range(members[m]);
      for (auto it = from; it != to; ++it) {
        if (std::find(members.begin(), members.end(), it->second) == members.end()) members.push_back(it->second);
      }
    }
    return members;
  }

  std::uint32_t before(std::uint32_t span, const std::vector<bool>& visited) {
    candidates_.clear();
    for (const std::uint32_t member : meeting(span)) add_device_predecessors(member, store_.start_of(span));
    std::uint32_t best = kNoSpan;
    for (const std::uint32_t c : candidates_) {
      if (c == span || visited[c] || store_.is_waiting(c) || store_.start_of(c) > store_.start_of(span)) continue;
      if (best == kNoSpan || store_.end_of(c) > store_.end_of(best)) best = c;
    }
    return best;
  }

  void add_device_predecessors(std::uint32_t span, std::int64_t begin) {
    const std::int32_t row = store_.tracks()[store_.track_of(span)].row;
    for (const std::uint32_t t : tracks_of_device_[static_cast<std::size_t>(store_.device_of(row))]) {
      std::uint32_t s = store_.first_ending_after(t, begin);
      while (s > store_.tracks()[t].first && store_.is_waiting(s - 1)) --s;
      if (s > store_.tracks()[t].first) candidates_.push_back(s - 1);
    }
  }

  const SpanStore& store_;
  base::CancellationPoint cancellation_;
  std::unordered_multimap<std::uint32_t, std::uint32_t> meets_;
  std::vector<std::vector<std::uint32_t>> tracks_of_device_;
  std::vector<std::uint32_t> candidates_;
};

}  // namespace

CriticalPath critical_path(const SpanStore& store, const std::stop_token& stop) {
  CriticalPath path;
  path.ps.assign(store.categories().size(), 0);
  path.begin_ps = store.begin();
  path.end_ps = store.end();
  path.spans = Walker(store, stop).walk();
  std::int64_t at = store.begin();
  for (const std::uint32_t span : path.spans) {
    path.idle_ps += std::max<std::int64_t>(0, store.start_of(span) - at);
    path.ps[static_cast<std::size_t>(store.category_of(span))] +=
        std::max<std::int64_t>(0, store.end_of(span) - std::max(at, store.start_of(span)));
    at = std::max(at, store.end_of(span));
  }
  path.idle_ps += store.end() - at;
  return path;
}

}  // namespace trivium::gui
