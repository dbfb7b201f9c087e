// dlopen of libtrivium_mpi.so.
#include "runtime/mpi/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/quote.h"
#include "runtime/mpi/module.h"

namespace trivium::runtime::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libtrivium_mpi.so";

/// Null, and `why`, where it does not load. Global: Open MPI's plugins look for the symbols of libmpi among the global
/// ones. Never closed: MPI cannot start twice.
void* open_module(const std::string& path, std::string& why) {
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr && why.empty()) why = ::dlerror();
  return module;
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
  const std::vector<std::string> paths = base::module_files("libtrivium_loopback.so");
  return paths.empty() ? fs::path() : fs::path(paths.front());
}

base::Result<std::unique_ptr<Communicator>> connect_mpi() {
  void* module = nullptr;
  std::string why;
  for (const std::string& path : base::module_files(kModule)) {
    if (module == nullptr) module = open_module(path, why);
  }
  if (module == nullptr) module = open_module(kModule, why);  // where the dynamic linker looks
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
