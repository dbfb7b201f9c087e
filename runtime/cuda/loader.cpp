// dlopen of libtrivium_cuda.so.
#include "runtime/cuda/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/files.h"
#include "base/quote.h"
#include "runtime/cuda/module.h"

namespace trivium::runtime::cuda {
namespace {

constexpr const char* kModule = "libtrivium_cuda.so";
using Text = std::array<char, 512>;

base::Error missing(const std::string& why) {
  return {base::ErrorKind::kHardware, fmt::format("cannot use a GPU: {}", base::one_line(why))};
}

/// With the program, then where the dynamic linker looks. Never closed: CUDA does not start twice in a process.
base::Result<const CudaModule*> load() {
  std::vector<std::string> paths = base::module_files(kModule);
  paths.emplace_back(kModule);
  std::string why;
  for (const std::string& path : paths) {
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      if (why.empty()) why = ::dlerror();
      continue;
    }
    const auto get = reinterpret_cast<GetCudaModule>(::dlsym(module, kCudaModuleSymbol));
    if (get == nullptr) return missing(::dlerror());
    return get();
  }
  return missing(why + "; build where the CUDA toolkit is installed");
}

}  // namespace

base::Result<std::vector<std::string>> describe_devices() {
  const auto module = load();
  if (!module) return module.error();
  Text text{};
  const int count = module.value()->count_devices(text.data(), text.size());
  if (count == 0) return missing(text.data());
  std::vector<std::string> lines;
  for (int device = 0; device < count; ++device) {
    module.value()->describe(device, text.data(), text.size());
    lines.emplace_back(text.data());
  }
  return lines;
}

base::Result<std::unique_ptr<Backend>> open_device(int device, const DeviceOptions& options) {
  const auto module = load();
  if (!module) return module.error();
  Text text{};
  if (module.value()->count_devices(text.data(), text.size()) == 0) return missing(text.data());
  std::unique_ptr<Backend> backend(module.value()->open(device, options, text.data(), text.size()));
  if (!backend) return missing(text.data());
  return backend;
}

base::Result<std::unique_ptr<Communicator>> connect_nccl(Backend& backend, const nccl::Launch& launch) {
  const auto module = load();
  if (!module) return module.error();
  Text text{};
  std::unique_ptr<Communicator> communicator(module.value()->connect(backend, launch, text.data(), text.size()));
  if (!communicator) return missing(text.data());
  return communicator;
}

}  // namespace trivium::runtime::cuda
