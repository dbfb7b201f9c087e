// The communicator of a rank that is timed alone.
#pragma once

#include "runtime/communicator.h"

namespace trivium::runtime::microbench {

/// Rank 0 of `size` ranks that are not there: nothing is moved, nobody is waited for.
class AloneCommunicator final : public Communicator {
 public:
  explicit AloneCommunicator(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  int make_group(std::span<const int>) override { return 0; }
  void barrier(int) override {}
  void all_reduce(int, void*, std::int64_t, program::DType, program::Reduction) override {}
  void reduce_scatter(int, const void*, void*, std::int64_t, program::DType) override {}
  void all_gather(int, const void*, void*, std::int64_t, program::DType) override {}
  void broadcast(int, void*, std::int64_t, int) override {}
  void post_send(int, std::int64_t, const void*, std::int64_t) override {}
  void post_recv(int, std::int64_t, void*, std::int64_t) override {}
  void wait_send(int, std::int64_t) override {}
  void wait_recv(int, std::int64_t) override {}
  void abort(const std::string&) override {}

 private:
  int size_;
};

}  // namespace trivium::runtime::microbench
