#include "calibration/foreign/intervals.h"

#include <algorithm>

namespace trivium::calibration::foreign {

Intervals::Intervals(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const TimeSpan& a, const TimeSpan& b) { return a.begin_s < b.begin_s; });
  for (const TimeSpan& span : spans) {
    if (!(span.end_s > span.begin_s)) continue;
    if (!spans_.empty() && span.begin_s <= spans_.back().end_s) {
      spans_.back().end_s = std::max(spans_.back().end_s, span.end_s);
    } else {
      spans_.push_back(span);
    }
  }
}

double Intervals::seconds() const {
  double sum = 0;
  for (const TimeSpan& span : spans_) sum += span.seconds();
  return sum;
}

Intervals Intervals::within(const Intervals& other) const {
  Intervals result;
  auto b = other.spans_.begin();
  for (const TimeSpan& a : spans_) {
    while (b != other.spans_.end() && b->end_s <= a.begin_s) ++b;
    for (auto each = b; each != other.spans_.end() && each->begin_s < a.end_s; ++each) {
      result.spans_.push_back({std::max(a.begin_s, each->begin_s), std::min(a.end_s, each->end_s)});
    }
  }
  return result;
}

Intervals Intervals::without(const Intervals& other) const {
  Intervals result;
  auto b = other.spans_.begin();
  for (const TimeSpan& a : spans_) {
    double from = a.begin_s;
    while (b != other.spans_.end() && b->end_s <= a.begin_s) ++b;
    for (auto each = b; each != other.spans_.end() && each->begin_s < a.end_s; ++each) {
      if (each->begin_s > from) result.spans_.push_back({from, each->begin_s});
      from = std::max(from, each->end_s);
    }
    if (from < a.end_s) result.spans_.push_back({from, a.end_s});
  }
  return result;
}

Intervals Intervals::with(const Intervals& other) const {
  std::vector<TimeSpan> all = spans_;
  all.insert(all.end(), other.spans_.begin(), other.spans_.end());
  return Intervals(std::move(all));
}

}  // namespace trivium::calibration::foreign
