// The conformance suite on MPI: every process runs the same cases in the same order on one communicator.
#include <fmt/format.h>

#include "runtime/mpi/loader.h"
#include "tests/runtime/inproc/communicator_conformance.h"

namespace trivium::runtime {
namespace {

Communicator* world = nullptr;  // set by main before the cases are made

std::vector<Ranks> processes() {
  const int count = world->size();
  return {{.name = std::to_string(count) + "_processes", .count = count, .run = [](const auto& body) {
             try {
               body(*world);
             } catch (const std::exception& failure) {
               world->abort(failure.what());  // the other ranks would wait for this one
             }
           }}};
}

/// One rank tells what passes; the others tell, with their rank, what fails.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "rank {}: {}:{}: {}\n", world->rank(), result.file_name() == nullptr ? "" : result.file_name(),
               result.line_number(), result.message());
  }
};

}  // namespace

int run_all_tests(Communicator& communicator) {
  if (communicator.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<FailurePrinter>().release());
  }
  return RUN_ALL_TESTS();
}

INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorConformance, testing::ValuesIn(processes()),
                         [](const auto& ranks) { return ranks.param.name; });

}  // namespace trivium::runtime

int main(int argc, char** argv) {
  auto connected = trivium::runtime::mpi::connect_mpi();
  if (!connected) {
    fmt::print(stderr, "{}\n", connected.error().message);
    return static_cast<int>(connected.error().kind);
  }
  trivium::runtime::world = connected.value().get();
  testing::InitGoogleTest(&argc, argv);
  return trivium::runtime::run_all_tests(*connected.value());
}
