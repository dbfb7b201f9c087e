#include "planner/rejections.h"

#include <map>

#include "planner/parallel.h"
#include "planner/space.h"
#include "simulator/analytic/sketch.h"

namespace trivium::planner {

std::vector<Rejected> rejections(const SearchRequest& request, const std::vector<program::Plan>& plans,
                                 const std::vector<Verdict>& verdicts, int threads) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;  // family and rule -> place in the result
  std::vector<Rejected> rejected;
  std::vector<std::size_t> examples;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!verdicts[i].refused) continue;
    const program::Infeasible& no = *verdicts[i].refused;
    const std::string family = family_of(plans[i]);
    const auto [at, fresh] = known.try_emplace({family, no.rule}, rejected.size());
    if (fresh) {
      rejected.push_back({family, no.rule, no.reason, 0});
      examples.push_back(i);
    }
    ++rejected[at->second].plans;
  }
  run_parallel(
      rejected.size(), threads, {},
      [&](std::size_t r) {
        if (!rejected[r].reason.empty()) return;
        program::Job job = request.job;
        job.plan = plans[examples[r]];
        const auto no = simulator::out_of_memory(simulator::Sketch(job, request.cluster).memory(job.plan));
        if (no) rejected[r].reason = no->reason;
      },
      [](std::size_t) {});
  return rejected;
}

}  // namespace trivium::planner
