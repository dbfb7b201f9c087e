#include "calibration/fit/gpu_models.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace trivium::calibration {
namespace {

// NVIDIA's data sheets: NVLink 2 and 3 of V100 and A100, NVLink 4 of Hopper, NVLink 5 of Blackwell. Names that hold
// another stand before it.
constexpr std::array<GpuModel, 11> kModels{{{"GB300", 50e9},
                                            {"GB200", 50e9},
                                            {"B300", 50e9},
                                            {"B200", 50e9},
                                            {"GH200", 25e9},
                                            {"H200", 25e9},
                                            {"H800", 25e9},
                                            {"H100", 25e9},
                                            {"A800", 25e9},
                                            {"A100", 25e9},
                                            {"V100", 25e9}}};

bool is_same(char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; }

}  // namespace

const GpuModel* gpu_model_in(std::string_view name) {
  const auto* found = std::ranges::find_if(kModels, [&](const GpuModel& model) {
    return std::search(name.begin(), name.end(), model.name.begin(), model.name.end(), is_same) != name.end();
  });
  return found == kModels.end() ? nullptr : found;
}

}  // namespace trivium::calibration
