// Plans a training with the installed libraries.
#include <cstdio>
#include <cstdlib>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/search/search.h"
#include "simulator/placement/defaults.h"

int main() {
  setenv("TRIVIUM_DATA_DIR", DATA, 0);
  trivium::planner::SearchRequest request;
  request.job.model = trivium::models::load_model("gpt2-124m");
  request.job.training.sequence = request.job.model.max_sequence;
  request.job.training.global_batch = 64;
  request.cluster = trivium::hardware::load_cluster("dgx-a100-80gb");
  request.job.plan.precision = trivium::simulator::best_precision(request.cluster);
  request.best = 1;
  const trivium::planner::SearchResult result = trivium::planner::search(request, 1, {}, {});
  if (result.best.empty()) return 1;
  const trivium::planner::Candidate& best = result.best.front();
  std::printf("%s, %.3f s\n", summary(best.plan).c_str(), best.simulation.iteration_s);
  return best.plan.ranks() == 8 ? 0 : 1;
}
