// Whether buckets that are whole only for a while are whole when they are used.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Every segment that reads gathered parameters waits for their gather; no gather and no pass writes a slot that an
/// earlier pass still reads or an earlier reduction still sums; every micro-batch's gradients are reduced once.
void check_sharding(const Program& program, std::vector<std::string>& problems);

}  // namespace trivium::program
