// Timelines made up for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "gui/timeline/spans/span_store.h"
#include "gui/timeline/spans/store_builder.h"

namespace trivium::gui {

struct MadeSpans {
  int nodes = 1, devices_per_node = 2;
  int spans_per_lane = 100;  ///< two lanes a device: compute, which is primary, and data
  std::int64_t mean_ps = 1000;
  double idle = 0.3;  ///< share of gaps
  unsigned seed = 1;
};

/// Cluster > nodes > devices > lanes "compute" and "data". Lengths are spread widely; a span in ten has no gap before.
std::shared_ptr<const SpanStore> make_spans(const MadeSpans& how);

/// Lanes "compute" of devices without nodes, spans as given: {start, end, category} by lane.
struct Given {
  std::int64_t start, end;
  Category category = Category::kForward;
};
std::shared_ptr<const SpanStore> given_spans(const std::vector<std::vector<Given>>& lanes);

}  // namespace trivium::gui
