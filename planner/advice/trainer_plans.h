// What each of the other trainers would run of a job: one search for each.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "planner/advice/studies.h"

namespace trivium::planner {

/// A trainer's best plan of a job.
struct TrainerPlan {
  const TrainerSpace* trainer = nullptr;
  SearchRequest request;  ///< as it was searched
  SearchResult result;    ///< with one plan at most; empty where `refused` says why nothing was searched
  std::string refused;    ///< a fixed field, or the training, that the trainer does not run
};

/// Searches for all trainers at once, each on its share of the threads, for `budget` together: searches that are still
/// running then are stopped and keep the best plan found so far (`result.proved` is false). `request_for` makes a
/// trainer's request; its Failure(kUsage) becomes `refused`. In the order of trainer_spaces().
std::vector<TrainerPlan> plan_for_all_trainers(const std::function<SearchRequest(const TrainerSpace&)>& request_for,
                                               std::chrono::duration<double> budget, const Effort& effort);

}  // namespace trivium::planner
