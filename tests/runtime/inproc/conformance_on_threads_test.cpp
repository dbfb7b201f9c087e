// The conformance suite on threads.
#include "tests/runtime/inproc/communicator_conformance.h"
#include "tests/runtime/inproc/run_ranks.h"

namespace trivium::runtime {
namespace {

Ranks threads(int count) {
  return {.name = std::to_string(count) + "_threads", .count = count, .run = [count](const auto& body) {
            run_on_threads(count, body);
          }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Threads, CommunicatorConformance,
                         testing::Values(threads(1), threads(2), threads(3), threads(4), threads(8)),
                         [](const auto& ranks) { return ranks.param.name; });

}  // namespace trivium::runtime
