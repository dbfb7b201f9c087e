#include "planner/wording.h"

#include <algorithm>

#include "edge/readable.h"
#include "edge/seconds.h"

namespace trivium::planner {

std::string time_text(std::int64_t ps) { return edge::seconds(static_cast<double>(ps) * edge::kSecondsPerPs); }

std::string words_of(simulator::Part part) {
  std::string name(name_of(part));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace trivium::planner
