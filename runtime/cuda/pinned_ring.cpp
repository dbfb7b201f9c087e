#include "runtime/cuda/pinned_ring.h"

#include <cstring>
#include <memory>

#include "runtime/cuda/check.h"

namespace trivium::runtime::cuda {
namespace {

struct Move {
  void* to;
  const void* from;
  std::size_t bytes;
};

void CUDART_CB do_move(void* data) {
  const std::unique_ptr<Move> move(static_cast<Move*>(data));
  std::memcpy(move->to, move->from, move->bytes);
}

}  // namespace

PinnedRing::PinnedRing(Launcher& lane) : lane_(lane) {
  int lowest = 0, highest = 0;
  TRIVIUM_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  TRIVIUM_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest));
  for (Slot& slot : slots_) {
    void* memory = nullptr;
    TRIVIUM_CHECK_CUDA(cudaMallocHost(&memory, static_cast<std::size_t>(kBytes)));
    slot.memory = static_cast<std::byte*>(memory);
    TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&slot.full, cudaEventDisableTiming));
    TRIVIUM_CHECK_CUDA(cudaEventCreateWithFlags(&slot.free, cudaEventDisableTiming));
  }
}

PinnedRing::~PinnedRing() {
  for (const Slot& slot : slots_) {
    static_cast<void>(cudaEventDestroy(slot.full));
    static_cast<void>(cudaEventDestroy(slot.free));
    static_cast<void>(cudaFreeHost(slot.memory));
  }
  static_cast<void>(cudaStreamDestroy(stream_));
}

void PinnedRing::move_on_host(void* to, const void* from, std::int64_t bytes) {
  auto move = std::make_unique<Move>(Move{to, from, static_cast<std::size_t>(bytes)});
  TRIVIUM_CHECK_CUDA(cudaLaunchHostFunc(stream_, do_move, move.get()));
  static_cast<void>(move.release());  // do_move's
}

// What is fetched may be read before the lane is there: it changes by `store` alone, in the order of the same stream.
void PinnedRing::fetch(std::byte* device, const std::byte* host, std::int64_t bytes) {
  Slot& slot = next();
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(stream_, slot.free, 0));
  move_on_host(slot.memory, host, bytes);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(slot.full, stream_));
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(lane_.stream(), slot.full, 0));
  lane_.copy(device, slot.memory, bytes);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(slot.free, lane_.stream()));
  lane_.count(2);
}

void PinnedRing::store(std::byte* host, const std::byte* device, std::int64_t bytes) {
  Slot& slot = next();
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(lane_.stream(), slot.free, 0));
  lane_.copy(slot.memory, device, bytes);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(slot.full, lane_.stream()));
  TRIVIUM_CHECK_CUDA(cudaStreamWaitEvent(stream_, slot.full, 0));
  move_on_host(host, slot.memory, bytes);
  TRIVIUM_CHECK_CUDA(cudaEventRecord(slot.free, stream_));
  lane_.count(2);
}

}  // namespace trivium::runtime::cuda
