#include "report/palette.h"

#include <fmt/format.h>

namespace trivium::report {

std::uint32_t colour_of(simulator::Part part) {
  switch (part) {
    case simulator::Part::kCompute:
      return kSeries[0];
    case simulator::Part::kRecompute:
      return kSeries[4];
    case simulator::Part::kExposedTensor:
      return kSeries[1];
    case simulator::Part::kExposedContext:
      return 0x946600;  // the orange, darker
    case simulator::Part::kExposedExpert:
      return 0xffc852;  // and lighter
    case simulator::Part::kExposedData:
      return kSeries[2];
    case simulator::Part::kExposedPipeline:
      return kSeries[3];
    case simulator::Part::kExposedOffload:
      return kSeries[5];
    case simulator::Part::kBubble:
      return kIdle;
    case simulator::Part::kOptimizer:
      return kSeries[6];
    default:
      return kSeries[7];
  }
}

std::string hex(std::uint32_t colour) { return fmt::format("#{:06x}", colour); }

}  // namespace trivium::report
