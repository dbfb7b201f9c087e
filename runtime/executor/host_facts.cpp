#include "runtime/executor/host_facts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>

#include "hardware_profiles/this_machine.h"

namespace trivium::runtime {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}", __VERSION__);
#else
  return "unknown compiler";
#endif
}

std::string system_name() {
  utsname names{};
  if (::uname(&names) != 0) return "unknown system";
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

}  // namespace

std::map<std::string, std::string> host_facts() {
  return {{"processor", processor()},
          {"compiler", compiler()},
          {"cores", std::to_string(hardware::machine_cores())},
          {"system", system_name()},
          {"library", TRIVIUM_MATRIX_LIBRARY},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

}  // namespace trivium::runtime
