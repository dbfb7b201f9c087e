#include "tests/calibration/samples.h"

#include "base/files.h"

namespace trivium::calibration {

std::string sample_path(const std::string& name) { return std::string(TRIVIUM_SOURCE_DIR) + "/tests/data/" + name; }

std::string sample(const std::string& name) { return base::read_file(sample_path(name)); }

std::string beginning_of(const std::string& name, double share) {
  const std::string whole = sample(name);
  return whole.substr(0, static_cast<std::size_t>(share * static_cast<double>(whole.size())));
}

}  // namespace trivium::calibration
