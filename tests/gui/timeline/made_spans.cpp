#include "tests/gui/timeline/made_spans.h"

#include <cmath>
#include <string>

namespace trivium::gui {

std::shared_ptr<const SpanStore> make_spans(const MadeSpans& how) {
  std::mt19937 random(how.seed);
  StoreBuilder builder;
  const std::int32_t root = builder.add_row(kNoRow, RowKind::kCluster, "cluster", 0);
  const std::vector<std::uint8_t> compute{builder.category(Category::kForward), builder.category(Category::kBackward),
                                          builder.category(Category::kRecompute)};
  const std::uint8_t data = builder.category(Category::kData);
  const std::uint32_t detail = builder.detail("layer 1 matmul");
  std::vector<std::uint32_t> titles;
  for (int m = 0; m < 8; ++m) titles.push_back(builder.title("forward mb" + std::to_string(m)));
  const auto draw = [&](double mean) {  // lognormal, so that few are long
    return static_cast<std::int64_t>(std::lognormal_distribution<double>(std::log(mean), 1)(random)) + 1;
  };
  for (int n = 0; n < how.nodes; ++n) {
    const std::int32_t node = builder.add_row(root, RowKind::kNode, "node " + std::to_string(n), n);
    for (int d = 0; d < how.devices_per_node; ++d) {
      const std::int32_t device = builder.add_row(node, RowKind::kDevice, "rank " + std::to_string(d), d);
      for (const bool computes : {true, false}) {
        const std::int32_t lane =
            builder.add_row(device, RowKind::kLane, computes ? "compute" : "data", computes ? 0 : 3, computes);
        std::int64_t at = 0;
        for (int s = 0; s < how.spans_per_lane; ++s) {
          if (random() % 10 != 0) at += draw(static_cast<double>(how.mean_ps) * how.idle);
          NewSpan span;
          span.row = lane;
          span.start_ps = at;
          at += draw(static_cast<double>(how.mean_ps));
          span.end_ps = at;
          span.category = computes ? compute[random() % compute.size()] : data;
          span.title = titles[static_cast<std::size_t>(s) % titles.size()];
          span.detail = detail;
          builder.add(span);
        }
      }
    }
  }
  return builder.build();
}

std::shared_ptr<const SpanStore> given_spans(const std::vector<std::vector<Given>>& lanes) {
  StoreBuilder builder;
  const std::int32_t root = builder.add_row(kNoRow, RowKind::kCluster, "cluster", 0);
  for (std::size_t d = 0; d < lanes.size(); ++d) {
    const std::int32_t device = builder.add_row(root, RowKind::kDevice, "rank " + std::to_string(d), 0);
    const std::int32_t lane = builder.add_row(device, RowKind::kLane, "compute", 0);
    for (const Given& given : lanes[d]) {
      NewSpan span;
      span.row = lane;
      span.start_ps = given.start;
      span.end_ps = given.end;
      span.category = builder.category(given.category);
      builder.add(span);
    }
  }
  return builder.build();
}

}  // namespace trivium::gui
