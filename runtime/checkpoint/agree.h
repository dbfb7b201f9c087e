// Steps that all ranks take together and that count only when all of them succeeded.
#pragma once

#include <functional>
#include <vector>

#include "runtime/checkpoint/description.h"
#include "runtime/communicator.h"

namespace trivium::runtime::checkpoint {

/// Runs `work` on every rank, then tells every rank what each of them wrote (in rank order). Where one failed, all
/// throw its Failure, named by rank; every rank reaches the next step or none.
std::vector<ShardFile> agree(Communicator& communicator, int everyone, const std::function<ShardFile()>& work);

}  // namespace trivium::runtime::checkpoint
