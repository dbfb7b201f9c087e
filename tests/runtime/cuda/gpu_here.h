// The GPU of the tests.
#pragma once

#include "runtime/backend.h"

namespace trivium::runtime::cuda {

/// GPU 0 as this thread's backend. Only where there is one: the tests are skipped where there is none.
Backend& gpu();

}  // namespace trivium::runtime::cuda
