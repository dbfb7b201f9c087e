#include "gui/timeline/spans/span_store.h"

#include <algorithm>

namespace trivium::gui {

std::string SpanStore::name_of(std::uint32_t span) const {
  const std::string& title = titles_[title_[span]];
  const std::string& detail = details_[detail_[span]];
  return title.empty() || detail.empty() ? title + detail : title + " " + detail;
}

const Summary* SpanStore::summary_of(std::int32_t row) const {
  const std::int32_t at = summary_of_row_[static_cast<std::size_t>(row)];
  return at < 0 ? nullptr : &summaries_[static_cast<std::size_t>(at)];
}

std::uint32_t SpanStore::track_of(std::uint32_t span) const {
  const auto next = std::upper_bound(tracks_.begin(), tracks_.end(), span,
                                     [](std::uint32_t s, const Track& track) { return s < track.first; });
  return static_cast<std::uint32_t>(next - tracks_.begin()) - 1;
}

std::uint32_t SpanStore::first_ending_after(std::uint32_t track, std::int64_t ps) const {
  const Track& t = tracks_[track];
  const auto from = stop_.begin() + t.first, to = from + t.count;
  return static_cast<std::uint32_t>(std::upper_bound(from, to, ps) - stop_.begin());
}

std::uint32_t SpanStore::first_starting_at(std::uint32_t track, std::int64_t ps) const {
  const Track& t = tracks_[track];
  const auto from = start_.begin() + t.first, to = from + t.count;
  return static_cast<std::uint32_t>(std::lower_bound(from, to, ps) - start_.begin());
}

std::uint32_t SpanStore::span_at(std::uint32_t track, std::int64_t ps) const {
  const std::uint32_t span = first_ending_after(track, ps);
  return span < tracks_[track].first + tracks_[track].count && start_[span] <= ps ? span : kNoSpan;
}

std::vector<std::uint32_t> SpanStore::shown_tracks(std::int32_t row) const {
  std::vector<std::uint32_t> shown;
  const auto add = [&](const Row& lane) {
    for (std::uint32_t t = 0; t < lane.tracks; ++t) shown.push_back(lane.first_track + t);
  };
  const Row& self = rows_[static_cast<std::size_t>(row)];
  add(self);
  for (std::int32_t r = row + 1; r < self.end; ++r) {
    if (rows_[static_cast<std::size_t>(r)].primary) add(rows_[static_cast<std::size_t>(r)]);
  }
  return shown;
}

std::int32_t SpanStore::device_of(std::int32_t row) const {
  while (rows_[static_cast<std::size_t>(row)].kind != RowKind::kDevice &&
         rows_[static_cast<std::size_t>(row)].parent != kNoRow) {
    row = rows_[static_cast<std::size_t>(row)].parent;
  }
  return row;
}

std::size_t SpanStore::bytes() const {
  std::size_t sum = start_.size() * (2 * sizeof(std::int64_t) + 2 * sizeof(std::uint32_t) + 1);
  sum += event_.size() * sizeof(std::uint32_t);
  sum += (block_start_.size() + block_longest_.size() + block_sums_.size()) * sizeof(std::int64_t);
  for (const Summary& summary : summaries_) sum += summary.cumulative.size() * sizeof(std::int64_t);
  return sum;
}

void SpanStore::add_covered_before(std::uint32_t track, std::int64_t ps, std::span<std::int64_t> sums) const {
  const Track& t = tracks_[track];
  if (t.count == 0 || start_[t.first] >= ps) return;
  const std::uint32_t last = first_starting_at(track, ps);  // one past the last span that starts before
  const std::uint32_t block = (last - 1 - t.first) / kBlock;
  const std::size_t slots = categories_.size();
  const auto* base = block_sums_.data() + (t.first_block + block) * slots;
  for (std::size_t c = 0; c < slots; ++c) sums[c] += base[c];
  for (std::uint32_t s = t.first + block * kBlock; s < last; ++s) {
    sums[category_[s]] += std::min(stop_[s], ps) - start_[s];
  }
}

}  // namespace trivium::gui
