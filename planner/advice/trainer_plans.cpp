#include "planner/advice/trainer_plans.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "planner/search/parallel.h"

namespace trivium::planner {
namespace {

/// Requests `stop` once the time is over, unless it is destroyed before.
class Alarm {
 public:
  Alarm(std::chrono::duration<double> after, std::stop_source& stop)
      : thread_([this, after, &stop](const std::stop_token& destroyed) {
          std::unique_lock lock(mutex_);
          if (!woken_.wait_for(lock, destroyed, after, [] { return false; }) && !destroyed.stop_requested()) {
            stop.request_stop();
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace

std::vector<TrainerPlan> plan_for_all_trainers(const std::function<SearchRequest(const TrainerSpace&)>& request_for,
                                               std::chrono::duration<double> budget, const Effort& effort) {
  std::vector<TrainerPlan> plans;
  for (const TrainerSpace& trainer : trainer_spaces()) {
    TrainerPlan& plan = plans.emplace_back();
    plan.trainer = &trainer;
    try {
      plan.request = request_for(trainer);
    } catch (const base::Failure& failure) {
      if (failure.error().kind != base::ErrorKind::kUsage) throw;
      plan.refused = failure.error().message;
    }
  }
  std::stop_source stop;
  const std::stop_callback interrupted(effort.stop, [&] { stop.request_stop(); });
  const Alarm alarm(budget, stop);
  const int threads = threads_for(effort.threads);
  const int each = std::max(1, threads / static_cast<int>(plans.size()));
  run_parallel(
      plans.size(), threads, effort.stop,
      [&](std::size_t i) {
        if (plans[i].refused.empty()) plans[i].result = search(plans[i].request, each, stop.get_token(), {});
      },
      [](std::size_t) {});
  return plans;
}

}  // namespace trivium::planner
