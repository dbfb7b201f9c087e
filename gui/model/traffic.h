// What a rank exchanges with its groups in one iteration.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace trivium::gui {

struct Exchange {
  program::Group group = program::Group::kNone;
  std::int64_t operations = 0;  ///< collectives, or transfers sent
  double payload_bytes = 0;     ///< of the buffers
  double sent_bytes = 0;        ///< that leave the rank (simulator/collectives/network_bytes.h)
};

/// By group, for every rank of a role (its place in the Program); groups without traffic are left out.
std::vector<Exchange> traffic(const program::Program& program, int role);

/// Bytes that leave a rank of the role in one iteration.
double sent_bytes(const program::Program& program, int role);

}  // namespace trivium::gui
