#include "planner/search/rejection_log.h"

#include "planner/search/parallel.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::planner {

void RejectionLog::enter(Rejection refusal) {
  plans_ += refusal.plans;
  std::string family = family_of(refusal.example);
  const auto [at, fresh] = known_.try_emplace({family, refusal.why.rule}, rejected_.size());
  if (fresh) {
    rejected_.push_back({std::move(family), std::move(refusal.why.rule), std::move(refusal.why.reason), 0});
    examples_.push_back(std::move(refusal.example));
  }
  rejected_[at->second].plans += refusal.plans;
}

std::vector<Rejected> RejectionLog::rejections(const SearchRequest& request, int threads) && {
  run_parallel(
      rejected_.size(), threads, {},
      [&](std::size_t r) {
        if (!rejected_[r].reason.empty()) return;
        program::Job job = request.job;
        job.plan = examples_[r];
        const auto no = simulator::out_of_memory(simulator::CostEstimator(job, request.cluster).memory(job.plan));
        if (no) rejected_[r].reason = no->reason;
      },
      [](std::size_t) {});
  return std::move(rejected_);
}

}  // namespace trivium::planner
