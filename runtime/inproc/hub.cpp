// Waking, aborting and guarding memory between ranks.
#include "runtime/inproc/hub.h"

#include <thread>

#include "runtime/communicator.h"

namespace trivium::runtime::inproc {
namespace {

// A few milliseconds of pauses, as many as GCC's OpenMP runtime spins by default where every thread has a core
// (GOMP_SPINCOUNT, libgomp's manual). With 0.2 ms of pauses, behind which ranks sleep, two
// interleaved stages of three chunks took 103 ms a step on two virtual cores, with these 86 (README.md).
constexpr int kSpins = 300000;

}  // namespace

Hub::Hub(int ranks) : seats_(static_cast<std::size_t>(ranks)) {
  // Without a core for each rank, spinning only keeps the rank that is waited for from running.
  if (static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency()) spins_ = kSpins;
}

void Hub::pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Hub::ring(int rank) {
  std::atomic<std::uint32_t>& bell = seat(rank).bell;
  bell.fetch_add(1, std::memory_order_release);
  bell.notify_all();
}

void Hub::abort(const std::string& reason) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (!is_aborted()) reason_ = reason;
    aborted_.store(true, std::memory_order_seq_cst);
  }
  for (int rank = 0; rank < size(); ++rank) ring(rank);
  wait_for_accesses();
}

void Hub::raise() {
  wait_for_accesses();
  const std::lock_guard lock(reason_mutex_);
  throw Aborted(reason_);
}

void Hub::wait_for_accesses() {
  for (const Seat& each : seats_) {
    while (each.touching.load(std::memory_order_seq_cst)) std::this_thread::yield();
  }
}

Hub::Access::Access(Hub& hub, int rank) : touching_(hub.seat(rank).touching) {
  // Flag first, look second, and the aborter the other way round (Dekker): one of the two always sees the other.
  touching_.store(true, std::memory_order_seq_cst);
  if (hub.is_aborted()) {
    touching_.store(false, std::memory_order_release);
    hub.raise();
  }
}

Hub::Access::~Access() { touching_.store(false, std::memory_order_release); }

}  // namespace trivium::runtime::inproc
