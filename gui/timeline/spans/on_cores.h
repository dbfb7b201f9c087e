// Work on many like things at once, for pictures that must be there within a frame.
#pragma once

#include <cstddef>
#include <functional>

namespace trivium::gui {

/// Calls `work` once for each of [0, count), on all cores where `cells`, the amount of work in all, is worth starting
/// threads for. Which thread does what is left to chance: calls must not touch what others write. Returns when all are
/// done.
void on_cores(std::size_t count, std::size_t cells, const std::function<void(std::size_t)>& work);

}  // namespace trivium::gui
