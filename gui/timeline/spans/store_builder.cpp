#include "gui/timeline/spans/store_builder.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace trivium::gui {
namespace {

constexpr std::size_t kFewTracks = 8;  // added up one by one when drawn
constexpr std::int64_t kMostBins = std::int64_t{1} << 17, kFewestBins = 1024, kSpansPerBin = 4;

}  // namespace

std::uint32_t Names::number(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(names_.back(), number);
  return number;
}

std::vector<std::string> Names::take() {
  numbers_.clear();
  std::vector<std::string> names(std::make_move_iterator(names_.begin()), std::make_move_iterator(names_.end()));
  names_.clear();
  number("");
  return names;
}

std::int32_t StoreBuilder::add_row(std::int32_t parent, RowKind kind, std::string name, std::int64_t order,
                                   bool primary) {
  Row row;
  row.name = std::move(name);
  row.kind = kind;
  row.parent = parent;
  row.primary = primary;
  rows_.push_back({std::move(row), order});
  return static_cast<std::int32_t>(rows_.size() - 1);
}

std::uint8_t StoreBuilder::category(std::string_view name, int hue) {
  for (std::size_t c = 0; c < categories_.size(); ++c) {
    if (categories_[c].name == name) return static_cast<std::uint8_t>(c);
  }
  if (categories_.size() + 1 >= kMostCategories && name != gui::name_of(Category::kOther)) {
    return category(Category::kOther);
  }
  categories_.push_back({std::string(name), hue});
  return static_cast<std::uint8_t>(categories_.size() - 1);
}

std::uint8_t StoreBuilder::category(Category category_wanted) {
  std::int16_t& known = known_[static_cast<std::size_t>(category_wanted)];
  if (known < 0) known = category(gui::name_of(category_wanted), hue_of(category_wanted));
  return static_cast<std::uint8_t>(known);
}

std::uint8_t StoreBuilder::category(std::string_view name) {
  for (std::size_t c = 0; c < categories_.size(); ++c) {
    if (categories_[c].name == name) return static_cast<std::uint8_t>(c);
  }
  return category(name, hue_of_named(named_++));
}

std::shared_ptr<const SpanStore> StoreBuilder::build(const std::stop_token& stop) {
  base::CancellationPoint cancellation(stop);
  auto store = std::make_shared<SpanStore>();
  if (categories_.empty()) category(Category::kOther);
  store->categories_ = categories_;
  for (std::size_t c = 0; c < categories_.size(); ++c) {
    if (categories_[c].name == gui::name_of(Category::kWaiting)) store->waiting_ = static_cast<int>(c);
  }
  place_spans(*store, order_rows(*store), cancellation);
  store->titles_ = titles_.take();
  store->details_ = details_.take();
  store->steps_ = std::move(steps_);
  std::sort(store->steps_.begin(), store->steps_.end());
  sum_blocks(*store, cancellation);
  summarise(*store, cancellation);
  *this = StoreBuilder();
  return store;
}

// Preorder, children by (order, as they came). Gives every row's new place.
std::vector<std::int32_t> StoreBuilder::order_rows(SpanStore& store) {
  std::vector<std::vector<std::int32_t>> children(rows_.size() + 1);  // the last: rows without parent
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::int32_t parent = rows_[r].row.parent;
    children[parent == kNoRow ? rows_.size() : static_cast<std::size_t>(parent)].push_back(
        static_cast<std::int32_t>(r));
  }
  for (auto& list : children) {
    std::stable_sort(list.begin(), list.end(), [&](std::int32_t a, std::int32_t b) {
      return rows_[static_cast<std::size_t>(a)].order < rows_[static_cast<std::size_t>(b)].order;
    });
  }
  std::vector<std::int32_t> place(rows_.size());
  const auto visit = [&](const auto& self, std::int32_t row, std::int32_t parent, std::int32_t depth) -> void {
    const auto at = static_cast<std::int32_t>(store.rows_.size());
    place[static_cast<std::size_t>(row)] = at;
    Row placed = std::move(rows_[static_cast<std::size_t>(row)].row);
    placed.parent = parent;
    placed.depth = depth;
    store.rows_.push_back(std::move(placed));
    for (const std::int32_t child : children[static_cast<std::size_t>(row)]) self(self, child, at, depth + 1);
    store.rows_[static_cast<std::size_t>(at)].end = static_cast<std::int32_t>(store.rows_.size());
  };
  for (const std::int32_t root : children.back()) visit(visit, root, kNoRow, 0);
  return place;
}

void StoreBuilder::place_spans(SpanStore& store, const std::vector<std::int32_t>& place_of_row,
                               base::CancellationPoint& cancellation) {
  std::vector<std::vector<std::uint32_t>> by_row(place_of_row.size());
  {
    std::vector<std::size_t> counts(place_of_row.size());
    for (const NewSpan& span : spans_)
      ++counts[static_cast<std::size_t>(place_of_row[static_cast<std::size_t>(span.row)])];
    for (std::size_t r = 0; r < counts.size(); ++r) by_row[r].reserve(counts[r]);
  }
  bool events = false;
  for (std::uint32_t s = 0; s < size(); ++s) {
    cancellation.step();
    by_row[static_cast<std::size_t>(place_of_row[static_cast<std::size_t>(spans_[s].row)])].push_back(s);
    spans_[s].end_ps = std::max(spans_[s].end_ps, spans_[s].start_ps);
    events = events || spans_[s].event != kNoSpan;
  }
  for (auto* array : {&store.start_, &store.stop_}) array->reserve(size());
  for (auto* array : {&store.title_, &store.detail_}) array->reserve(size());
  if (events) store.event_.reserve(size());
  store.category_.reserve(size());
  std::vector<std::uint32_t> place_of_span(flows_.empty() ? 0 : size(), kNoSpan);
  for (std::size_t r = 0; r < by_row.size(); ++r) {
    place_row(store, static_cast<std::int32_t>(r), by_row[r], place_of_span, cancellation);
    by_row[r] = {};
  }
  if (!events) store.event_.clear();
  place_flows(store, place_of_row, place_of_span, cancellation);
  if (store.size() == 0) return;
  store.begin_ = *std::min_element(store.start_.begin(), store.start_.end());
  store.end_ = *std::max_element(store.stop_.begin(), store.stop_.end());
}

void StoreBuilder::place_flows(SpanStore& store, const std::vector<std::int32_t>& place_of_row,
                               const std::vector<std::uint32_t>& place_of_span, base::CancellationPoint& cancellation) {
  for (const Flow& flow : flows_) {
    cancellation.step();
    const Flow placed{place_of_span[flow.from], place_of_span[flow.to], flow.transfer};
    if (placed.from != kNoSpan && placed.to != kNoSpan) store.flows_.push_back(placed);
  }
  const auto innermost = [&](std::int32_t row, std::int64_t ps) {
    const Row& lane = store.rows_[static_cast<std::size_t>(place_of_row[static_cast<std::size_t>(row)])];
    for (std::uint32_t t = lane.tracks; t > 0; --t) {
      const std::uint32_t span = store.span_at(lane.first_track + t - 1, ps);
      if (span != kNoSpan) return span;
    }
    return kNoSpan;
  };
  for (const FlowAt& flow : flows_at_) {
    cancellation.step();
    const Flow placed{innermost(flow.from_row, flow.from_ps), innermost(flow.to_row, flow.to_ps), true};
    if (placed.from != kNoSpan && placed.to != kNoSpan) store.flows_.push_back(placed);
  }
  std::stable_sort(store.flows_.begin(), store.flows_.end(), [&](const Flow& a, const Flow& b) {
    cancellation.step();
    return store.start_[a.from] < store.start_[b.from];
  });
}

// Spans of a row go to the first track that is free when they start.
void StoreBuilder::place_row(SpanStore& store, std::int32_t row, std::vector<std::uint32_t>& spans,
                             std::vector<std::uint32_t>& place_of_span, base::CancellationPoint& cancellation) {
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const NewSpan &x = spans_[a], &y = spans_[b];
    return x.start_ps != y.start_ps ? x.start_ps < y.start_ps : x.end_ps > y.end_ps;
  };
  // A span without length goes before what starts with it, so that ends stay in order too.
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    cancellation.step();
    const NewSpan &x = spans_[a], &y = spans_[b];
    const bool empty_x = x.end_ps == x.start_ps, empty_y = y.end_ps == y.start_ps;
    if (x.start_ps == y.start_ps && empty_x != empty_y) return empty_x;
    return earlier(a, b);
  };
  if (!std::is_sorted(spans.begin(), spans.end(), before)) std::stable_sort(spans.begin(), spans.end(), before);
  std::vector<std::vector<std::uint32_t>> tracks(1);
  std::vector<std::int64_t> free_from{std::numeric_limits<std::int64_t>::min()};
  tracks[0].reserve(spans.size());
  for (const std::uint32_t span : spans) {
    std::size_t track = 0;
    while (track < tracks.size() && free_from[track] > spans_[span].start_ps) ++track;
    if (track == kMostTracks) {
      ++store.left_out_;
      continue;
    }
    if (track == tracks.size()) {
      tracks.emplace_back();
      free_from.push_back(0);
    }
    tracks[track].push_back(span);
    free_from[track] = spans_[span].end_ps;
  }
  Row& placed = store.rows_[static_cast<std::size_t>(row)];
  placed.first_track = static_cast<std::uint32_t>(store.tracks_.size());
  if (spans.empty()) return;
  placed.tracks = static_cast<std::uint32_t>(tracks.size());
  for (const auto& track : tracks) {
    store.tracks_.push_back({row, store.size(), static_cast<std::uint32_t>(track.size()), 0});
    for (const std::uint32_t s : track) {
      cancellation.step();
      const NewSpan& span = spans_[s];
      if (!place_of_span.empty()) place_of_span[s] = store.size();
      store.start_.push_back(span.start_ps);
      store.stop_.push_back(span.end_ps);
      store.title_.push_back(span.title);
      store.detail_.push_back(span.detail);
      store.event_.push_back(span.event);
      store.category_.push_back(span.category);
    }
  }
}

void StoreBuilder::sum_blocks(SpanStore& store, base::CancellationPoint& cancellation) {
  const std::size_t slots = store.categories_.size();
  std::vector<std::int64_t> sums(slots);
  for (Track& track : store.tracks_) {
    track.first_block = static_cast<std::uint32_t>(store.block_start_.size());
    std::fill(sums.begin(), sums.end(), 0);
    for (std::uint32_t i = 0; i < track.count; ++i) {
      cancellation.step();
      const std::uint32_t span = track.first + i;
      if (i % SpanStore::kBlock == 0) {
        store.block_start_.push_back(store.start_[span]);
        store.block_longest_.push_back(0);
        store.block_sums_.insert(store.block_sums_.end(), sums.begin(), sums.end());
      }
      const std::int64_t length = store.stop_[span] - store.start_[span];
      sums[store.category_[span]] += length;
      store.block_longest_.back() = std::max(store.block_longest_.back(), length);
    }
  }
}

void StoreBuilder::summarise(SpanStore& store, base::CancellationPoint& cancellation) {
  store.summary_of_row_.assign(store.rows_.size(), -1);
  const std::size_t slots = store.categories_.size();
  const std::int64_t length = store.end_ - store.begin_;
  if (length <= 0) return;
  for (std::size_t r = 0; r < store.rows_.size(); ++r) {
    if (store.rows_[r].kind == RowKind::kLane) continue;
    const std::vector<std::uint32_t> tracks = store.shown_tracks(static_cast<std::int32_t>(r));
    if (tracks.size() <= kFewTracks) continue;
    std::int64_t spans = 0;
    for (const std::uint32_t t : tracks) spans += store.tracks_[t].count;
    const auto wanted =
        std::clamp(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(spans / kSpansPerBin + 1))),
                   kFewestBins, kMostBins);
    Summary summary;
    summary.bin_ps = (length + wanted - 1) / wanted;
    summary.bins = (length + summary.bin_ps - 1) / summary.bin_ps;
    summary.tracks = static_cast<std::uint32_t>(tracks.size());
    summary.cumulative.assign(static_cast<std::size_t>(summary.bins + 1) * slots, 0);
    for (const std::uint32_t t : tracks) {
      const Track& track = store.tracks_[t];
      for (std::uint32_t s = track.first; s < track.first + track.count; ++s) {
        cancellation.step();
        std::int64_t at = store.start_[s] - store.begin_;
        const std::int64_t stop = store.stop_[s] - store.begin_;
        for (std::int64_t bin = at / summary.bin_ps; at < stop; ++bin) {
          const std::int64_t to = std::min(stop, (bin + 1) * summary.bin_ps);
          summary.cumulative[static_cast<std::size_t>(bin + 1) * slots + store.category_[s]] += to - at;
          at = to;
        }
      }
    }
    for (std::size_t i = slots; i < summary.cumulative.size(); ++i)
      summary.cumulative[i] += summary.cumulative[i - slots];
    store.summary_of_row_[r] = static_cast<std::int32_t>(store.summaries_.size());
    store.summaries_.push_back(std::move(summary));
  }
}

}  // namespace trivium::gui
