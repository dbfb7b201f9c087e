// Collects rows and spans in any order and lays them out as a SpanStore.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/cancellation_point.h"
#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// Strings as numbers. Number 0 is the empty string.
class Names {
 public:
  Names() { number(""); }
  std::uint32_t number(std::string_view name);
  std::vector<std::string> take();

 private:
  std::deque<std::string> names_;  // a deque, so that the views in the map stay where they are
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

/// What a span is before it has its place.
struct NewSpan {
  std::int64_t start_ps = 0, end_ps = 0;  ///< end before start counts as no length
  std::int32_t row = 0;
  std::uint32_t title = 0, detail = 0;
  std::uint32_t event = kNoSpan;
  std::uint8_t category = 0;
};

class StoreBuilder {
 public:
  static constexpr std::size_t kMostCategories = 24;  ///< further ones count as "other"
  static constexpr std::size_t kMostTracks = 64;      ///< of a row; spans that overlap as many others are left out

  /// Rows of one parent are ordered by `order`, then as they came. Lanes alone hold spans.
  std::int32_t add_row(std::int32_t parent, RowKind kind, std::string name, std::int64_t order, bool primary = true);
  void rename(std::int32_t row, std::string name) { rows_[static_cast<std::size_t>(row)].row.name = std::move(name); }
  const std::string& name_of_row(std::int32_t row) const { return rows_[static_cast<std::size_t>(row)].row.name; }
  void set_primary(std::int32_t row, bool primary) { rows_[static_cast<std::size_t>(row)].row.primary = primary; }
  void set_work(std::int32_t row, bool work) { rows_[static_cast<std::size_t>(row)].row.work = work; }
  void set_order(std::int32_t row, std::int64_t order) { rows_[static_cast<std::size_t>(row)].order = order; }
  std::int64_t order_of(std::int32_t row) const { return rows_[static_cast<std::size_t>(row)].order; }
  std::uint32_t title(std::string_view text) { return titles_.number(text); }
  std::uint32_t detail(std::string_view text) { return details_.number(text); }
  std::uint8_t category(Category category);
  std::uint8_t category(std::string_view name);           ///< of another program's trace
  std::uint8_t category(std::string_view name, int hue);  ///< names are distinct, hues may repeat

  void reserve(std::size_t spans) { spans_.reserve(spans); }
  std::uint32_t add(const NewSpan& span) {
    return spans_.push_back(span), static_cast<std::uint32_t>(spans_.size() - 1);
  }
  NewSpan& at(std::uint32_t span) { return spans_[span]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(spans_.size()); }
  void add_flow(std::uint32_t from, std::uint32_t to, bool transfer) { flows_.push_back({from, to, transfer}); }
  /// Between the innermost spans that cover these moments; nothing where there is none.
  void add_flow_at(std::int32_t from_row, std::int64_t from_ps, std::int32_t to_row, std::int64_t to_ps) {
    flows_at_.push_back({from_row, to_row, from_ps, to_ps});
  }
  void add_step(std::int64_t start_ps) { steps_.push_back(start_ps); }

  /// Leaves the builder empty. Errors: Failure(kInterrupted) where `stop` was requested.
  std::shared_ptr<const SpanStore> build(const std::stop_token& stop = {});

 private:
  struct NewRow {
    Row row;
    std::int64_t order = 0;
  };
  std::vector<std::int32_t> order_rows(SpanStore& store);
  void place_spans(SpanStore& store, const std::vector<std::int32_t>& place_of_row,
                   base::CancellationPoint& cancellation);
  void place_row(SpanStore& store, std::int32_t row, std::vector<std::uint32_t>& spans,
                 std::vector<std::uint32_t>& place_of_span, base::CancellationPoint& cancellation);
  void place_flows(SpanStore& store, const std::vector<std::int32_t>& place_of_row,
                   const std::vector<std::uint32_t>& place_of_span, base::CancellationPoint& cancellation);
  static void sum_blocks(SpanStore& store, base::CancellationPoint& cancellation);
  static void summarise(SpanStore& store, base::CancellationPoint& cancellation);

  std::vector<NewRow> rows_;
  std::vector<NewSpan> spans_;
  struct FlowAt {
    std::int32_t from_row, to_row;
    std::int64_t from_ps, to_ps;
  };
  std::vector<Flow> flows_;
  std::vector<FlowAt> flows_at_;
  std::vector<std::int64_t> steps_;
  std::vector<CategoryInfo> categories_;
  int named_ = 0;  // of them, those that have no more than a name
  std::array<std::int16_t, kCategories> known_ = [] {
    std::array<std::int16_t, kCategories> none{};
    none.fill(-1);
    return none;
  }();
  Names titles_, details_;
};

}  // namespace trivium::gui
