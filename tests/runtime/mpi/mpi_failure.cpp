// Three ranks, one of which does something wrong: `mpi_failure CASE`. All end, with the reason on stderr.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "runtime/mpi/loader.h"

namespace {

using namespace trivium;

void fail(runtime::Communicator& communicator, std::string_view name) {
  const int rank = communicator.rank();
  const int group = communicator.make_group(std::array{0, 1, 2});
  std::array<float, 10> data{};
  if (name == "abort") {
    if (rank == 1) communicator.abort("the device was lost");
  } else if (name == "count") {
    communicator.all_reduce(group, data.data(), rank == 1 ? 9 : 10, program::DType::kFp32, program::Reduction::kSum);
  } else if (name == "long_send" || name == "short_send") {
    if (rank == 0) {
      communicator.post_send(1, 5, data.data(), name == "long_send" ? 16 : 4);
      communicator.wait_send(1, 5);
    } else if (rank == 1) {
      communicator.post_recv(0, 5, data.data(), 8);
      communicator.wait_recv(0, 5);
    }
  } else if (name == "never_posted") {
    if (rank == 1) communicator.wait_recv(2, 9);
  }
  communicator.barrier(group);  // where the innocent ranks wait
}

}  // namespace

int main(int argc, char** argv) {
  const auto communicator = runtime::mpi::connect_mpi().value_or_throw();
  try {
    fail(*communicator, argc > 1 ? argv[1] : "");
  } catch (const runtime::Aborted& aborted) {
    fmt::print(stderr, "error: {}\n", aborted.what());
    return 1;
  }
  fmt::print(stderr, "rank {} ended well\n", communicator->rank());
}
