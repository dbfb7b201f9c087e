// Prints the time of one all_reduce at 4 KiB and 1 MiB: on threads (`communicator_latency RANKS`), or on MPI under
// mpirun. Median of five rounds after a warm-up, and the time of a fixed memory copy, which shows a busy machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>

#include "runtime/mpi/loader.h"
#include "tests/runtime/inproc/run_ranks.h"

namespace {

using namespace trivium;

template <class Work>
double median_microseconds(int repeats, const Work& work) {
  std::array<double, 5> times{};
  for (int i = 0; i < repeats; ++i) work();
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) work();
    time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / repeats;
  }
  std::sort(times.begin(), times.end());
  return times[2];
}

void measure(runtime::Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const int group = communicator.make_group(ranks);
  for (const std::int64_t bytes : {4, 4096, 1 << 20}) {
    std::vector<float> data(static_cast<std::size_t>(bytes / 4), 0.0f), copy(data);
    const int repeats = bytes > 100000 ? 100 : 2000;
    const double time = median_microseconds(repeats, [&] {
      communicator.all_reduce(group, data.data(), bytes / 4, program::DType::kFp32, program::Reduction::kSum);
    });
    const double reference = median_microseconds(100, [&] { std::copy(data.begin(), data.end(), copy.begin()); });
    if (communicator.rank() == 0) {
      fmt::print("{} ranks, {:>7} bytes: {:8.2f} us (copy {:.2f} us)\n", communicator.size(), bytes, time, reference);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (runtime::mpi::launched_by_mpi()) {
    measure(*runtime::mpi::connect_mpi().value_or_throw());
    return 0;
  }
  runtime::run_on_threads(argc > 1 ? std::atoi(argv[1]) : 2, measure);
}
