#include "gui/timeline/spans/coverage.h"

#include <algorithm>
#include <cmath>

namespace trivium::gui {
namespace {

constexpr int kBinsPerColumn = 4;    // at least, to move edges to bins
constexpr int kSpansPerColumn = 12;  // up to here walking over spans is cheaper than over boundaries

std::size_t cell(int column, std::size_t slots) { return static_cast<std::size_t>(column) * slots; }

/// Where columns begin and end, and the share of one that a picosecond is. Kept from strip to strip: finding edges
/// takes longer than filling most columns.
struct Columns {
  explicit Columns(const TimeScale& of)
      : scale(of), columns_a_ps(1 / of.column_ps()), per_ps(static_cast<std::size_t>(of.columns)) {
    for (int column = 0; column <= of.columns; ++column) edges.push_back(of.edge(column));
    for (std::size_t c = 0; c < per_ps.size(); ++c) {
      per_ps[c] = edges[c + 1] > edges[c] ? 1 / static_cast<float>(edges[c + 1] - edges[c]) : 0;
      whole.push_back(edges[c + 1] > edges[c] ? 1 : 0);
    }
  }
  TimeScale scale;
  double columns_a_ps;
  std::vector<std::int64_t> edges;  // columns + 1
  std::vector<float> per_ps;        // columns
  std::vector<float> whole;         // columns: the share that a span has of one that lies in it; 0 of one without time
};

const Columns& columns_of(const TimeScale& scale) {
  thread_local Columns kept{TimeScale{}};
  if (kept.scale != scale) kept = Columns(scale);
  return kept;
}

// Spans [from, to) one by one.
void walk_spans(const SpanStore& store, std::uint32_t from, std::uint32_t to, const TimeScale& scale, float weight,
                std::span<float> shares) {
  const std::size_t slots = store.categories().size();
  const auto starts = store.starts(), stops = store.stops();
  const auto kinds = store.kinds();
  const Columns& columns = columns_of(scale);
  const std::int64_t* const edges = columns.edges.data();
  std::size_t column = 0;
  for (std::uint32_t s = from; s < to; ++s) {
    std::int64_t at = std::max(starts[s], scale.begin_ps);
    const std::int64_t stop = std::min(stops[s], scale.end_ps);
    if (at >= stop) continue;
    if (at >= edges[column + 1]) {  // near it, then step by step: rounding may be off by one
      const auto near = static_cast<int>(static_cast<double>(at - scale.begin_ps) * columns.columns_a_ps) - 1;
      if (near > static_cast<int>(column)) column = static_cast<std::size_t>(near);
      while (at >= edges[column + 1]) ++column;
    }
    float* share = &shares[column * slots + kinds[s]];
    if (stop <= edges[column + 1]) {
      *share += static_cast<float>(stop - at) * columns.per_ps[column] * weight;
      continue;
    }
    *share += static_cast<float>(edges[column + 1] - at) * columns.per_ps[column] * weight;
    for (++column, share += slots; stop > edges[column + 1]; ++column, share += slots)
      *share += columns.whole[column] * weight;
    *share += static_cast<float>(stop - edges[column]) * columns.per_ps[column] * weight;
  }
}

// For every boundary the block that holds it, found by galloping over the starts of blocks, which fit in a cache; then
// the sums there. Two passes, so that the memory that the second one reads is on its way.
void walk_boundaries(const SpanStore& store, const Track& track, const TimeScale& scale, float weight,
                     std::span<float> shares) {
  constexpr std::uint32_t kBlock = SpanStore::kBlock;
  const std::size_t slots = store.categories().size();
  const auto blocks = store.block_starts().subspan(track.first_block, (track.count + kBlock - 1) / kBlock);
  const auto starts = store.starts(), stops = store.stops(), sums = store.block_sums();
  const auto kinds = store.kinds();
  const Columns& columns = columns_of(scale);
  thread_local std::vector<std::uint32_t> block_of;
  block_of.resize(static_cast<std::size_t>(scale.columns) + 1);
  std::size_t block = 0;
  for (int column = 0; column <= scale.columns; ++column) {
    const std::int64_t at = columns.edges[static_cast<std::size_t>(column)];
    std::size_t step = 1;
    while (block + step < blocks.size() && blocks[block + step] < at) block += step, step *= 2;
    for (; step > 0; step /= 2) {
      if (block + step < blocks.size() && blocks[block + step] < at) block += step;
    }
    block_of[static_cast<std::size_t>(column)] = static_cast<std::uint32_t>(block);
    const std::uint32_t span = track.first + static_cast<std::uint32_t>(block) * kBlock;
    __builtin_prefetch(&starts[span]);
    __builtin_prefetch(&stops[span]);
    __builtin_prefetch(&kinds[span]);
    __builtin_prefetch(&sums[(track.first_block + block) * slots]);
  }
  std::array<std::int64_t, 32> before{}, now{};
  const std::uint32_t end = track.first + track.count;
  for (int column = 0; column <= scale.columns; ++column) {
    const std::int64_t at = columns.edges[static_cast<std::size_t>(column)];
    const std::uint32_t in = block_of[static_cast<std::size_t>(column)];
    const std::int64_t* base = &sums[(track.first_block + in) * slots];
    std::copy_n(base, slots, now.begin());
    const std::uint32_t first = track.first + in * kBlock, last = std::min(end, first + kBlock);
    for (std::uint32_t s = first; s < last && starts[s] < at; ++s) now[kinds[s]] += std::min(stops[s], at) - starts[s];
    if (column > 0) {
      const float per_ps = weight * columns.per_ps[static_cast<std::size_t>(column) - 1];
      float* out = &shares[cell(column - 1, slots)];
      for (std::size_t c = 0; c < slots; ++c) out[c] += static_cast<float>(now[c] - before[c]) * per_ps;
    }
    std::swap(before, now);
  }
}

void from_summary(const SpanStore& store, const Summary& summary, const TimeScale& scale, std::span<float> shares) {
  const std::size_t slots = store.categories().size();
  const double bins_a_ps = 1 / static_cast<double>(summary.bin_ps);
  // The nearest edge of a bin; beyond the first and the last as if there were more, all empty.
  const Columns& columns = columns_of(scale);
  const auto bin_at = [&](int column) {
    const double at =
        static_cast<double>(columns.edges[static_cast<std::size_t>(column)] - store.begin()) * bins_a_ps + 0.5;
    const auto whole = static_cast<std::int64_t>(at);
    return whole - (at < static_cast<double>(whole) ? 1 : 0);
  };
  const auto sums_at = [&](std::int64_t bin) {
    return &summary.cumulative[static_cast<std::size_t>(std::clamp(bin, std::int64_t{0}, summary.bins)) * slots];
  };
  std::int64_t left = bin_at(0);
  for (int column = 0; column < scale.columns; ++column) {
    const std::int64_t right = bin_at(column + 1);
    const double per_ps = bins_a_ps / (static_cast<double>(right - left) * summary.tracks);
    const auto *from = sums_at(left), *to = sums_at(right);
    for (std::size_t c = 0; c < slots; ++c) {
      shares[cell(column, slots) + c] += static_cast<float>(static_cast<double>(to[c] - from[c]) * per_ps);
    }
    left = right;
  }
}

}  // namespace

// In whole numbers: of days in picoseconds a double loses the last digits, and the last edge would not be the end.
std::int64_t TimeScale::edge(int column) const {
  const std::int64_t all = end_ps - begin_ps, whole = all / columns, rest = all % columns;
  return begin_ps + whole * column + (2 * rest * column + columns) / (2 * static_cast<std::int64_t>(columns));
}

double TimeScale::x_of(std::int64_t ps) const {
  return static_cast<double>(ps - begin_ps) * columns / static_cast<double>(end_ps - begin_ps);
}

std::int64_t TimeScale::time_at(double x) const {
  return begin_ps + std::llround(static_cast<double>(end_ps - begin_ps) * x / columns);
}

void add_coverage(const SpanStore& store, std::uint32_t track, const TimeScale& scale, float weight,
                  std::span<float> shares) {
  const Track& t = store.tracks()[track];
  if (t.count == 0) return;
  const std::uint32_t from = store.first_ending_after(track, scale.begin_ps);
  const std::uint32_t to = store.first_starting_at(track, scale.end_ps);
  if (from >= to) return;
  if (to - from <= static_cast<std::uint32_t>(scale.columns) * kSpansPerColumn) {
    walk_spans(store, from, to, scale, weight, shares);
  } else {
    walk_boundaries(store, t, scale, weight, shares);
  }
}

void add_row_coverage(const SpanStore& store, std::int32_t row, const TimeScale& scale, std::span<float> shares,
                      const KnownShares& known) {
  const Summary* summary = store.summary_of(row);
  if (summary != nullptr && scale.column_ps() >= static_cast<double>(kBinsPerColumn * summary->bin_ps)) {
    from_summary(store, *summary, scale, shares);
    return;
  }
  const std::vector<std::uint32_t> tracks = store.shown_tracks(row);
  const float weight = tracks.empty() ? 0 : 1 / static_cast<float>(tracks.size());
  for (const std::uint32_t track : tracks) {
    const std::span<const float> of_track = known ? known(track) : std::span<const float>();
    if (of_track.empty()) {
      add_coverage(store, track, scale, weight, shares);
    } else {
      std::transform(of_track.begin(), of_track.end(), shares.begin(), shares.begin(),
                     [&](float share, float sum) { return sum + weight * share; });
    }
  }
}

}  // namespace trivium::gui
