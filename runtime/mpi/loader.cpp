// dlopen of libtrivium_mpi.so.
#include "runtime/mpi/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/quote.h"
#include "runtime/mpi/module.h"

namespace trivium::runtime::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libtrivium_mpi.so";

/// The files of that name beside the program and in ../lib from there, best first.
std::vector<std::string> near_the_program(const char* name) {
  std::vector<std::string> paths;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (ignored) return paths;
  for (const fs::path& folder : {program.parent_path(), program.parent_path().parent_path() / "lib"}) {
    if (fs::exists(folder / name, ignored)) paths.push_back((folder / name).string());
  }
  return paths;
}

/// Where the module may be, best first; the bare name leaves the search to the dynamic linker.
std::vector<std::string> candidates() {
  std::vector<std::string> paths = near_the_program(kModule);
  paths.emplace_back(kModule);
  return paths;
}

base::Error missing(const std::string& why) {
  return {base::ErrorKind::kHardware,
          fmt::format("cannot load MPI: {}; build with TRIVIUM_MPI=ON where MPI is installed, or run without mpirun",
                      base::one_line(why))};
}

}  // namespace

bool launched_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

fs::path loopback_library() {
  const std::vector<std::string> paths = near_the_program("libtrivium_loopback.so");
  return paths.empty() ? fs::path() : fs::path(paths.front());
}

base::Result<std::unique_ptr<Communicator>> connect_mpi() {
  void* module = nullptr;
  std::string why;
  for (const std::string& path : candidates()) {
    // Global: Open MPI's plugins look for the symbols of libmpi among the global ones. Never closed: MPI cannot start
    // twice.
    module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module != nullptr) break;
    if (why.empty()) why = ::dlerror();
  }
  if (module == nullptr) return missing(why);
  const auto connect = reinterpret_cast<ConnectMpi>(::dlsym(module, kConnectMpiSymbol));
  if (connect == nullptr) return missing(::dlerror());
  std::array<char, 512> message{};
  std::unique_ptr<Communicator> communicator(connect(message.data(), message.size()));
  if (!communicator) {
    return base::Error{base::ErrorKind::kHardware,
                       fmt::format("MPI does not start: {}", base::one_line(message.data()))};
  }
  return communicator;
}

}  // namespace trivium::runtime::mpi
