// The bubble of a pipeline that is filled and drained once a step, in words.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/readable.h"

namespace trivium::program::schedules {

/// While the first micro-batch goes to the last stage and the last one comes back from it, a stage idles the passes of
/// p - 1 chunks, of those of all `passes` (v chunks of m micro-batches) that it runs. `formula` is "m" or "vm".
inline std::string fill_and_drain(std::string_view formula, int pipeline, std::int64_t passes) {
  return fmt::format("equal stages idle (p - 1) / {} = {} / {} = {} of their passes", formula, pipeline - 1, passes,
                     base::percent(static_cast<double>(pipeline - 1) / static_cast<double>(passes)));
}

}  // namespace trivium::program::schedules
