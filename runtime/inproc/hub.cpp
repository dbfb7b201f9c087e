// Waking, aborting and guarding memory between ranks.
#include "runtime/inproc/hub.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "runtime/communicator.h"

namespace trivium::runtime::inproc {
namespace {

std::vector<int> cores_here() {
  std::vector<int> cores = allowed_cores();
  if (cores.empty()) {
    cores.resize(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(cores.begin(), cores.end(), 0);
  }
  return cores;
}

}  // namespace

Hub::Hub(int ranks) : seats_(static_cast<std::size_t>(ranks)), cores_(ranks, cores_here()) {
  // Without a core for each rank, spinning only keeps the rank that is waited for from running.
  if (static_cast<std::size_t>(ranks) <= cores_here().size()) spins_ = kSpins;
}

void Hub::ring(int rank) {
  std::atomic<std::uint32_t>& bell = seat(rank).bell;
  bell.fetch_add(1, std::memory_order_release);
  bell.notify_all();
  if (shares_cores()) cores_.ready(rank);
}

void Hub::abort(const std::string& reason) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (!is_aborted()) reason_ = reason;
    aborted_.store(true, std::memory_order_seq_cst);
  }
  if (shares_cores()) cores_.open();
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

Hub::OnCore::OnCore(Hub& hub, int rank) : hub_(hub), rank_(rank) {
  if (hub_.shares_cores()) {
    hub_.cores_.enter(rank_);
  } else {
    pin_to_core(rank_, hub_.size());
  }
}

Hub::OnCore::~OnCore() {
  if (hub_.shares_cores()) hub_.cores_.leave(rank_);
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
