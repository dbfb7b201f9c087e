// Where the threads of one run meet: waiting and waking, the end of the run, and whose memory is being touched.
// Everything the ranks share hangs on one Hub.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/inproc/cores.h"

namespace trivium::runtime::inproc {

/// One seat per rank. A rank waits on its own bell; whoever changes something that rank may wait for rings it.
/// Thread-safe; a seat's `wait_until` and Access are used by its rank only.
class Hub {
 public:
  explicit Hub(int ranks);

  int size() const { return static_cast<int>(seats_.size()); }

  /// Returns once `ready()`; spins some milliseconds when every rank can have a core, then sleeps
  /// (and gives its core to another rank). Throws Aborted.
  template <class Ready>
  void wait_until(int rank, const Ready& ready) {
    for (int spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
      pause();
    }
    std::atomic<std::uint32_t>& bell = seat(rank).bell;
    while (true) {
      // Heard before looking: a change after this look also moves the bell, so the wait below cannot miss it.
      const std::uint32_t heard = bell.load(std::memory_order_acquire);
      if (ready()) return;
      if (is_aborted()) raise();
      if (shares_cores() && cores_.has_entered(rank)) {
        cores_.wait(rank, bell, heard);
      } else {
        bell.wait(heard, std::memory_order_acquire);
      }
    }
  }
  void ring(int rank);

  /// Held by the thread of a rank while it works: its core, or turns on those that ranks share.
  class OnCore {
   public:
    OnCore(Hub& hub, int rank);
    ~OnCore();
    OnCore(const OnCore&) = delete;
    OnCore& operator=(const OnCore&) = delete;

   private:
    Hub& hub_;
    int rank_;
  };

  /// The first reason stands. On return no rank touches memory of another any more, nor will again.
  void abort(const std::string& reason);
  bool is_aborted() const { return aborted_.load(std::memory_order_seq_cst); }
  /// Throws Aborted, once no rank touches memory of another: the caller's buffers may then go away.
  [[noreturn]] void raise();

  /// Held while a rank reads or writes buffers of other ranks: never while waiting. Throws Aborted after an abort.
  class Access {
   public:
    Access(Hub& hub, int rank);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    std::atomic<bool>& touching_;
  };

 private:
  // A cache line each: bells of different ranks must not slow one another down.
  struct alignas(64) Seat {
    std::atomic<std::uint32_t> bell{0};
    std::atomic<bool> touching{false};
  };
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }
  void wait_for_accesses();
  bool shares_cores() const { return spins_ == 0; }

  std::vector<Seat> seats_;
  Cores cores_;
  int spins_ = 0;
  std::atomic<bool> aborted_{false};
  std::mutex reason_mutex_;
  std::string reason_;
};

}  // namespace trivium::runtime::inproc
