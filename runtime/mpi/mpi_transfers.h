// Transfers between processes, matched by number.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace trivium::runtime::mpi {

/// The sends, or the receives, of one rank that are posted and not yet waited for. Sends are synchronous (MPI_Issend):
/// MPI's eager buffers would hide orders that deadlock elsewhere. Misuse throws Aborted.
class MpiTransfers {
 public:
  enum class Side { kSend, kReceive };
  MpiTransfers(MPI_Comm communicator, Side side);

  void post(int peer, std::int64_t number, void* data, std::int64_t bytes);
  void wait(int peer, std::int64_t number);
  /// Whether `wait` would return at once.
  bool is_over(int peer, std::int64_t number) const;
  std::size_t unfinished() const { return in_flight_.size(); }

 private:
  struct Transfer {
    std::int64_t number = 0;
    std::int64_t bytes = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// Numbers wrap at the largest tag; two that share a tag must not be in flight to the same peer, which `post` checks.
  int tag_of(std::int64_t number) const;
  std::string text_of(int peer, std::int64_t number) const;

  MPI_Comm communicator_;
  Side side_;
  int size_ = 0;
  std::int64_t tags_ = 0;
  std::map<std::pair<int, int>, Transfer> in_flight_;  ///< by peer and tag
};

}  // namespace trivium::runtime::mpi
