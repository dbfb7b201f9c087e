#include "gui/timeline/spans/selection.h"

#include <algorithm>
#include <numeric>

namespace trivium::gui {
namespace {

/// Sums by category over tracks.
class Sums {
 public:
  Sums(const SpanStore& store, std::int64_t begin, std::int64_t end)
      : store_(store),
        begin_(begin),
        end_(end),
        ps_(store.categories().size()),
        before_(ps_.size()),
        spans_(ps_.size()) {}

  void add(std::uint32_t track) {
    store_.add_covered_before(track, end_, ps_);
    store_.add_covered_before(track, begin_, before_);
    const std::uint32_t from = store_.first_ending_after(track, begin_), to = store_.first_starting_at(track, end_);
    if (from < to) ranges_.push_back({from, to});
  }

  std::int64_t ps() const {
    return std::accumulate(ps_.begin(), ps_.end(), std::int64_t{0}) -
           std::accumulate(before_.begin(), before_.end(), std::int64_t{0});
  }

  std::vector<Share> shares() {
    count();
    std::vector<Share> shares;
    for (std::size_t c = 0; c < ps_.size(); ++c) {
      const Share share{static_cast<int>(c), ps_[c] - before_[c], spans_[c]};
      if (share.ps > 0 || share.spans > 0) shares.push_back(share);
    }
    std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.ps > b.ps; });
    return shares;
  }

 private:
  struct Range {
    std::uint32_t from, to;
  };
  void count() {
    std::uint64_t all = 0;
    for (const Range& range : ranges_) all += range.to - range.from;
    if (all > kCountedSpans) return;
    const auto kinds = store_.kinds();
    for (const Range& range : ranges_) {
      for (std::uint32_t s = range.from; s < range.to; ++s) ++spans_[kinds[s]];
    }
  }

  const SpanStore& store_;
  std::int64_t begin_, end_;
  std::vector<std::int64_t> ps_, before_;
  std::vector<std::uint64_t> spans_;
  std::vector<Range> ranges_;
};

struct RowRange {
  std::int32_t first, last;
};

Breakdown break_down(const SpanStore& store, const std::vector<RowRange>& ranges, std::int64_t begin_ps,
                     std::int64_t end_ps) {
  Breakdown result;
  result.begin_ps = begin_ps;
  result.end_ps = end_ps;
  Sums shown(store, begin_ps, end_ps), beside(store, begin_ps, end_ps);
  for (const RowRange& range : ranges) {
    for (std::int32_t r = range.first; r < range.last; ++r) {
      const Row& row = store.rows()[static_cast<std::size_t>(r)];
      const bool only = range.last == range.first + 1;
      if (!row.work && !only) continue;
      const bool stands = row.primary || only;
      for (std::uint32_t t = 0; t < row.tracks; ++t) {
        (stands ? shown : beside).add(row.first_track + t);
        if (stands) ++result.tracks;
      }
    }
  }
  result.idle_ps = result.total_ps() - shown.ps();
  result.shares = shown.shares();
  result.beside = beside.shares();
  return result;
}

}  // namespace

Breakdown break_down(const SpanStore& store, std::int32_t row, std::int64_t begin_ps, std::int64_t end_ps) {
  return break_down(store, std::vector{row}, begin_ps, end_ps);
}

Breakdown break_down(const SpanStore& store, const std::vector<std::int32_t>& rows, std::int64_t begin_ps,
                     std::int64_t end_ps) {
  std::vector<RowRange> ranges;
  for (const std::int32_t row : rows) ranges.push_back({row, store.rows()[static_cast<std::size_t>(row)].end});
  return break_down(store, ranges, begin_ps, end_ps);
}

Breakdown break_down(const SpanStore& store, std::int64_t begin_ps, std::int64_t end_ps) {
  return break_down(store, std::vector<RowRange>{{0, static_cast<std::int32_t>(store.rows().size())}}, begin_ps,
                    end_ps);
}

}  // namespace trivium::gui
