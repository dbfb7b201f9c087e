// What a process needs of its surroundings before it opens anything.
#pragma once

namespace trivium::cli {

/// Closed standard streams become ones that cannot be read or written, so that no file of ours gets their numbers and
/// is written into. Broken pipes and files that may not grow are then errors of the write and end nothing.
void settle_standard_streams();

}  // namespace trivium::cli
