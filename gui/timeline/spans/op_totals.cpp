#include "gui/timeline/spans/op_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "base/cancellation_point.h"
#include "base/seconds.h"
#include "gui/timeline/spans/name_parts.h"
#include "gui/timeline/spans/program_spans.h"
#include "simulator/cost/gemm.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;

bool is_earlier(const SpanStore& store, std::uint32_t a, std::uint32_t b) {
  return store.start_of(a) != store.start_of(b) ? store.start_of(a) < store.start_of(b) : a < b;
}

OpWork work_on(const program::Op& op, const hardware::Device& device) {
  if (program::is_communication(op.kind) || program::is_copy(op.kind)) return {};
  const auto arithmetic = op.fp8 != program::Fp8::kNone && op.kind != program::OpKind::kQuantize
                              ? hardware::Arithmetic::kFp8
                              : simulator::arithmetic_on(device, op.dtype);
  const auto peak = device.peak.find(arithmetic);
  const double memory = device.memory_bandwidth.value();
  if (peak == device.peak.end() || memory <= 0) return {op.flops, 0};
  return {op.flops, std::max(op.flops / peak->second.value(), op.bytes / memory)};
}

}  // namespace

WorkOf work_of(const NamedTimeline& timeline) {
  if (!timeline.program || !timeline.timeline || !timeline.cluster) return {};
  return [timeline](std::uint32_t event) -> OpWork {
    if (event >= timeline.timeline->events.size()) return {};
    const program::Event& one = timeline.timeline->events[event];
    const program::Op* op = op_of(*timeline.program, one);
    const bool placed = one.rank >= 0 && one.rank < timeline.cluster->devices();
    return op != nullptr && placed ? work_on(*op, timeline.cluster->node_of_device(one.rank).device) : OpWork{};
  };
}

std::vector<std::uint32_t> tracks_of(const SpanStore& store, const Stretch& stretch) {
  std::vector<std::uint32_t> tracks;
  const auto add = [&](std::int32_t first, std::int32_t last) {
    for (std::int32_t r = first; r < last; ++r) {
      const Row& row = store.rows()[static_cast<std::size_t>(r)];
      if (!row.work && last != first + 1) continue;
      for (std::uint32_t t = 0; t < row.tracks; ++t) tracks.push_back(row.first_track + t);
    }
  };
  std::vector<std::int32_t> rows = stretch.rows;
  if (stretch.row) rows.push_back(*stretch.row);
  for (const std::int32_t row : rows) add(row, store.rows()[static_cast<std::size_t>(row)].end);
  if (rows.empty()) add(0, static_cast<std::int32_t>(store.rows().size()));
  return tracks;
}

OpNames::OpNames(const SpanStore& store)
    : store_(store),
      title_(alike(store.titles(), without_micro_batch)),
      detail_(alike(store.details(), without_layer)) {}

std::uint64_t OpNames::of(std::uint32_t span) const {
  if (store_.is_waiting(span)) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(title_[store_.title_of(span)]) << 32 | detail_[store_.detail_of(span)];
}

std::string OpNames::name(std::uint32_t span) const {
  if (store_.is_waiting(span)) return "waiting";
  const std::string title = without_micro_batch(store_.titles()[store_.title_of(span)]);
  const std::string detail = without_layer(store_.details()[store_.detail_of(span)]);
  return title.empty() || detail.empty() ? title + detail : title + " " + detail;
}

std::vector<OpTotal> op_totals(const SpanStore& store, const Stretch& stretch, const WorkOf& work,
                               const std::stop_token& stop) {
  base::CancellationPoint cancellation(stop);
  const OpNames names(store);
  std::unordered_map<std::uint64_t, OpTotal> totals;
  for (const std::uint32_t track : tracks_of(store, stretch)) {
    const std::uint32_t from = store.first_ending_after(track, stretch.begin_ps);
    const std::uint32_t to = store.first_starting_at(track, stretch.end_ps);
    for (std::uint32_t span = from; span < to; ++span) {
      cancellation.step();
      OpTotal& total = totals[names.of(span)];
      if (total.spans++ == 0) total.category = store.category_of(span);
      if (total.first == kNoSpan || is_earlier(store, span, total.first)) total.first = span;
      total.whole_ps += store.end_of(span) - store.start_of(span);
      total.ps += std::min(store.end_of(span), stretch.end_ps) - std::max(store.start_of(span), stretch.begin_ps);
      if (!work || store.is_waiting(span) || store.event_of(span) == kNoSpan) continue;
      const OpWork done = work(store.event_of(span));
      total.flops += done.flops;
      total.roofline_s += done.roofline_s;
    }
  }
  std::vector<OpTotal> ops;
  for (auto& [key, total] : totals) {
    total.name = names.name(total.first);
    ops.push_back(std::move(total));
  }
  std::sort(ops.begin(), ops.end(),
            [&](const OpTotal& a, const OpTotal& b) { return a.ps != b.ps ? a.ps > b.ps : a.first < b.first; });
  return ops;
}

std::uint32_t next_of_op(const SpanStore& store, const Stretch& stretch, std::uint32_t like,
                         std::optional<std::uint32_t> after) {
  const OpNames names(store);
  const std::uint64_t wanted = names.of(like);
  const std::vector<std::uint32_t> tracks = tracks_of(store, stretch);
  const auto earliest = [&](std::optional<std::uint32_t> behind) {
    std::uint32_t best = kNoSpan;
    for (const std::uint32_t track : tracks) {
      std::uint32_t span = store.first_ending_after(track, stretch.begin_ps);
      if (behind) span = std::max(span, store.first_starting_at(track, store.start_of(*behind)));
      const std::uint32_t to = store.first_starting_at(track, stretch.end_ps);
      for (; span < to; ++span) {
        if (best != kNoSpan && !is_earlier(store, span, best)) break;
        if (names.of(span) != wanted || (behind && !is_earlier(store, *behind, span))) continue;
        best = span;
        break;
      }
    }
    return best;
  };
  const std::uint32_t next = after ? earliest(after) : kNoSpan;
  return next != kNoSpan ? next : earliest(std::nullopt);
}

std::string csv_of(const std::vector<OpTotal>& ops, const SpanStore& store) {
  double all = 0;
  for (const OpTotal& op : ops) all += static_cast<double>(op.ps);
  std::string text = "op,kind,count,total_s,share,mean_s,tflop_per_s,roofline_share\n";
  const auto quoted = [](const std::string& cell) {
    std::string made = "\"";
    for (const char c : cell) made += c == '"' ? "\"\"" : std::string(1, c);
    return made + "\"";
  };
  const auto known = [](double value) { return value > 0 ? fmt::format("{:.6g}", value) : std::string(); };
  for (const OpTotal& op : ops) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{:.12g},{:.6g},{:.6g},{},{}\n", quoted(op.name),
                   quoted(store.categories()[static_cast<std::size_t>(op.category)].name), op.spans,
                   static_cast<double>(op.ps) * kSecondsPerPs, all > 0 ? static_cast<double>(op.ps) / all : 0,
                   op.mean_s(), known(op.tflops()), known(op.roofline_share()));
  }
  return text;
}

}  // namespace trivium::gui
