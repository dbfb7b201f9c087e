// What the operating system says about the machine the program runs on.
#pragma once

#include "base/units.h"

namespace trivium::hardware {

/// Cores this process may use; at least 1.
int machine_cores();

/// Physical memory of the machine. Errors: Failure(kHardware) when the system does not tell.
base::Bytes machine_memory();

}  // namespace trivium::hardware
