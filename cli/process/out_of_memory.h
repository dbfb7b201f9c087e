// Ends with a one-line error where the machine runs out of memory.
#pragma once

namespace trivium::cli {

/// Sets memory aside that is given back when an allocation fails, so that what is on the stack can be destroyed (JSON
/// documents allocate while they are), and ends the process with a line and exit code 1 where a lack of memory meets
/// code that cannot pass it on: threads, destructors.
void prepare_for_lack_of_memory();

}  // namespace trivium::cli
