#include "runtime/cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/say.h"
#include "runtime/communicator.h"
#include "runtime/cuda/backoff.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/ranges.h"

namespace trivium::runtime::cuda {
namespace {

using program::Lane;

constexpr int kAmpere = 8;  // compute capability, major number: bf16, and tensor cores as the kernels use them
constexpr int kHopper = 9;  // products of warpgroups
constexpr int kBlackwell = 10;

/// Selects the thread's device from here on. What belongs to a device, e.g. a cuBLASLt handle, is created after it.
int chosen(int device) {
  TRIVIUM_CHECK_CUDA(cudaSetDevice(device));
  return device;
}

cudaMemoryType type_of(const void* memory) {
  cudaPointerAttributes attributes{};
  TRIVIUM_CHECK_CUDA(cudaPointerGetAttributes(&attributes, memory));
  return attributes.type;
}

/// As cuBLAS 13 documents them ("Narrow Precision Data Types Usage"); CUDA 12.9 has them first.
ScaledProducts scaled_products_of([[maybe_unused]] int major, [[maybe_unused]] int minor) {
#if CUBLAS_VERSION >= 120900
  if (major >= kBlackwell) return ScaledProducts::kBlocks32;
  if (major == kHopper && minor == 0) return ScaledProducts::kBlocks128;
#endif
  return ScaledProducts::kNone;
}

// Code with Hopper's warpgroup products runs on sm_90 alone, and is only in modules that are built for sm_90a.
DeviceWords words_of(int device) {
  int major = 0, minor = 0;
  TRIVIUM_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  TRIVIUM_CHECK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
#if defined(TRIVIUM_WARPGROUPS)
  constexpr bool kBuilt = true;
#else
  constexpr bool kBuilt = false;
#endif
  const bool is_ada = major == kAmpere && minor == 9;
  return {major >= kAmpere, major >= kHopper || is_ada, scaled_products_of(major, minor),
          kBuilt && major == kHopper && minor == 0};
}

/// Zeroes memory of the host by as many threads as its size is worth.
void clear(std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kWorthAThread = std::size_t{256} << 20;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(bytes / kWorthAThread, 1, cores);
  std::vector<std::jthread> threads;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = bytes / parts * part, last = part + 1 == parts ? bytes : first + bytes / parts;
    threads.emplace_back([=] { std::memset(memory + first, 0, last - first); });
  }
}

}  // namespace

bool is_on_device(const void* memory) {
  const cudaMemoryType type = type_of(memory);
  return type == cudaMemoryTypeDevice || type == cudaMemoryTypeManaged;
}

CudaBackend::CudaBackend(int device, const DeviceOptions& options) : device_(chosen(device)), options_(options) {
  if (options.kernel_records) kernel_clock_.emplace(Cupti::open());
  words_ = words_of(device);
  words_.warpgroups = words_.warpgroups && options.warpgroups;
  int lowest = 0, highest = 0;
  TRIVIUM_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
    // What others wait for goes first where both want the device.
    const int priority = static_cast<Lane>(lane) == Lane::kCompute ? lowest : highest;
    TRIVIUM_CHECK_CUDA(cudaStreamCreateWithPriority(&streams_[lane], cudaStreamNonBlocking, priority));
    name_lane(streams_[lane], static_cast<Lane>(lane));
    lanes_[lane] = std::make_unique<Launcher>(streams_[lane], products_, words_, *this);
    graphs_[lane].emplace(GraphRecorder(*lanes_[lane]));
    for (cudaEvent_t& each : ahead_[lane].events) {
      TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&each, cudaEventDisableTiming));
    }
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
  for (const RunAhead& lane : ahead_) {
    for (const cudaEvent_t each : lane.events) static_cast<void>(cudaEventDestroy(each));
  }
  for (auto& ring : rings_) ring.reset();
  static_cast<void>(cudaEventDestroy(start_));
  for (auto& graphs : graphs_) graphs.reset();
  for (auto& lane : lanes_) lane.reset();
  for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
}

std::string CudaBackend::slow_path(const program::Program& program) const {
  const std::string attention = slow_path_of(program, words_.tiles), codes = read_back_of(program, words_.scaled);
  return attention.empty() ? codes : codes.empty() ? attention : fmt::format("{}; {}", attention, codes);
}

std::string CudaBackend::refusal(const program::Program& program, const program::Op& op) const {
  if (std::string why = refusal_of(program, op); !why.empty()) return why;
  const program::DType precision = program.settings.precision;
  if (precision == program::DType::kBf16 && !words_.tiles)
    return "this GPU has no bf16 arithmetic; use --precision fp16";
  if (op.fp8 != program::Fp8::kNone && !words_.codes)
    return "GPUs before sm_89 have no products in 8 bits; use --fp8 none";
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
  Memory made(static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFree(p)); });
  Launcher& own = launcher(Lane::kCompute);
  own.zero(memory, static_cast<std::int64_t>(size));
  await(own.stream());  // the other lanes do not wait for it
  return made;
}

Memory CudaBackend::allocate_on_host(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  TRIVIUM_CHECK_CUDA(cudaMallocHost(&memory, size));
  clear(static_cast<std::byte*>(memory), size);
  return Memory(static_cast<std::byte*>(memory), [](std::byte* p) { static_cast<void>(cudaFreeHost(p)); });
}

template <class Ask>
void CudaBackend::await_answer(const Ask& ask) {
  const auto since = std::chrono::steady_clock::now();
  for (Backoff backoff;;) {
    const cudaError_t state = ask();
    if (state != cudaErrorNotReady) return TRIVIUM_CHECK_CUDA(state);
    static_cast<void>(cudaGetLastError());  // "not yet" is no failure, but is kept as one
    if (while_waiting_) while_waiting_(since);
    backoff.pause();
  }
}

void CudaBackend::keep_up(Lane lane) {
  constexpr std::int64_t kMost = 256;  // half of what is at most under way; drivers take about a thousand
  Launcher& own = launcher(lane);
  RunAhead& ahead = ahead_[static_cast<std::size_t>(lane)];
  if (own.records() || own.issued() - ahead.issued < kMost) return;
  own.count(1);
  ahead.issued = own.issued();
  TRIVIUM_CHECK_CUDA(cudaEventRecord(ahead.events[ahead.next], own.stream()));
  ahead.next = (ahead.next + 1) % ahead.events.size();
  await_answer([&] { return cudaEventQuery(ahead.events[ahead.next]); });  // the one before
}

// Memory that is not pinned is copied by the driver, for which it may wait for the lane.
void CudaBackend::upload(Lane lane, std::byte* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  if (!is_on_device(to)) {
    finish();
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  Launcher& own = launcher(lane);
  for (std::int64_t done = 0; done < bytes; done += Staging::kBytes) {
    keep_up(lane);
    const std::int64_t part = std::min(Staging::kBytes, bytes - done);
    Staging& staging = staging_[next_staging_++ % staging_.size()];
    await_answer([&] { return cudaEventQuery(staging.free); });
    std::memcpy(staging.memory, static_cast<const std::byte*>(from) + done, static_cast<std::size_t>(part));
    own.copy(to + done, staging.memory, part);
    own.count(1);
    TRIVIUM_CHECK_CUDA(cudaEventRecord(staging.free, own.stream()));
  }
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

bool CudaBackend::copy_through_ring(const KernelArguments& a, Lane lane) {
  const bool fetches = a.op->kind == program::OpKind::kFetch;
  if (type_of(fetches ? a.in[0] : a.out[0]) != cudaMemoryTypeUnregistered) return false;
  std::unique_ptr<PinnedRing>& ring = rings_[static_cast<std::size_t>(lane)];
  if (!ring) ring = std::make_unique<PinnedRing>(launcher(lane));
  for (std::int64_t done = 0; done < a.op->elements; done += PinnedRing::kBytes) {
    const std::int64_t part = std::min(PinnedRing::kBytes, a.op->elements - done);
    keep_up(lane);
    if (fetches) {
      ring->fetch(a.out[0] + done, a.in[0] + done, part);
    } else {
      ring->store(a.out[0] + done, a.in[0] + done, part);
    }
  }
  return true;
}

void CudaBackend::run(const KernelArguments& a, Lane lane) {
  const Range range(*a.op);
  keep_up(lane);
  if (program::is_copy(a.op->kind) && copy_through_ring(a, lane)) return;
  if (const EpiloguePart part = epilogues_.part_of(*a.op); part != EpiloguePart::kNone) return run_part(part, a, lane);
  find_operation(*a.op, precision_of(a))(launcher(lane), a);
}

void CudaBackend::replay(std::uint64_t number, Lane lane, const std::function<void()>& issue) {
  keep_up(lane);
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
  keep_up(lane);
  if (kernel_clock_) kernel_clock_->disown();
}

cudaEvent_t CudaBackend::mark_event(std::int32_t number) {
  const auto at = static_cast<std::size_t>(number);
  if (marks_.size() <= at) marks_.resize(at + 1, nullptr);
  if (marks_[at] == nullptr) TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&marks_[at], cudaEventDisableTiming));
  return marks_[at];
}

void CudaBackend::mark(std::int32_t number, Lane lane) {
  keep_up(lane);
  launcher(lane).count(1);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(mark_event(number), launcher(lane).stream()));
}

void CudaBackend::wait(std::int32_t number, Lane lane) {
  keep_up(lane);
  launcher(lane).count(1);
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(launcher(lane).stream(), mark_event(number), 0));
}

void CudaBackend::await(cudaStream_t stream) {
  await_answer([&] { return cudaStreamQuery(stream); });
}

// Asking is no work of the last op's.
void CudaBackend::finish() {
  if (kernel_clock_) kernel_clock_->disown();
  for (const cudaStream_t stream : streams_) await(stream);
  for (const auto& ring : rings_) {
    if (ring) await(ring->stream());
  }
  products_.keep_choices();
}

// All lanes are idle: the first stamp of any lane comes after this one.
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
  launcher(lane).count(1);
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
