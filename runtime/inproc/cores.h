// The cores of this machine and whose turn it is on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace trivium::runtime::inproc {

/// Pauses before a rank sleeps: a few milliseconds, as many as GCC's OpenMP runtime spins by default where every thread
/// has a core (GOMP_SPINCOUNT, libgomp's manual). With 0.2 ms of pauses two interleaved stages of three chunks took 103
/// ms a step on two virtual cores, with these 86 (README.md).
constexpr int kSpins = 300000;
void pause();

/// Numbers of the cores this process may use, ascending; empty where the system does not tell.
std::vector<int> allowed_cores();

/// Binds the calling thread to the `rank`-th of the cores this process may use, where there is one for each of `ranks`.
/// Unbound, threads that wait for each other begin on one core until the system spreads them: on a busy machine,
/// seconds.
void pin_to_core(int rank, int ranks);

/// More ranks than cores: each core is one rank's from the moment it gets it until it waits, and then that of the
/// rank which has been ready longest. Turns end by waiting alone: a rank never loses its core (and what is
/// in its caches) halfway through an op, and no two ranks are queued on one core while another idles.
///
/// Ranks that never `enter` are left to the system. Thread-safe.
class Cores {
 public:
  /// `ids`: the cores to share, one turn on each at a time.
  Cores(int ranks, std::vector<int> ids);

  /// The calling thread is `rank`'s and runs from here on only in its turns; returns in the first one.
  void enter(int rank);
  /// Gives the core on; after it, the system decides again when the thread runs.
  void leave(int rank);
  bool has_entered(int rank) const { return turns_[static_cast<std::size_t>(rank)].entered; }

  /// Returns once `bell` moved on from `heard`; as soon as another rank wants the core, gives it on and sleeps until
  /// then.
  void wait(int rank, const std::atomic<std::uint32_t>& bell, std::uint32_t heard);
  /// `rank` has something to look at: it gets a core as soon as one is free. Call it after moving the bell.
  void ready(int rank);
  /// Everybody runs at once from now on, as the system likes: for the end of a run that failed.
  void open();

 private:
  static constexpr int kNone = -1;
  enum class State { kRunning, kAsleep, kReady };
  struct alignas(64) Turn {
    State state = State::kRunning;
    bool entered = false;
    int core = kNone;                     ///< index in ids_, while it runs
    int bound = kNone;                    ///< index in ids_ to which its thread is bound
    std::uint64_t thread = 0;             ///< the system's handle
    std::atomic<std::uint32_t> given{0};  ///< counts its turns
  };
  Turn& turn(int rank) { return turns_[static_cast<std::size_t>(rank)]; }
  /// Under the lock: the rank that is to have `core` next, marked as running; kNone and the core is free.
  int next_for(int core);
  void give(int rank);

  std::vector<int> ids_;
  std::vector<Turn> turns_;
  std::mutex mutex_;
  std::deque<int> ready_;        ///< longest ready first
  std::atomic<int> waiting_{0};  ///< how many those are, for a look without the lock
  std::vector<int> free_;        ///< indices in ids_
  bool open_ = false;
};

}  // namespace trivium::runtime::inproc
