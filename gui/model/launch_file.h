// Launch files of other trainers as scenarios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// A file, and what it does not say itself.
struct LaunchWish {
  std::string path, cluster;
  std::string model;          ///< empty: as the file says
  std::int64_t sequence = 0;  ///< 0: as the file says
};

struct LaunchFile {
  Scenario scenario;
  std::string software;           ///< whose file it is: "Megatron-LM"
  std::string words;              ///< "gpt3-175b on dgx-a100-80gb:128, …: TP8 PP16"
  std::vector<std::string> lost;  ///< settings that have no place in a plan
};

/// What `trivium import` reads. Errors: Failure(kInput) naming file and setting, or the cluster.
LaunchFile read_launch_file(const LaunchWish& wish);

}  // namespace trivium::gui
