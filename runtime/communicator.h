// Communication between ranks: collectives in rank order, transfers by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "program/ir/op.h"
#include "program/plan/dtype.h"

namespace trivium::runtime {

/// Thrown on every surviving rank when one rank failed or the run was stopped.
class Aborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One rank's end of the communication. Used by that rank's thread only, except `abort`.
/// Collectives block until this rank may reuse its buffers; every member must call them in the same order.
/// Sums add contributions in ascending rank order, so results do not depend on timing or on the implementation.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Makes a group of ranks (ascending, containing this one); members call it in the same order. Returns its handle.
  virtual int make_group(std::span<const int> ranks) = 0;

  virtual void barrier(int group) = 0;
  /// In place over `count` elements (kPairSum: count counts pairs of doubles).
  virtual void all_reduce(int group, void* data, std::int64_t count, program::DType type, program::Reduction how) = 0;
  /// `count` elements in `whole`, a multiple of the group size; part i of it, summed, goes to member i's `part`.
  /// `part` may be member i's own part of `whole`; the rest of `whole` is then left as it was.
  virtual void reduce_scatter(int group, const void* whole, void* part, std::int64_t count, program::DType type) = 0;
  /// Inverse layout: member i's `part` (count / size elements) becomes part i of everyone's `whole`. May alias
  /// likewise.
  virtual void all_gather(int group, const void* part, void* whole, std::int64_t count, program::DType type) = 0;
  /// Root is a rank of the group.
  virtual void broadcast(int group, void* data, std::int64_t bytes, int root) = 0;

  /// Transfers are matched by (source, destination, number). Posting never blocks; the buffer belongs to the transfer
  /// until the wait returned. A send may complete only when its receive took the data (no reliance on eager buffering).
  virtual void post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) = 0;
  virtual void post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) = 0;
  virtual void wait_send(int to, std::int64_t number) = 0;
  virtual void wait_recv(int from, std::int64_t number) = 0;
  /// Whether wait_send would return at once; false also where that cannot be known. The wait is still owed.
  virtual bool has_sent(int /*to*/, std::int64_t /*number*/) { return false; }

  /// Whom this rank exchanges data with on a lane.
  struct LanePeers {
    program::Lane lane;
    std::vector<int> peers;
  };
  /// Named once, before any transfer, by all ranks at the same place: the same lanes by all, in the same order, those
  /// on which this one has no peers too. Every peer names this rank as well.
  virtual void expect_transfers(std::span<const LanePeers> /*lanes*/) {}
  /// Transfers posted between these two may all be under way at once; they begin with end_batch at the latest. Ends
  /// that exchange data both ways post within a batch, as a posted transfer may hold up those after it.
  virtual void begin_batch() {}
  virtual void end_batch() {}
  /// Copies between two buffers of this rank, in order with its communication.
  virtual void copy(void* to, const void* from, std::int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  /// Wakes every rank that waits, here and elsewhere, with Aborted(reason). Callable from any thread.
  virtual void abort(const std::string& reason) = 0;
};

}  // namespace trivium::runtime
