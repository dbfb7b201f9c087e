#include "runtime/cuda/cupti.h"

#if defined(TRIVIUM_HAS_CUPTI)
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/cuda/cupti_records.h"

namespace trivium::runtime::cuda {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20, kAlignment = 64;  // CUPTI asks for 8
constexpr auto kTagKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
// Tags are reported for calls, so calls are recorded too: kernels of products are launched through the driver's.
constexpr std::array kKinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// The host asks these over and over while it waits, and a record of each would fill buffer after buffer.
constexpr std::array<CUpti_CallbackId, 3> kAskedOfRuntime{CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020,
                                                          CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
                                                          CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020};
constexpr std::array<CUpti_CallbackId, 2> kAskedOfDriver{CUPTI_DRIVER_TRACE_CBID_cuStreamQuery,
                                                         CUPTI_DRIVER_TRACE_CBID_cuEventQuery};
using EnableCall = CUptiResult (*)(CUpti_CallbackId call, std::uint8_t enable);

struct Library {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush_all;
  decltype(&cuptiActivityGetNextRecord) next_record;
  decltype(&cuptiActivityPushExternalCorrelationId) push;
  decltype(&cuptiActivityPopExternalCorrelationId) pop;
  decltype(&cuptiGetTimestamp) timestamp;
  decltype(&cuptiGetResultString) text_of;
  EnableCall enable_runtime_call, enable_driver_call;  // null before CUPTI had them
};

Library library{};
ActivityLog* listening = nullptr;  // CUPTI's calls carry no word of ours

std::vector<std::string> places() {
  const std::string name = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
  std::vector<std::string> found{name};
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& root : {std::string(home != nullptr ? home : ""), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
    for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/"}) found.push_back(root + folder + name);
  }
  return found;
}

void* open_library(std::string& why) {
  for (const std::string& place : places()) {
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (why.empty()) why = ::dlerror();
  }
  return nullptr;
}

bool find_calls(void* handle, std::string& why) {
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(::dlsym(handle, name));
    if (call == nullptr && why.empty()) why = ::dlerror();
  };
  find(library.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(library.enable, "cuptiActivityEnable");
  find(library.disable, "cuptiActivityDisable");
  find(library.flush_all, "cuptiActivityFlushAll");
  find(library.next_record, "cuptiActivityGetNextRecord");
  find(library.push, "cuptiActivityPushExternalCorrelationId");
  find(library.pop, "cuptiActivityPopExternalCorrelationId");
  find(library.timestamp, "cuptiGetTimestamp");
  find(library.text_of, "cuptiGetResultString");
  library.enable_runtime_call = reinterpret_cast<EnableCall>(::dlsym(handle, "cuptiActivityEnableRuntimeApi"));
  library.enable_driver_call = reinterpret_cast<EnableCall>(::dlsym(handle, "cuptiActivityEnableDriverApi"));
  return why.empty();
}

std::string text_of(CUptiResult code) {
  const char* text = nullptr;
  return library.text_of(code, &text) == CUPTI_SUCCESS ? text : fmt::format("CUPTI error {}", static_cast<int>(code));
}

void check(CUptiResult code, const char* call) {
  if (code != CUPTI_SUCCESS) throw Aborted(fmt::format("{}: {}", call, text_of(code)));
}

/// Without what is only asked: the kind as a whole would turn that on again, so it comes first.
void enable_records() {
  for (const CUpti_ActivityKind kind : kKinds) check(library.enable(kind), "cuptiActivityEnable");
  for (const CUpti_CallbackId call : kAskedOfRuntime) {
    if (library.enable_runtime_call != nullptr) static_cast<void>(library.enable_runtime_call(call, 0));
  }
  for (const CUpti_CallbackId call : kAskedOfDriver) {
    if (library.enable_driver_call != nullptr) static_cast<void>(library.enable_driver_call(call, 0));
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  read_records(buffer, valid, library.next_record, *listening);
  std::free(buffer);
}

}  // namespace

// Never closed: CUPTI may call until the process ends.
std::string Cupti::missing() {
  static const std::string why = [] {
    std::string reason;
    void* handle = open_library(reason);
    if (handle == nullptr) return reason;
    reason.clear();
    static_cast<void>(find_calls(handle, reason));
    return reason;
  }();
  return why;
}

Cupti& Cupti::open() {
  static Cupti* const opened = [] {
    if (const std::string why = missing(); !why.empty()) throw Aborted("no CUPTI: " + why);
    auto* made = new Cupti;
    listening = &made->log_;
    check(library.register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    try {
      enable_records();
    } catch (const Aborted&) {  // whoever goes on with events is not slowed by records
      for (const CUpti_ActivityKind kind : kKinds) static_cast<void>(library.disable(kind));
      throw;
    }
    return made;
  }();
  return *opened;
}

void Cupti::tag(std::uint64_t number) {
  untag();
  check(library.push(kTagKind, number), "cuptiActivityPushExternalCorrelationId");
  tagged_ = true;
}

void Cupti::untag() {
  if (tagged_) check(library.pop(kTagKind, nullptr), "cuptiActivityPopExternalCorrelationId");
  tagged_ = false;
}

std::uint64_t Cupti::now_ns() const {
  std::uint64_t now = 0;
  check(library.timestamp(&now), "cuptiGetTimestamp");
  return now;
}

// Forced: buffers that also hold records of work that has not ended, as of another rank's, come too.
void Cupti::flush() { check(library.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll"); }

}  // namespace trivium::runtime::cuda

#else
#include "runtime/communicator.h"

namespace trivium::runtime::cuda {

std::string Cupti::missing() { return "the CUDA module was built without cupti.h"; }
Cupti& Cupti::open() { throw Aborted("no CUPTI: " + missing()); }
void Cupti::tag(std::uint64_t) {}
void Cupti::untag() {}
std::uint64_t Cupti::now_ns() const { return 0; }
void Cupti::flush() {}

}  // namespace trivium::runtime::cuda

#endif
