// Pictures as SVG elements for pages: text stays text, and they are sharp at every size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trivium::report {

/// How a value is told: "61.0 GiB".
using ValueText = std::function<std::string(double)>;

struct ChartPart {
  std::string name;
  std::uint32_t colour = 0;
};

struct StackedBar {
  std::string label;
  std::vector<double> values;  ///< one a part, 0 or more
  double limit = 0;            ///< what there is at most, a dashed line; 0: none
};

/// A legend and bars one below the other, each with its sum; parts that no bar has are left out. A bar above its limit
/// is outlined in the alarm colour. Empty text where there is no bar.
std::string stacked_bars(const std::vector<ChartPart>& parts, const std::vector<StackedBar>& bars,
                         const ValueText& text);

/// A change and what it does: negative shares are gains and go to the left. `note` instead of a bar where not empty.
struct ChangeBar {
  std::string label;
  double share = 0;
  std::string note;
};
std::string change_bars(const std::vector<ChangeBar>& changes);

/// Seconds to four digits, so that neighbouring values differ: "19.83 s", "512.4 ms".
std::string precise_seconds(double seconds, int digits = 4);

/// A range of values between `low` and `high` with its middle, and one more value that is marked.
struct Band {
  double low = 0, middle = 0, high = 0, marked = 0;
};
std::string band_chart(const Band& band, const std::string& marked_as, const ValueText& text);

/// Runs of pixels along rows, as `timeline_chart` and others fill them.
struct StripRow {
  std::string label;
  std::vector<int> columns;  ///< index into `parts`, -1: nothing; all rows of one length
};
std::string strips(const std::vector<ChartPart>& parts, const std::vector<StripRow>& rows, double length,
                   const ValueText& text);

}  // namespace trivium::report
