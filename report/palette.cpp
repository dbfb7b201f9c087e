#include "report/palette.h"

#include <fmt/format.h>

namespace trivium::report {

Kind kind_of(simulator::Part part) {
  switch (part) {
    case simulator::Part::kCompute:
      return Kind::kForward;
    case simulator::Part::kRecompute:
      return Kind::kRecompute;
    case simulator::Part::kExposedTensor:
      return Kind::kTensor;
    case simulator::Part::kExposedContext:
      return Kind::kContext;
    case simulator::Part::kExposedExpert:
      return Kind::kExpert;
    case simulator::Part::kExposedData:
      return Kind::kData;
    case simulator::Part::kExposedPipeline:
      return Kind::kPipeline;
    case simulator::Part::kExposedOffload:
      return Kind::kOffload;
    case simulator::Part::kBubble:
      return Kind::kWaiting;
    case simulator::Part::kOptimizer:
      return Kind::kOptimizer;
    default:
      return Kind::kOther;
  }
}

std::string hex(std::uint32_t colour) { return fmt::format("#{:06x}", colour); }

}  // namespace trivium::report
