// What a run ran on, as far as it may change what is measured.
#pragma once

#include <map>
#include <string>

namespace trivium::runtime {

/// "processor" and "compiler" as they name themselves, "cores" this process may use, "system" (kernel and release),
/// "library" (of the matrix products) and "date" (UTC, ISO 8601). No name of a person or machine.
std::map<std::string, std::string> host_facts();

}  // namespace trivium::runtime
