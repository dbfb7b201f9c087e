// The communicator of one thread rank.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/inproc/group.h"
#include "runtime/inproc/hub.h"
#include "runtime/inproc/transfers.h"

namespace trivium::runtime::inproc {

/// What all ranks of one run share.
struct Shared {
  explicit Shared(int ranks) : hub(ranks), transfers(ranks) {}
  Hub hub;
  GroupTable groups;
  TransferTable transfers;
};

/// Members publish their pointers, meet, and each then works on its slice straight in the buffers of its peers.
/// Every misuse (sizes that disagree, unknown peers or groups, a number posted twice) aborts the run with a sentence.
class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Shared> shared, int rank);
  /// Aborts the run when transfers are unfinished: their buffers are about to go away.
  ~ThreadCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return shared_->hub.size(); }
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

  void abort(const std::string& reason) override { shared_->hub.abort(reason); }

 private:
  /// This rank's place in a group.
  struct Membership {
    std::shared_ptr<Group> group;
    int index = 0;
    std::int64_t calls = 0, meetings = 0;
  };
  using Ends = std::map<TransferKey, TransferEnd>;

  Membership& membership(int handle);
  void meet(Membership& mine);
  /// Publishes this member's call, waits for the others' and checks that they agree.
  std::span<Entry> enter(Membership& mine, const reduction::Call& call, const void* source, void* target,
                         std::size_t small_bytes = 0);
  void post(const TransferKey& key, int peer, TransferEnd& end);
  TransferEnd& new_end(Ends& own, const TransferKey& key, int peer, std::int64_t bytes);
  void wait(Ends& own, const TransferKey& key);
  [[noreturn]] void fail(const std::string& reason);

  std::shared_ptr<Shared> shared_;
  int rank_;
  std::vector<Membership> memberships_;
  std::map<std::vector<int>, int> occurrences_;  ///< how often this rank made a group of these ranks
  Ends sends_, receives_;                        ///< posted and not yet waited for
};

}  // namespace trivium::runtime::inproc
