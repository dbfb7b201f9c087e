// The communicator of one MPI process.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/mpi/mpi_transfers.h"
#include "runtime/reduction/agreement.h"

namespace trivium::runtime::mpi {

/// MPI's own reductions may add in any order; these send slices to their reducers, add in rank order and gather, so
/// results equal those of threads bit by bit. Every collective starts with one small all-gather, in which members
/// compare their calls and which carries the data of small reductions. A rank that threw Aborted ends all processes
/// when its communicator is destroyed: the others may wait for it.
class MpiCommunicator final : public Communicator {
 public:
  /// Starts MPI. Throws Aborted.
  MpiCommunicator();
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int make_group(std::span<const int> ranks) override;

  void barrier(int group) override;
  void all_reduce(int group, void* data, std::int64_t count, program::DType type, program::Reduction how) override;
  void reduce_scatter(int group, const void* whole, void* part, std::int64_t count, program::DType type) override;
  void all_gather(int group, const void* part, void* whole, std::int64_t count, program::DType type) override;
  void broadcast(int group, void* data, std::int64_t bytes, int root) override;

  void post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) override;
  void post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) override;
  void wait_send(int to, std::int64_t number) override;
  void wait_recv(int from, std::int64_t number) override;
  bool has_sent(int to, std::int64_t number) override;

  [[noreturn]] void abort(const std::string& reason) override;

 private:
  /// What travels first: the call, and the payload of an all_reduce that fits.
  struct Opening {
    reduction::Call call;
    std::array<std::byte, 496> payload;
  };
  struct Group {
    MPI_Comm communicator = MPI_COMM_NULL;
    std::vector<int> ranks;
    int index = 0;
    std::vector<Opening> openings;  ///< of all members, in the latest collective
    int members() const { return static_cast<int>(ranks.size()); }
  };
  /// A piece of memory that goes to or comes from a member.
  struct Piece {
    int member = 0;
    std::byte* data = nullptr;  ///< of outgoing pieces: only read
    std::int64_t bytes = 0;
  };

  /// Runs `work`; notes that this rank failed when it throws.
  template <class Work>
  void guarded(const Work& work);
  Group& group_of(int handle);
  void open(Group& group, const reduction::Call& call, const void* payload = nullptr, std::size_t payload_bytes = 0);
  void exchange(const Group& group, std::span<const Piece> outgoing, std::span<const Piece> incoming);
  /// Sends slice i of `data` to member i and gets this member's slice of everyone else; the parts to reduce, in member
  /// order.
  std::vector<const std::byte*> collect(const Group& group, const std::byte* data, std::span<const std::int64_t> begins,
                                        std::span<const std::int64_t> bytes);

  int rank_ = 0, size_ = 0;
  bool failed_ = false;
  MPI_Comm transfers_communicator_ = MPI_COMM_NULL;
  std::optional<MpiTransfers> sends_, receives_;
  std::vector<Group> groups_;
  std::vector<std::byte> scratch_;  ///< slices that came from other members
};

}  // namespace trivium::runtime::mpi
