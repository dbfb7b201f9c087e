#include "runtime/inproc/cores.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <numeric>

namespace trivium::runtime::inproc {
namespace {

#ifdef __linux__
static_assert(sizeof(pthread_t) <= sizeof(std::uint64_t));

// A refusal costs speed, nothing else.
void bind(std::uint64_t thread, int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  (void)pthread_setaffinity_np(static_cast<pthread_t>(thread), sizeof one, &one);
}

void bind_to_any(std::uint64_t thread, const std::vector<int>& cores) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &all);
  (void)pthread_setaffinity_np(static_cast<pthread_t>(thread), sizeof all, &all);
}

std::uint64_t this_thread() { return static_cast<std::uint64_t>(pthread_self()); }
#else
void bind(std::uint64_t, int) {}
void bind_to_any(std::uint64_t, const std::vector<int>&) {}
std::uint64_t this_thread() { return 0; }
#endif

}  // namespace

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
#ifdef __linux__
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  }
#endif
  return cores;
}

void pin_to_core(int rank, int ranks) {
  const std::vector<int> cores = allowed_cores();
  if (static_cast<int>(cores.size()) >= ranks) bind(this_thread(), cores[static_cast<std::size_t>(rank)]);
}

Cores::Cores(int ranks, std::vector<int> ids)
    : ids_(std::move(ids)), turns_(static_cast<std::size_t>(ranks)), free_(ids_.size()) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // the first core is given first
}

void Cores::enter(int rank) {
  Turn& mine = turn(rank);
  const std::uint32_t before = mine.given.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    mine.entered = true;
    mine.thread = this_thread();
    if (open_) return;
    if (!free_.empty()) {
      mine.core = free_.back();
      free_.pop_back();
      mine.bound = mine.core;
      bind(mine.thread, ids_[static_cast<std::size_t>(mine.core)]);
      return;
    }
    mine.state = State::kReady;
    ready_.push_back(rank);
    waiting_.store(static_cast<int>(ready_.size()), std::memory_order_relaxed);
  }
  mine.given.wait(before, std::memory_order_acquire);
}

void Cores::leave(int rank) {
  Turn& mine = turn(rank);
  int next = kNone;
  {
    const std::lock_guard lock(mutex_);
    mine.entered = false;
    if (mine.core != kNone) next = next_for(mine.core);
    mine.core = kNone;
  }
  if (next != kNone) give(next);
  bind_to_any(mine.thread, ids_);
}

void Cores::wait(int rank, const std::atomic<std::uint32_t>& bell, std::uint32_t heard) {
  // A core that nobody wants is kept: one that fell idle takes tens of microseconds to wake up.
  for (int spin = 0; spin < kSpins && waiting_.load(std::memory_order_relaxed) == 0; ++spin) {
    if (bell.load(std::memory_order_acquire) != heard) return;
    pause();
  }
  Turn& mine = turn(rank);
  const std::uint32_t before = mine.given.load(std::memory_order_relaxed);
  int next = kNone;
  {
    const std::lock_guard lock(mutex_);
    // The bell moves before `ready` takes the lock: seen here, or that call finds this rank asleep.
    if (bell.load(std::memory_order_acquire) != heard) return;
    mine.state = State::kAsleep;
    if (mine.core != kNone) next = next_for(mine.core);
    mine.core = kNone;
  }
  if (next != kNone) give(next);
  mine.given.wait(before, std::memory_order_acquire);
}

void Cores::ready(int rank) {
  {
    const std::lock_guard lock(mutex_);
    Turn& theirs = turn(rank);
    if (theirs.state != State::kAsleep) return;
    if (!open_) {
      if (free_.empty()) {
        theirs.state = State::kReady;
        ready_.push_back(rank);
        waiting_.store(static_cast<int>(ready_.size()), std::memory_order_relaxed);
        return;
      }
      const auto same = std::find(free_.begin(), free_.end(), theirs.bound);  // its caches may still hold its data
      const auto taken = same != free_.end() ? same : free_.end() - 1;
      theirs.core = *taken;
      free_.erase(taken);
    }
    theirs.state = State::kRunning;
  }
  give(rank);
}

void Cores::open() {
  std::deque<int> waiting;
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    waiting.swap(ready_);
    waiting_.store(0, std::memory_order_relaxed);
    for (const int rank : waiting) turn(rank).state = State::kRunning;
  }
  for (const int rank : waiting) give(rank);
}

int Cores::next_for(int core) {
  if (ready_.empty()) {
    free_.push_back(core);
    return kNone;
  }
  // Its caches may still hold what that rank left there; a rank of another core only where none of this one is ready.
  const auto here = std::find_if(ready_.begin(), ready_.end(), [&](int rank) { return turn(rank).bound == core; });
  const auto taken = here == ready_.end() ? ready_.begin() : here;
  const int rank = *taken;
  ready_.erase(taken);
  waiting_.store(static_cast<int>(ready_.size()), std::memory_order_relaxed);
  turn(rank).core = core;
  turn(rank).state = State::kRunning;
  return rank;
}

// Its thread sleeps until `given` moves: nobody else touches its turn meanwhile.
void Cores::give(int rank) {
  Turn& theirs = turn(rank);
  if (theirs.core == kNone) {
    bind_to_any(theirs.thread, ids_);
  } else if (theirs.core != theirs.bound) {
    bind(theirs.thread, ids_[static_cast<std::size_t>(theirs.core)]);
    theirs.bound = theirs.core;
  }
  theirs.given.fetch_add(1, std::memory_order_release);
  theirs.given.notify_all();
}

}  // namespace trivium::runtime::inproc
