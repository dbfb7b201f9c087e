// CUDA's runtime over the fake GPU: the functions that the backend calls, with the errors that it may see.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/runtime/fake_gpu/machine.h"

namespace {

using trivium::fake_gpu::current_device;
using trivium::fake_gpu::Machine;
using trivium::fake_gpu::Recording;

Machine& machine() { return Machine::get(); }

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t told(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

/// What a thread that records must not do: the recording is lost.
bool breaks_recording() {
  bool any = false;
  for (const cudaStream_t stream : machine().streams) {
    if (stream->records && stream->recorder == std::this_thread::get_id()) any = stream->broken = true;
  }
  return any;
}

/// Memory that the device reaches, or the host's own.
enum class Place { kDevice, kPinned, kPageable };

Place place_of(const void* memory, std::size_t bytes) {
  if (machine().on_device(memory, bytes)) return Place::kDevice;
  if (machine().on_device(memory, 1)) machine().refuse("a copy beyond the end of an allocation");
  return machine().pinned(memory, bytes) ? Place::kPinned : Place::kPageable;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const Place target = place_of(to, bytes), source = place_of(from, bytes);
  if (stream->records && (target == Place::kPageable || source == Place::kPageable)) {
    stream->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  // Memory that is not pinned the driver copies itself, before the call returns, and waits for the stream before it
  // begins ("API synchronization behavior" in CUDA's runtime API; it may where it need not).
  if (source == Place::kPageable) {
    machine().await([&] { return stream->work.empty(); });
    const auto* bytes_now = static_cast<const std::byte*>(from);
    machine().issue(stream, [to, held = std::vector<std::byte>(bytes_now, bytes_now + bytes)] {
      std::memcpy(to, held.data(), held.size());
      return true;
    });
  } else {
    machine().issue(stream, [=] {
      std::memmove(to, from, bytes);
      return true;
    });
  }
  if (target == Place::kPageable) machine().await([&] { return stream->work.empty(); });
  return cudaSuccess;
}

cudaStream_t make_stream() {
  auto* stream = new CUstream_st;
  stream->device = current_device();
  machine().streams.insert(stream);
  return stream;
}

/// The stream that calls without one use. Streams made non-blocking do not wait for it, nor it for them.
cudaStream_t default_stream() {
  static std::map<int, cudaStream_t> all;
  cudaStream_t& stream = all[current_device()];
  if (stream == nullptr) stream = make_stream();
  return stream;
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "an error of the fake GPU";
}
const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "another";
  }
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard lock(machine().mutex);
  return *count = machine().devices(), cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices()) return told(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "fake GPU");
  properties->major = machine().compute_capability() / 10;
  properties->minor = machine().compute_capability() % 10;
  properties->totalGlobalMem = machine().bytes_of_device();
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const std::lock_guard lock(machine().mutex);
  if (device < 0 || device >= machine().devices()) return told(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const std::lock_guard lock(machine().mutex);
  if (attribute != cudaDevAttrComputeCapabilityMajor && attribute != cudaDevAttrComputeCapabilityMinor)
    machine().refuse("an attribute it does not know");
  const int sm = machine().compute_capability();
  return *value = attribute == cudaDevAttrComputeCapabilityMajor ? sm / 10 : sm % 10, cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const std::lock_guard lock(machine().mutex);
  *attributes = {};
  machine().load(kernel);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return *lowest = 0, *highest = -5, cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard lock(machine().mutex);
  if (breaks_recording()) return told(cudaErrorStreamCaptureUnsupported);
  machine().await([] { return machine().idle(current_device()); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  const std::lock_guard lock(machine().mutex);
  if (flags != cudaStreamNonBlocking) machine().refuse("a stream that waits for the default stream");
  *stream = make_stream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  machine().await([&] { return stream->work.empty(); });
  machine().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (stream->records) return stream->broken = true, told(cudaErrorStreamCaptureUnsupported);
  if (!stream->work.empty()) machine().progress();
  return stream->work.empty() ? cudaSuccess : told(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(machine().mutex);
  if (event->latest == nullptr) return cudaSuccess;  // an event that was never recorded is waited for by nobody
  if (stream->records) machine().refuse("a graph that waits for what is outside of it");
  machine().issue(stream, [recording = event->latest] { return recording->done; });
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const std::lock_guard lock(machine().mutex);
  if (stream->records) machine().refuse("a function of the host within a graph");
  machine().issue(stream, [=] {
    function(data);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(machine().mutex);
  if (stream->records) return told(cudaErrorIllegalState);
  stream->records = true, stream->broken = false, stream->recorder = std::this_thread::get_id();
  stream->recorded.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(machine().mutex);
  *graph = nullptr;
  if (!stream->records) return told(cudaErrorIllegalState);
  stream->records = false;
  if (stream->broken) return told(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(stream->recorded)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(machine().mutex);
  *status = !stream->records ? cudaStreamCaptureStatusNone
            : stream->broken ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return *made = new CUgraphExec_st{graph->work}, cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

// Destroyed at once, whether or not it is under way: CUDA keeps it until then.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (stream->records) machine().refuse("a graph within a graph");
  for (const auto& work : graph->work) machine().issue(stream, work);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return *event = new CUevent_st{current_device(), (flags & cudaEventDisableTiming) == 0, nullptr}, cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (event->device != stream->device) return told(cudaErrorInvalidResourceHandle);
  if (stream->records) machine().refuse("an event of a graph that is used outside of it");
  event->latest = std::make_shared<Recording>();
  machine().issue(stream, [recording = event->latest] {
    *recording = {true, machine().now()};
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(machine().mutex);
  if (event->latest == nullptr || event->latest->done) return cudaSuccess;
  machine().progress();
  return event->latest->done ? cudaSuccess : told(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::lock_guard lock(machine().mutex);
  if (from->latest == nullptr || to->latest == nullptr || !from->has_time || !to->has_time)
    return told(cudaErrorInvalidResourceHandle);
  if (!from->latest->done || !to->latest->done) return told(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(to->latest->at - from->latest->at).count();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const std::lock_guard lock(machine().mutex);
  if (breaks_recording()) return told(cudaErrorStreamCaptureUnsupported);
  *memory = machine().allocate(current_device(), bytes);
  return *memory == nullptr ? told(cudaErrorMemoryAllocation) : cudaSuccess;
}

// Waits for the device, as work under way may use the memory.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const std::lock_guard lock(machine().mutex);
  if (breaks_recording()) return told(cudaErrorStreamCaptureUnsupported);
  machine().await([] { return machine().idle(current_device()); });
  return machine().free(memory) ? cudaSuccess : told(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const std::lock_guard lock(machine().mutex);
  return *memory = machine().allocate_pinned(bytes), cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const std::lock_guard lock(machine().mutex);
  machine().await([] { return machine().idle(current_device()); });
  return machine().free_pinned(memory) ? cudaSuccess : told(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  const std::lock_guard lock(machine().mutex);
  *left = machine().bytes_left(current_device());
  *all = machine().bytes_of_device();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const std::lock_guard lock(machine().mutex);
  *attributes = {};
  attributes->type = machine().on_device(memory, 1) ? cudaMemoryTypeDevice
                     : machine().pinned(memory, 1)  ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (place_of(to, bytes) == Place::kPageable) return told(cudaErrorInvalidValue);
  constexpr std::size_t kMostUncomputed = std::size_t{1} << 20;
  const std::size_t filled = machine().computes() ? bytes : std::min(bytes, kMostUncomputed);
  machine().issue(stream, [=] {
    std::memset(to, value, filled);
    return true;
  });
  return cudaSuccess;
}

// To memory of the device it returns before it is done.
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  {
    const std::lock_guard lock(machine().mutex);
    if (breaks_recording()) return told(cudaErrorStreamCaptureUnsupported);
    stream = default_stream();
  }
  return cudaMemsetAsync(to, value, bytes, stream);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const std::lock_guard lock(machine().mutex);
  if (kind != cudaMemcpyDefault) machine().refuse("a copy whose direction is told");
  return told(copy(to, from, bytes, stream));
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const std::lock_guard lock(machine().mutex);
  if (kind != cudaMemcpyDefault) machine().refuse("a copy whose direction is told");
  if (breaks_recording()) return told(cudaErrorStreamCaptureUnsupported);
  const cudaStream_t stream = default_stream();
  const cudaError_t code = copy(to, from, bytes, stream);
  machine().await([&] { return stream->work.empty(); });
  return told(code);
}

}  // extern "C"
