// trivium doctor: what this machine offers, without linking to any of it.
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/options/command.h"
#include "cli/render/render.h"
#include "cli/render/version.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/this_machine.h"
#include "runtime/cuda/loader.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

struct Finding {
  std::string name;
  bool present = false;
  std::string detail;
};

/// A dynamic library, open as long as this lives.
class Library {
 public:
  // Kept in memory: NVIDIA's libraries hold what they never give back, which would look lost without them.
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  Function find(const char* symbol) const {
    return reinterpret_cast<Function>(::dlsym(handle_, symbol));
  }

 private:
  void* handle_;
};

std::string instruction_sets() {
#if defined(__x86_64__) || defined(__i386__)
  std::string found;
  const auto note = [&](bool has, const char* name) {
    if (has) found += (found.empty() ? "" : " ") + std::string(name);
  };
  note(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
  note(__builtin_cpu_supports("avx2") != 0, "avx2");
  note(__builtin_cpu_supports("fma") != 0, "fma");
  note(__builtin_cpu_supports("avx512f") != 0, "avx512f");
  return found.empty() ? "x86 baseline" : found;
#else
  return "not told apart on this architecture";
#endif
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// The driver's own interface: all its functions return 0 for success.
Finding cuda_driver() {
  const Library driver("libcuda.so.1");
  if (!driver) return {"CUDA driver", false, "no driver (libcuda.so.1 not found)"};
  using Init = int (*)(unsigned);
  using Query = int (*)(int*);
  const auto init = driver.find<Init>("cuInit");
  const auto version_of = driver.find<Query>("cuDriverGetVersion");
  const auto count_devices = driver.find<Query>("cuDeviceGetCount");
  if (init == nullptr || version_of == nullptr || count_devices == nullptr) {
    return {"CUDA driver", false, "libcuda.so.1 lacks the functions of a driver"};
  }
  if (const int code = init(0); code != 0)
    return {"CUDA driver", false, fmt::format("does not start (error {})", code)};
  int version = 0, devices = 0;
  version_of(&version);
  count_devices(&devices);
  return {"CUDA driver", true, fmt::format("CUDA {}, {} devices", version_text(version), devices)};
}

/// What the CUDA backend itself sees, asked through its module.
Finding gpus() {
  const auto devices = runtime::cuda::describe_devices();
  if (!devices) return {"GPUs", false, devices.error().message};
  std::string lines;
  for (const std::string& line : devices.value()) lines += (lines.empty() ? "" : "; ") + line;
  return {"GPUs", true, lines};
}

Finding library_of(const std::string& name, std::initializer_list<const char*> files) {
  for (const char* file : files) {
    if (const Library library(file); library) return {name, true, file};
  }
  return {name, false, fmt::format("{} not found", *files.begin())};
}

Finding module(const std::string& name, const std::string& file) {
  for (const std::string& path : base::module_files(file)) {
    const Library library(path.c_str());
    return {name, static_cast<bool>(library), library ? path : path + " does not load"};
  }
  return {name, false, file + " is neither next to the program nor in its lib folder"};
}

Finding profile() {
  const std::string path = hardware::this_machine_path();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {"profile", false, "none of this machine; `trivium profile` makes it"};
  hardware::load_node(path);
  return {"profile", true, path};
}

std::vector<Finding> examine() {
  std::vector<Finding> findings;
  findings.push_back({"cores", true, std::to_string(hardware::machine_cores())});
  findings.push_back({"memory", true, base::to_text(hardware::machine_memory())});
  findings.push_back({"instruction sets", true, instruction_sets()});
  findings.push_back({"data", true, base::shipped_data("models").parent_path().string()});
  findings.push_back(profile());
  findings.push_back(module("MPI module", "libtrivium_mpi.so"));
  findings.push_back(module("CUDA module", "libtrivium_cuda.so"));
  findings.push_back(gpus());
  findings.push_back(cuda_driver());
  findings.push_back(library_of("CUDA runtime", {"libcudart.so", "libcudart.so.13", "libcudart.so.12"}));
  findings.push_back(library_of("NCCL", {"libnccl.so.2"}));
  findings.push_back(
      library_of("CUPTI", {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}));
  return findings;
}

void run(bool json) {
  const std::vector<Finding> findings = examine();
  if (json) {
    auto list = nlohmann::json::array();
    for (const Finding& f : findings) list.push_back({{"name", f.name}, {"present", f.present}, {"detail", f.detail}});
    print_json({{"schema", "trivium.doctor/1"}, {"version", version()}, {"findings", std::move(list)}});
    return;
  }
  Table table({"<what", "<here", "<detail"});
  for (const Finding& f : findings) table.add({f.name, f.present ? "yes" : "no", f.detail});
  print(version_lines() + "\n\n" + table.text());
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine offers: cores, MPI, CUDA, profile");
  command->add_flag("--json", *json, "JSON on stdout");
  command->callback([json, &exit_code] {
    run(*json);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
