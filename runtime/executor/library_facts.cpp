#include "runtime/executor/library_facts.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <regex>

namespace trivium::runtime {
namespace {

std::string nvidia_driver() {
  std::ifstream module("/proc/driver/nvidia/version");
  return nvidia_driver_in(std::string{std::istreambuf_iterator<char>(module), {}});
}

}  // namespace

std::string nvidia_driver_in(std::string_view text) {
  static const std::regex kVersion(R"((?:^|\n)NVRM version:[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s)");
  std::match_results<std::string_view::const_iterator> found;
  return std::regex_search(text.begin(), text.end(), found, kVersion) ? found[1].str() : "";
}

// May be called before MPI starts and after it ends. "Open MPI v4.1.4, package: …".
std::map<std::string, std::string> mpi_facts() {
  using Version = int (*)(char*, int*);
  const auto version = reinterpret_cast<Version>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  std::array<char, 1 << 14> text{};  // MPICH asks for 8 KiB
  int length = 0;
  if (version == nullptr || version(text.data(), &length) != 0) return {};
  const std::string_view whole(text.data());
  return {{"mpi", std::string(whole.substr(0, whole.find_first_of(",\n")))}};
}

std::map<std::string, std::string> gpu_facts(const std::string& description) {
  constexpr std::string_view kSoftware = ", driver for ", kNccl = ", NCCL ";
  std::map<std::string, std::string> facts;
  const std::size_t software = std::min(description.find(kSoftware), description.size()),
                    nccl = description.find(kNccl, software);
  facts["gpu"] = description.substr(0, software);
  if (software < description.size()) {
    const std::size_t begin = software + kSoftware.size();
    facts["cuda"] = description.substr(begin, std::min(nccl, description.size()) - begin);
  }
  if (nccl != std::string::npos) facts["nccl"] = description.substr(nccl + kNccl.size());
  if (const std::string driver = nvidia_driver(); !driver.empty()) facts["driver"] = driver;
  return facts;
}

}  // namespace trivium::runtime
