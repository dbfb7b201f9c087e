#include "program/lower/stage_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "program/schedules/schedule.h"

namespace trivium::program {

std::optional<Infeasible> check_stage_layers(const Job& job) {
  const Plan& plan = job.plan;
  const std::vector<int>& layers = plan.stage_layers;
  if (layers.empty()) return std::nullopt;
  if (static_cast<int>(layers.size()) != plan.chunks()) {
    return Infeasible{"stage-layers-count", fmt::format("stage_layers has {} entries; pipeline x virtual_stages is {}",
                                                        layers.size(), plan.chunks())};
  }
  const std::ptrdiff_t alone = (layers.front() == 0 ? 1 : 0) + (layers.back() == 0 ? 1 : 0);  // embedding, head
  if (*std::min_element(layers.begin(), layers.end()) < 0 || std::count(layers.begin(), layers.end(), 0) > alone) {
    return Infeasible{"stage-layers-positive",
                      "every entry of stage_layers must be 1 or more, the first and the last 0 or more"};
  }
  const auto sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != job.model.layers) {
    return Infeasible{"stage-layers-sum",
                      fmt::format("stage_layers add up to {}, the model has {} layers", sum, job.model.layers)};
  }
  if (layers.front() == 0 && traits_of(plan.schedule).splits_backward) {
    return Infeasible{"stage_layers-supported",
                      fmt::format("stage_layers is not implemented: schedule {} splits the backward, of which an "
                                  "embedding alone has only one half; give the first chunk a layer",
                                  name_of(plan.schedule))};
  }
  return std::nullopt;
}

}  // namespace trivium::program
