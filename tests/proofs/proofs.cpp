// trivium-proofs PAIRS [SEED [JOBS]]: bounds of the search against simulated plans, on jobs of real sizes. JOBS: all
// kinds, or sharded-mixtures or pairs-in-v alone. Exit code 1 where a bound is larger than an iteration below it.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/proofs/bound_pairs.h"
#include "tests/proofs/real_jobs.h"

namespace {

using namespace trivium;
using planner::BoundPair;
using planner::SearchRequest;

constexpr std::int64_t kMostWork = 12'000;  // layers times micro-batches: a tenth of a second
constexpr int kPairsOfAJob = 20;

std::string name_of(const SearchRequest& request) {
  return fmt::format("{} ({} layers) on {}{}, batch {} x {}", request.job.model.name, request.job.model.layers,
                     request.cluster.name,
                     request.cluster.nodes() > 0 ? fmt::format(" ({} nodes)", request.cluster.nodes()) : "",
                     request.job.training.global_batch, request.job.training.sequence);
}

class Run {
 public:
  using Drawn = SearchRequest (*)(std::mt19937&);
  Run(std::int64_t wanted, unsigned seed, Drawn draw) : wanted_(wanted), seed_(seed), draw_(draw) {}

  int go() {
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) {
        threads.emplace_back([this] { work(); });
      }
    }
    fmt::print("{} pairs of {} jobs, {} bounds broken; the closest bound is {:.2f} % of its iteration in the mean\n",
               pairs_.load(), jobs_.load(), broken_.load(), 100 * tightness_ / static_cast<double>(pairs_.load()));
    return broken_ == 0 ? 0 : 1;
  }

 private:
  // Jobs are numbered, and each has a seed of its own: what is drawn depends on no thread.
  void work() {
    while (pairs_ < wanted_) {
      const unsigned number = jobs_++;
      std::mt19937 random(seed_ * 1'000'003U + number);
      const SearchRequest request = draw_(random);
      for (int i = 0; i < kPairsOfAJob && pairs_ < wanted_; ++i) {
        const auto pair = planner::random_pair(request, random, kMostWork);
        if (!pair) continue;
        ++pairs_;
        enter(request, *pair, random);
      }
    }
  }

  void enter(const SearchRequest& request, const BoundPair& pair, std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    tightness_ += static_cast<double>(pair.bounds_ps.back()) / static_cast<double>(pair.iteration_ps);
    if (pairs_ % 1000 == 0) fmt::print(stderr, "{} of {} pairs\n", pairs_.load(), wanted_);
    if (pair.holds()) return;
    ++broken_;
    fmt::print("broken: {}\n  {} {}\n  {}\n", name_of(request), program::summary(pair.plan), pair.plan.placement,
               pair.text());
    if (broken_ > 5) return;  // what is known by then is enough to begin with
    fmt::print("  smallest: {}\n", name_of(planner::shrunk(request, random, kMostWork)));
  }

  std::int64_t wanted_;
  unsigned seed_;
  Drawn draw_;
  std::atomic<std::int64_t> pairs_ = 0;
  std::atomic<unsigned> jobs_ = 0;
  std::atomic<int> broken_ = 0;
  std::mutex mutex_;
  double tightness_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t pairs = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const auto seed = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1);
  const std::string jobs = argc > 3 ? argv[3] : "all";
  const std::map<std::string, Run::Drawn> drawn{{"all", planner::real_job},
                                                {"sharded-mixtures", planner::real_sharded_mixture},
                                                {"pairs-in-v", planner::real_pairs_in_v}};
  if (pairs < 1 || !drawn.contains(jobs)) {
    fmt::print(stderr, "usage: trivium-proofs [PAIRS [SEED [all | sharded-mixtures | pairs-in-v]]]\n");
    return 2;
  }
  return Run(pairs, seed, drawn.at(jobs)).go();
}
