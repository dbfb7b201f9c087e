// Random splits for as long as asked: every one must train exactly as the unsplit run does.
//   trivium-soak [SECONDS] [SEED]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>

#include "tests/runtime/executor/harness.h"

namespace {

using namespace trivium;
using runtime::testing::Trained;

constexpr double kTolerance = 1e-11;  // as in the equivalence tests

program::Plan random_plan(std::mt19937_64& random) {
  const auto pick = [&](std::initializer_list<int> values) {
    return *(values.begin() + std::uniform_int_distribution<int>(0, static_cast<int>(values.size()) - 1)(random));
  };
  program::Plan plan;
  plan.tensor = pick({1, 2, 4});
  plan.pipeline = pick({1, 2, 3, 4, 8});
  plan.data = pick({1, 2, 4});
  plan.micro_batch = pick({1, 2});
  plan.virtual_stages = plan.pipeline > 1 ? pick({1, 1, 2}) : 1;
  plan.schedule = static_cast<program::Schedule>(plan.virtual_stages > 1 ? 3 : pick({0, 1, 2}));
  plan.sequence_parallel = plan.tensor > 1 && pick({0, 1}) == 1;
  plan.zero_stage = plan.data > 1 ? pick({0, 1, 2, 3}) : 0;
  plan.shard_group = plan.data == 4 && plan.zero_stage > 0 ? pick({0, 2}) : 0;
  plan.recompute = static_cast<program::Recompute>(pick({0, 1, 2}));
  plan.attention = static_cast<program::Attention>(pick({0, 1}));
  plan.overlap.gradient_reduction = pick({0, 1}) == 1;
  plan.overlap.tensor = pick({0, 1}) == 1;
  plan.overlap.parameter_gather = pick({0, 1}) == 1;
  plan.bucket_bytes = pick({0, 100'000});
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 600;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  std::map<int, Trained> unsplit;
  for (const int micro_batch : {1, 2}) {
    program::Plan plan;
    plan.micro_batch = micro_batch;
    unsplit[micro_batch] = runtime::testing::run(runtime::testing::toy_job(plan));
  }
  const auto start = std::chrono::steady_clock::now();
  int ran = 0, refused = 0, failed = 0;
  double worst = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    const program::Plan plan = random_plan(random);
    if (plan.ranks() > 8) continue;
    const Trained split = runtime::testing::run(runtime::testing::toy_job(plan));
    if (!split.refused.empty()) {
      ++refused;
      continue;
    }
    std::string where;
    const double difference = runtime::testing::difference(unsplit.at(plan.micro_batch), split, where);
    worst = std::max(worst, difference);
    ++ran;
    if (difference > kTolerance || !split.replicas_agree) {
      ++failed;
      fmt::print("differs by {:.1e} in {}: {} {}\n", difference, where, program::summary(plan), name_of(plan.schedule));
    }
    if (ran % 20 == 0)
      fmt::print(stderr, "{} plans run, {} refused, {} failed, worst {:.1e}\n", ran, refused, failed, worst);
  }
  fmt::print("{} plans run, {} refused, {} failed, worst difference {:.1e} (seed {})\n", ran, refused, failed, worst,
             seed);
  return failed == 0 ? 0 : 1;
}
