// Keeping a rank's thread on one core.
#pragma once

namespace trivium::runtime {

/// Binds the calling thread to the `rank`-th core this process may use, where there are at least `ranks` of them; does
/// nothing otherwise, or where the system has no such call. Two ranks that share a core wait for each other at every
/// collective.
void pin_to_core(int rank, int ranks);

}  // namespace trivium::runtime
