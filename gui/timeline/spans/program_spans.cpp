#include "gui/timeline/spans/program_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/cancellation_point.h"
#include "gui/timeline/spans/store_builder.h"

namespace trivium::gui {
namespace {

using program::Event;

std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Of every step its begin, so that steps follow each other.
std::map<std::int32_t, std::int64_t> step_starts(const program::Timeline& timeline) {
  std::map<std::int32_t, std::int64_t> ends;
  std::int64_t* end = nullptr;
  std::int32_t step = 0;
  for (const Event& event : timeline.events) {
    if (end == nullptr || event.step != step) end = &ends[step = event.step];
    *end = std::max(*end, event.end_ps);
  }
  std::int64_t start = 0;
  for (auto& [number, value] : ends) start += std::exchange(value, start);
  return ends;
}

class Filler {
 public:
  Filler(const program::Program& program, const program::Timeline& timeline, const hardware::Cluster* cluster)
      : program_(program),
        timeline_(timeline),
        cluster_(cluster),
        has_replicas_(program.mesh.group_size(program::Group::kData) > 1) {
    const bool known = cluster != nullptr && !cluster->name.empty();
    root_ = builder_.add_row(kNoRow, RowKind::kCluster, known ? cluster->name : "ranks", 0);
    waiting_ = builder_.category(Category::kWaiting);
  }

  std::shared_ptr<const SpanStore> fill(const std::stop_token& stop) {
    base::CancellationPoint cancellation(stop);
    const auto steps = step_starts(timeline_);
    for (const auto& [step, start] : steps) builder_.add_step(start);
    builder_.reserve(timeline_.events.size() + timeline_.events.size() / 8);
    std::int64_t start = 0;
    std::int32_t step = 0;
    bool first = true;
    for (std::uint32_t e = 0; e < timeline_.events.size(); ++e) {
      cancellation.step();
      const Event& event = timeline_.events[e];
      if (first || event.step != step) start = steps.at(step = event.step), first = false;
      add(event, e, start);
    }
    for (const auto& [rank, rows] :
         lanes_) {  // where a rank computes nothing, its other lanes are what there is to show
      if (rows.lanes[static_cast<std::size_t>(program::Lane::kCompute)] != kNoRow) continue;
      for (const std::int32_t lane : rows.lanes) {
        if (lane != kNoRow) builder_.set_primary(lane, true);
      }
    }
    join(cancellation);
    return builder_.build(stop);
  }

 private:
  void add(const Event& event, std::uint32_t index, std::int64_t step_start) {
    const program::Task* task = task_of(program_, event);
    const program::Op* op = op_of(program_, event);
    NewSpan span;
    span.row = lane_row(event.rank, event.lane);
    span.event = index;
    span.start_ps = step_start + event.start_ps;
    span.end_ps = step_start + std::max(event.end_ps, event.start_ps);
    span.title = task != nullptr ? title(event, *task, op) : builder_.title(span_name(program_, event).title);
    span.detail = op != nullptr ? detail(event, *task, *op) : builder_.detail(span_name(program_, event).detail);
    const std::int64_t wait = std::clamp<std::int64_t>(event.wait_ps, 0, span.end_ps - span.start_ps);
    if (wait > 0) {
      NewSpan waiting = span;
      waiting.end_ps = span.start_ps + wait;
      waiting.category = waiting_;
      builder_.add(waiting);
      span.start_ps = waiting.end_ps;
    }
    span.category = category(task, op, event.lane);
    const std::uint32_t added = builder_.add(span);
    if (op != nullptr) note_rendezvous(event, *task, *op, added);
  }

  // Without replicas no data parallelism is told of: what is left of it ties the embedding of first and last stage.
  std::uint8_t category(const program::Task* task, const program::Op* op, program::Lane lane) {
    if (task == nullptr) return builder_.category(Category::kOther);
    const Category usual = category_of(*task, op, lane);
    if (has_replicas_ || usual != Category::kData) return builder_.category(usual);
    return builder_.category("tied embedding", hue_of(Category::kData));
  }

  // Names are made once: tasks and ops are few where their pairs are many.
  std::uint32_t title(const Event& event, const program::Task& task, const program::Op* op) {
    const bool again = op != nullptr && op->pass == program::Pass::kRecompute;
    const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(task.micro_batch)) << 16) |
                              (static_cast<std::uint64_t>(task.kind) << 1) | static_cast<std::uint64_t>(again);
    const auto [known, fresh] = titles_.try_emplace(key, 0);
    if (fresh) known->second = builder_.title(span_name(program_, event).title);
    return known->second;
  }

  std::uint32_t detail(const Event& event, const program::Task& task, const program::Op& op) {
    const int first = program_.role_of(event.rank).chunks[static_cast<std::size_t>(task.chunk)].first_layer;
    const int layer = op.layer >= 0 ? first + op.layer : -1;
    const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(layer)) << 16) |
                              (static_cast<std::uint64_t>(op.kind) << 8) | static_cast<std::uint64_t>(task.kind);
    const auto [known, fresh] = details_.try_emplace(key, 0);
    if (fresh) known->second = builder_.detail(span_name(program_, event).detail);
    return known->second;
  }

  std::int32_t lane_row(std::int32_t rank, program::Lane lane) {
    auto& row = lanes_[rank];
    auto& place = row.lanes[static_cast<std::size_t>(lane)];
    if (place != kNoRow) return place;
    if (row.device == kNoRow) {
      row.device = builder_.add_row(node_row(rank), RowKind::kDevice, rank_name(program_, rank), rank);
    }
    const bool primary = lane == program::Lane::kCompute;
    return place = builder_.add_row(row.device, RowKind::kLane, std::string(name_of(lane)), static_cast<int>(lane),
                                    primary);
  }

  std::int32_t node_row(std::int32_t rank) {
    const bool placed = cluster_ != nullptr && rank >= 0 && rank < cluster_->devices();
    const std::int32_t node = placed ? cluster_->node_index(rank) : 0;
    const auto [known, fresh] = nodes_.try_emplace(node, kNoRow);
    if (fresh) {
      std::string name = fmt::format("node {}", node);
      if (placed && !cluster_->homogeneous()) name += fmt::format(" · {}", cluster_->node_of_device(rank).device.name);
      known->second = builder_.add_row(root_, RowKind::kNode, name, node);
    }
    return known->second;
  }

  // Ends of one transfer share its number and their coordinates apart from the stage. Collectives that join stages are
  // met in the order in which each rank issues them.
  void note_rendezvous(const Event& event, const program::Task& task, const program::Op& op, std::uint32_t span) {
    if (event.rank < 0 || event.rank >= program_.mesh.size()) return;
    program::Coordinates at = program_.mesh.coordinates(event.rank);
    if (task.transfer >= 0 && (op.kind == program::OpKind::kSend || op.kind == program::OpKind::kRecv)) {
      at.pipeline = 0;
      auto& ends = transfers_[{event.step, task.transfer, program_.mesh.rank(at)}];
      ends[op.kind == program::OpKind::kSend ? 0 : 1] = span;
      return;
    }
    const bool joins = op.group == program::Group::kEmbedding || op.group == program::Group::kModel ||
                       op.group == program::Group::kWorld;
    if (!joins || !program::is_communication(op.kind)) return;
    const int place = places_[{event.step, event.rank, static_cast<int>(op.group)}]++;
    if (op.group == program::Group::kEmbedding) at.pipeline = 0;
    const int whose = op.group == program::Group::kEmbedding ? program_.mesh.rank(at) : at.data;
    rendezvous_[{event.step, static_cast<int>(op.group), place, op.group == program::Group::kWorld ? 0 : whose}]
        .push_back(span);
  }

  void join(base::CancellationPoint& cancellation) {
    for (const auto& [key, ends] : transfers_) {
      cancellation.step();
      if (ends[0] != kNoSpan && ends[1] != kNoSpan) builder_.add_flow(ends[0], ends[1], true);
    }
    for (const auto& [key, members] : rendezvous_) {
      cancellation.step();
      for (std::size_t m = 1; m < members.size(); ++m) builder_.add_flow(members[m - 1], members[m], false);
    }
  }

  struct RankRows {
    RankRows() { lanes.fill(kNoRow); }
    std::int32_t device = kNoRow;
    std::array<std::int32_t, program::kLanes> lanes;
  };
  struct Ends : std::array<std::uint32_t, 2> {
    Ends() { fill(kNoSpan); }
  };
  const program::Program& program_;
  const program::Timeline& timeline_;
  const hardware::Cluster* cluster_;
  bool has_replicas_;
  StoreBuilder builder_;
  std::int32_t root_ = kNoRow;
  std::uint8_t waiting_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> titles_, details_;
  std::unordered_map<std::int32_t, RankRows> lanes_;
  std::map<std::int32_t, std::int32_t> nodes_;
  std::map<std::tuple<int, int, int>, Ends> transfers_;                              // step, transfer, coordinates
  std::map<std::tuple<int, int, int>, int> places_;                                  // step, rank, group
  std::map<std::tuple<int, int, int, int>, std::vector<std::uint32_t>> rendezvous_;  // step, group, place, whose
};

}  // namespace

const program::Task* task_of(const program::Program& program, const program::Event& event) {
  if (event.rank < 0 || event.rank >= program.mesh.size()) return nullptr;
  const auto& tasks = program.role_of(event.rank).tasks;
  const bool known = event.task >= 0 && static_cast<std::size_t>(event.task) < tasks.size();
  return known ? &tasks[static_cast<std::size_t>(event.task)] : nullptr;
}

const program::Op* op_of(const program::Program& program, const program::Event& event) {
  const program::Task* task = task_of(program, event);
  if (task == nullptr || event.op < 0) return nullptr;
  const auto& ops = program.body_of(*task).ops;
  return static_cast<std::size_t>(event.op) < ops.size() ? &ops[static_cast<std::size_t>(event.op)] : nullptr;
}

SpanName span_name(const program::Program& program, const program::Event& event) {
  const program::Task* task = task_of(program, event);
  const program::Op* op = op_of(program, event);
  if (task == nullptr) return {fmt::format("task {}", event.task), event.op < 0 ? "" : fmt::format("op {}", event.op)};
  const bool again = op != nullptr && op->pass == program::Pass::kRecompute;
  SpanName name{words(again ? name_of(program::Pass::kRecompute) : name_of(task->kind)), ""};
  if (task->micro_batch >= 0) name.title += fmt::format(" mb{}", task->micro_batch);
  if (op == nullptr) {
    if (event.op >= 0) name.detail = fmt::format("op {}", event.op);
    return name;
  }
  if (op->layer >= 0) {
    const int first = program.role_of(event.rank).chunks[static_cast<std::size_t>(task->chunk)].first_layer;
    name.detail = fmt::format("layer {} ", first + op->layer);
  }
  if (name_of(op->kind) != name_of(task->kind)) name.detail += words(name_of(op->kind));
  return name;
}

std::string rank_name(const program::Program& program, int rank) {
  std::string name = fmt::format("rank {}", rank);
  if (rank < 0 || rank >= program.mesh.size()) return name;
  const program::Coordinates at = program.mesh.coordinates(rank);
  if (program.mesh.pipeline() > 1) name += fmt::format(" · stage {}", at.pipeline);
  if (program.mesh.tensor() > 1) name += fmt::format(" · tp {}", at.tensor);
  if (program.mesh.context() > 1) name += fmt::format(" · cp {}", at.context);
  if (program.mesh.data() > 1) name += fmt::format(" · dp {}", at.data);
  return name;
}

std::size_t foreign_events(const program::Program& program, const program::Timeline& timeline) {
  return static_cast<std::size_t>(std::count_if(timeline.events.begin(), timeline.events.end(), [&](const Event& e) {
    return task_of(program, e) == nullptr || (e.op >= 0 && op_of(program, e) == nullptr);
  }));
}

std::shared_ptr<const SpanStore> spans_of(const program::Program& program, const program::Timeline& timeline,
                                          const hardware::Cluster* cluster, const std::stop_token& stop) {
  return Filler(program, timeline, cluster).fill(stop);
}

}  // namespace trivium::gui
