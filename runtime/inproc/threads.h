// Ranks as threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "runtime/communicator.h"

namespace trivium::runtime::inproc {

/// Communicators of `ranks` threads that share this process; element r belongs to rank r.
std::vector<std::unique_ptr<Communicator>> make_communicators(int ranks);

}  // namespace trivium::runtime::inproc
