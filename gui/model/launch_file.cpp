#include "gui/model/launch_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "gui/model/display_name.h"
#include "models/load.h"
#include "planner/launch/launch.h"
#include "planner/launch/surroundings.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kLongestLoss = 200;  // letters

}  // namespace

LaunchFile read_launch_file(const LaunchWish& wish) {
  if (wish.cluster.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, "Name the cluster: launch files do not say the hardware.");
  }
  namespace launch = planner::launch;
  const Scenario placed = with_cluster(Scenario{}, wish.cluster);
  launch::ImportRequest request;
  request.text = base::read_file(wish.path);
  request.where = wish.path;
  if (!wish.model.empty()) request.model = models::load_model(wish.model);
  request.sequence = wish.sequence;
  request.ranks = placed.cluster.devices();
  request.devices_per_node = placed.cluster.groups.front().node.devices_of_host();
  request.surroundings = launch::surroundings_of(wish.path);
  const launch::Trainer trainer = launch::trainer_of(request);
  launch::Imported imported = launch::import_plan(request, trainer);
  LaunchFile read;
  read.software = launch::version_of(trainer).software;
  for (const launch::Loss& loss : imported.losses) {
    read.lost.push_back(fmt::format("{}: {}", loss.field, loss.what).substr(0, kLongestLoss));
  }
  read.scenario.file.cluster = placed.file.cluster;
  read.scenario.cluster = placed.cluster;
  read.scenario.file.job = std::move(imported.job);
  // Settings that a trainer takes may be no plan of ours: what is shown can be written and read.
  program::plan_file_from_json(program::to_json(read.scenario.file), wish.path);
  read.words =
      fmt::format("{}: {}", job_words(read.scenario), display_name(program::summary(read.scenario.file.job.plan)));
  return read;
}

}  // namespace trivium::gui
