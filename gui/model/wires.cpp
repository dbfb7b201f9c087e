#include "gui/model/wires.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "gui/model/display_name.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::gui {

std::vector<simulator::WireUse> wires_of(const Evaluation& evaluation) {
  if (!evaluation.runs() || evaluation.depth != Depth::kFull) return {};
  const simulator::PlacedCluster placed(evaluation.scenario.file.job.plan, evaluation.scenario.cluster);
  return simulator::link_use(*evaluation.program, *evaluation.timeline, placed.get());
}

report::Kind kind_of(program::Group group) {
  switch (group) {
    case program::Group::kTensor:
    case program::Group::kKeys:
    case program::Group::kExpertTensor:
      return report::Kind::kTensor;
    case program::Group::kContext:
    case program::Group::kContextHeads:
    case program::Group::kContextRing:
      return report::Kind::kContext;
    case program::Group::kExpert:
      return report::Kind::kExpert;
    case program::Group::kData:
    case program::Group::kShard:
    case program::Group::kReplica:
    case program::Group::kExpertData:
      return report::Kind::kData;
    case program::Group::kPipeline:
      return report::Kind::kPipeline;
    case program::Group::kNone:
      return report::Kind::kOffload;
    case program::Group::kEmbedding:
    case program::Group::kModel:
    case program::Group::kWorld:
      return report::Kind::kOther;
  }
  return report::Kind::kOther;
}

std::vector<std::string> wire_sentences(const std::vector<simulator::WireUse>& wires, double iteration_s) {
  std::vector<const simulator::WireUse*> order;
  for (const simulator::WireUse& wire : wires) order.push_back(&wire);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->exposed_s > b->exposed_s; });
  std::vector<std::string> sentences;
  for (const simulator::WireUse* wire : order) {
    const simulator::LinkUse& most = wire->uses.front();
    sentences.push_back(fmt::format(
        "{}: {} a device and iteration; busy {} of the iteration, {} with nothing computed meanwhile; when busy, {} "
        "of their bandwidth is used. Most of that time is for: {}{}.",
        name_of(wire->wire), base::size(std::llround(wire->bytes)), base::percent(wire->busy_share(iteration_s)),
        base::percent(wire->exposed_s / iteration_s), base::percent(wire->filled()), name_of(most.phase),
        most.group == program::Group::kNone
            ? ""
            : fmt::format(", group {}", display_name(std::string(program::name_of(most.group))))));
    sentences.back().front() = static_cast<char>(std::toupper(sentences.back().front()));
  }
  return sentences;
}

std::string wires_csv(const std::vector<simulator::WireUse>& wires) {
  std::string text = "wires,for,group,operations,bytes,busy_s\n";
  for (const simulator::WireUse& wire : wires) {
    for (const simulator::LinkUse& use : wire.uses) {
      text += fmt::format("{},{},{},{},{},{}\n", name_of(wire.wire), name_of(use.phase),
                          use.group == program::Group::kNone ? "copies" : program::name_of(use.group), use.operations,
                          use.bytes, use.busy_s);
    }
  }
  return text;
}

}  // namespace trivium::gui
