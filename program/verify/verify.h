// Static checks of a Program that guard both interpreters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// Everything that is wrong with the Program, one line each; empty when it may run. Checked: every micro-batch passes
/// every chunk forward and backward once · transfers are paired and agree on bytes · collectives that join stages come
/// in the same sequence everywhere · tasks, lanes and rendezvous form no cycle (the cycle is named) · the host order,
/// where there is one, holds every segment once and after what it waits for · buffers are written before they are read
/// · a frame is taken again only when its micro-batch is through · what is offloaded is there when it is used ·
/// temporaries do not overlap while both live · the rank's memory is within `capacity_bytes` (0: not checked).
std::vector<std::string> verify(const Program& program, std::int64_t capacity_bytes = 0);

}  // namespace trivium::program
