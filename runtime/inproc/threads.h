// Ranks as threads of one process.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/communicator.h"

namespace trivium::runtime::inproc {

/// Communicators of `ranks` threads that share this process; element r belongs to rank r.
std::vector<std::unique_ptr<Communicator>> make_communicators(int ranks);

/// Runs `body` of every rank on a thread of its own, each on a core of its own or, where ranks outnumber cores, in
/// turns (Cores). Returns when all ended. A rank that throws aborts the others; what was thrown first is thrown on.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace trivium::runtime::inproc
