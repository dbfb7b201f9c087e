#include "gui/timeline/spans/span_table.h"

#include <fmt/format.h>

#include <iterator>

#include "base/error.h"
#include "base/seconds.h"

namespace trivium::gui {
namespace {

std::string quoted(const std::string& cell) {
  std::string made = "\"";
  for (const char c : cell) made += c == '"' ? "\"\"" : std::string(1, c);
  return made + "\"";
}

}  // namespace

std::string spans_csv(const SpanStore& store, const Stretch& stretch) {
  std::string text = "rank,lane,span,kind,start_s,length_s\n";
  std::size_t spans = 0;
  for (const std::uint32_t track : tracks_of(store, stretch)) {
    const std::int32_t row = store.tracks()[track].row;
    const std::string begin = quoted(store.rows()[static_cast<std::size_t>(store.device_of(row))].name) + "," +
                              quoted(store.rows()[static_cast<std::size_t>(row)].name) + ",";
    const std::uint32_t to = store.first_starting_at(track, stretch.end_ps);
    for (std::uint32_t s = store.first_ending_after(track, stretch.begin_ps); s < to; ++s) {
      if (++spans > kMostTableSpans) {
        throw base::Failure(
            base::ErrorKind::kUsage,
            fmt::format("More than {} spans are selected; select fewer rows or less time.", kMostTableSpans));
      }
      fmt::format_to(std::back_inserter(text), "{}{},{},{:.12g},{:.12g}\n", begin, quoted(store.name_of(s)),
                     quoted(store.categories()[static_cast<std::size_t>(store.category_of(s))].name),
                     static_cast<double>(store.start_of(s) - store.begin()) * base::kSecondsPerPs,
                     static_cast<double>(store.end_of(s) - store.start_of(s)) * base::kSecondsPerPs);
    }
  }
  return text;
}

}  // namespace trivium::gui
