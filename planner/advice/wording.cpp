#include "planner/advice/wording.h"

#include <algorithm>

#include "base/readable.h"
#include "base/seconds.h"

namespace trivium::planner {

std::string time_text(std::int64_t ps) { return base::seconds(static_cast<double>(ps) * base::kSecondsPerPs); }

std::string words_of(simulator::Part part) {
  std::string name(name_of(part));
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string words_of(simulator::Part part, const program::Mesh& mesh) {
  const bool alone = mesh.group_size(program::Group::kData) < 2;
  return part == simulator::Part::kExposedData && alone ? "exposed tied embedding" : words_of(part);
}

}  // namespace trivium::planner
