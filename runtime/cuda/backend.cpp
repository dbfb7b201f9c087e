#include "runtime/cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/say.h"
#include "runtime/communicator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/ranges.h"
#include "runtime/cuda/refusal.h"

namespace trivium::runtime::cuda {
namespace {

using program::Lane;

constexpr int kAmpere = 8;  // compute capability, major number: bf16, and tensor cores as the kernels use them

/// From here on the thread's device. What belongs to a device, as a handle of cuBLASLt does, is made behind it.
int chosen(int device) {
  TRIVIUM_CHECK_CUDA(cudaSetDevice(device));
  return device;
}

}  // namespace

CudaBackend::CudaBackend(int device, const DeviceOptions& options) : device_(chosen(device)), options_(options) {
  if (options.kernel_records) kernel_clock_.emplace(Cupti::open());
  int major = 0;
  TRIVIUM_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  has_tiles_ = major >= kAmpere;
  int lowest = 0, highest = 0;
  TRIVIUM_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
    // What others wait for goes first where both want the device.
    const int priority = static_cast<Lane>(lane) == Lane::kCompute ? lowest : highest;
    TRIVIUM_CHECK_CUDA(cudaStreamCreateWithPriority(&streams_[lane], cudaStreamNonBlocking, priority));
    name_lane(streams_[lane], static_cast<Lane>(lane));
    lanes_[lane] = std::make_unique<Launcher>(streams_[lane], products_, has_tiles_);
    graphs_[lane].emplace(GraphRecorder(*lanes_[lane]));
  }
  TRIVIUM_CHECK_CUDA(cudaEventCreate(&start_));
  for (Staging& each : staging_) {
    void* memory = nullptr;
    TRIVIUM_CHECK_CUDA(cudaMallocHost(&memory, static_cast<std::size_t>(Staging::kBytes)));
    each.memory = static_cast<std::byte*>(memory);
    TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&each.free, cudaEventDisableTiming));
  }
}

// What fails here has failed before, and was told then.
CudaBackend::~CudaBackend() {
  static_cast<void>(cudaSetDevice(device_));
  static_cast<void>(cudaDeviceSynchronize());
  for (const cudaEvent_t each : marks_) {
    if (each != nullptr) static_cast<void>(cudaEventDestroy(each));
  }
  for (const cudaEvent_t each : stamps_) static_cast<void>(cudaEventDestroy(each));
  for (const Staging& each : staging_) {
    static_cast<void>(cudaFreeHost(each.memory));
    static_cast<void>(cudaEventDestroy(each.free));
  }
  static_cast<void>(cudaEventDestroy(start_));
  for (auto& graphs : graphs_) graphs.reset();
  for (auto& lane : lanes_) lane.reset();
  for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
}

std::string CudaBackend::refusal(const program::Program& program, const program::Op& op) const {
  if (std::string why = refusal_of(program, op); !why.empty()) return why;
  const program::DType precision = program.settings.precision;
  if (precision == program::DType::kBf16 && !has_tiles_) return "this GPU has no bf16 arithmetic; use --precision fp16";
  if (find_operation(op, precision) != nullptr) return "";
  return fmt::format("the CUDA backend has no {} kernel in {}", name_of(op.kind), name_of(precision));
}

Memory CudaBackend::allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  if (cudaMalloc(&memory, size) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    std::size_t left = 0, all = 0;
    TRIVIUM_CHECK_CUDA(cudaMemGetInfo(&left, &all));
    throw Aborted(
        fmt::format("the GPU has {} of {} bytes left, {} are needed; plan with less memory", left, all, size));
  }
  TRIVIUM_CHECK_CUDA(cudaMemset(memory, 0, size));
  TRIVIUM_CHECK_CUDA(cudaDeviceSynchronize());  // the lanes do not wait for the stream that this is done on
  return Memory(static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFree(p)); });
}

Memory CudaBackend::allocate_on_host(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  TRIVIUM_CHECK_CUDA(cudaMallocHost(&memory, size));
  std::memset(memory, 0, size);
  return Memory(static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFreeHost(p)); });
}

template <class Ask>
void CudaBackend::await_answer(const Ask& ask) {
  const auto since = std::chrono::steady_clock::now();
  for (;;) {
    const cudaError_t state = ask();
    if (state != cudaErrorNotReady) return TRIVIUM_CHECK_CUDA(state);
    static_cast<void>(cudaGetLastError());  // "not yet" is no failure, but is kept as one
    if (while_waiting_) while_waiting_(since);
    std::this_thread::yield();
  }
}

// Memory that is not pinned is copied by the driver through its own, before the call returns.
void CudaBackend::upload(Lane lane, std::byte* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  Launcher& own = launcher(lane);
  if (bytes > Staging::kBytes) return own.copy(to, from, bytes);
  Staging& staging = staging_[next_staging_++ % staging_.size()];
  await_answer([&] { return cudaEventQuery(staging.free); });
  std::memcpy(staging.memory, from, static_cast<std::size_t>(bytes));
  own.copy(to, staging.memory, bytes);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(staging.free, own.stream()));
}

void CudaBackend::download(void* to, const std::byte* from, std::int64_t bytes) {
  finish();
  if (bytes > 0) TRIVIUM_CHECK_CUDA(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault));
}

void CudaBackend::prepare(const program::Program& program) {
  if (options_.epilogues) epilogues_ = Epilogues(program);
}

void CudaBackend::run_part(EpiloguePart part, const KernelArguments& a, Lane lane) {
  if (part == EpiloguePart::kProduct) {
    put_off_ = a;
    return;
  }
  const EpilogueOperations operations = find_epilogue_operations(*a.op, precision_of(a));
  if (part == EpiloguePart::kGradientAlone) return operations.gradient_alone(launcher(lane), a);
  operations.pair(launcher(lane), put_off_, a);
}

void CudaBackend::run(const KernelArguments& a, Lane lane) {
  const Range range(*a.op);
  if (const EpiloguePart part = epilogues_.part_of(*a.op); part != EpiloguePart::kNone) return run_part(part, a, lane);
  find_operation(*a.op, precision_of(a))(launcher(lane), a);
}

void CudaBackend::replay(std::uint64_t number, Lane lane, const std::function<void()>& issue) {
  GraphCache<GraphRecorder>& graphs = *graphs_[static_cast<std::size_t>(lane)];
  const bool worked = graphs.failure().empty();
  graphs.run(number, issue);
  if (worked && !graphs.failure().empty()) base::say("note: no CUDA graphs: {}\n", graphs.failure());
}

// Graphs may be under way.
void CudaBackend::forget_replays() {
  for (auto& graphs : graphs_) {
    if (graphs->empty()) continue;
    finish();
    graphs->forget();
  }
}

// Communication has the times of its events: NCCL launches from threads of its own.
void CudaBackend::enter(Lane lane) {
  entered_ = lane;
  if (kernel_clock_) kernel_clock_->disown();
}

cudaEvent_t CudaBackend::mark_event(std::int32_t number) {
  const auto at = static_cast<std::size_t>(number);
  if (marks_.size() <= at) marks_.resize(at + 1, nullptr);
  if (marks_[at] == nullptr) TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&marks_[at], cudaEventDisableTiming));
  return marks_[at];
}

void CudaBackend::mark(std::int32_t number, Lane lane) {
  TRIVIUM_CHECK_CUDA(cudaEventRecord(mark_event(number), launcher(lane).stream()));
}

void CudaBackend::wait(std::int32_t number, Lane lane) {
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(launcher(lane).stream(), mark_event(number), 0));
}

void CudaBackend::await(cudaStream_t stream) {
  await_answer([&] { return cudaStreamQuery(stream); });
}

// Asking is no work of the last op's.
void CudaBackend::finish() {
  if (kernel_clock_) kernel_clock_->disown();
  for (const cudaStream_t stream : streams_) await(stream);
}

// All lanes are idle: the first stamp of any of them comes behind this one.
void CudaBackend::start_clock(std::int64_t shared_ns) {
  used_stamps_ = 0;
  TRIVIUM_CHECK_CUDA(cudaEventRecord(start_, launcher(Lane::kCompute).stream()));
  late_ns_ = std::max<std::int64_t>(0, now_ns() - shared_ns);
  if (kernel_clock_) kernel_clock_->start(late_ns_);
}

std::int32_t CudaBackend::stamp(Lane lane) {
  if (used_stamps_ == stamps_.size()) {
    cudaEvent_t made = nullptr;
    TRIVIUM_CHECK_CUDA(cudaEventCreate(&made));
    stamps_.push_back(made);
  }
  TRIVIUM_CHECK_CUDA(cudaEventRecord(stamps_[used_stamps_], launcher(lane).stream()));
  if (kernel_clock_) kernel_clock_->stamped(static_cast<std::int32_t>(used_stamps_));
  return static_cast<std::int32_t>(used_stamps_++);
}

std::int64_t CudaBackend::since_start_ns(std::int32_t stamp) {
  constexpr double kNsPerMs = 1e6;
  float milliseconds = 0;
  TRIVIUM_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, start_, stamps_[static_cast<std::size_t>(stamp)]));
  return late_ns_ + std::max<std::int64_t>(0, static_cast<std::int64_t>(static_cast<double>(milliseconds) * kNsPerMs));
}

Interval CudaBackend::interval_ns(std::int32_t from, std::int32_t to) {
  const std::optional<Interval> seen = kernel_clock_ ? kernel_clock_->between(from, to) : std::nullopt;
  return seen ? *seen : Backend::interval_ns(from, to);
}

std::int64_t CudaBackend::own_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& lane : lanes_) bytes += lane->scratch_bytes();
  return bytes;
}

}  // namespace trivium::runtime::cuda
