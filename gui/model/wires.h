// Which wires a plan uses, in words, rows and bars.
#pragma once

#include <string>
#include <vector>

#include "gui/model/evaluation.h"
#include "report/palette.h"
#include "simulator/studies/link_use.h"

namespace trivium::gui {

/// Of a plan that was simulated op by op; else nothing.
std::vector<simulator::WireUse> wires_of(const Evaluation& evaluation);

/// Whose colour a group's traffic has; kNone: copies to and from the host.
report::Kind kind_of(program::Group group);

/// "Network: 505 GiB a device and iteration, busy 87.6 % of it, 16.3 % with nothing computed meanwhile; …" One sentence
/// for each kind of wire, the longest with nothing computed first.
std::vector<std::string> wire_sentences(const std::vector<simulator::WireUse>& wires, double iteration_s);

/// With a header.
std::string wires_csv(const std::vector<simulator::WireUse>& wires);

}  // namespace trivium::gui
