// A rank's flight record: what it was doing last, in a file that outlives the process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace trivium::runtime::flight {

/// What a rank does from one moment on.
enum class Doing : std::int32_t {
  kStarting,    ///< setting up, reading a checkpoint
  kCompute,     ///< a kernel of `task`
  kCollective,  ///< collective `op` of `task`
  kTransfer,    ///< waits for transfer `task` to end
  kStepStart,   ///< waits for all ranks to begin the step
  kLoss,        ///< sums the loss over all ranks
  kCheckpoint   ///< between steps: writes a checkpoint, or looks whether one is due
};
std::string_view name_of(Doing doing);

/// How the process ended, as far as it could tell.
enum class End : std::int32_t {
  kNone,       ///< it did not say: it runs, or was killed, or crashed
  kWell,       ///< all steps done
  kFailed,     ///< it gave up for the reason in `message`
  kTerminated  ///< someone ended it by a signal that can be seen (SIGINT, SIGTERM)
};

struct Entry {
  std::int64_t start_ns = 0;  ///< of the machine's monotonic clock
  Doing doing{};
  std::int32_t step = 0;
  std::int32_t task = -1, op = -1;
};

constexpr std::uint32_t kCapacity = 1024;  ///< entries; a power of two

/// The file: this header, then kCapacity entries. Written in place by one thread, readable by others at any time.
struct Content {
  char magic[8];
  std::int32_t version, rank, ranks, pid;
  std::uint64_t program_hash;
  std::uint64_t count;  ///< entries ever written; the latest is number count - 1, at its place modulo kCapacity
  End end;
  char message[252];
  Entry entries[kCapacity];
};

/// The writing end. Notes cost a few stores to memory; the system writes them to the file when it likes, also after the
/// process was killed.
class Ring {
 public:
  /// Makes FOLDER/rank-00003.flight (the folder too). Errors: base::Failure(kRuntime).
  Ring(const std::filesystem::path& folder, int rank, int ranks, std::uint64_t program_hash);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// From `start_ns` on this rank does this. One thread only.
  void note(Doing doing, std::int64_t start_ns, std::int64_t step, std::int32_t task = -1, std::int32_t op = -1) {
    Entry& entry = content_->entries[count_ % kCapacity];
    entry = {start_ns, doing, static_cast<std::int32_t>(step), task, op};
    __atomic_store_n(&content_->count, ++count_, __ATOMIC_RELEASE);
  }
  /// How it ends; the first word counts. Any thread.
  void ended(End how, std::string_view message = {});

 private:
  Content* content_ = nullptr;
  std::uint64_t count_ = 0;
};

std::string ring_name(int rank);

}  // namespace trivium::runtime::flight
