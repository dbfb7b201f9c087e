#include "runtime/executor/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace trivium::runtime {
namespace {

using program::TaskKind;

/// What keeps a segment from being recorded, or empty.
std::string obstacle(const program::Body& body, const program::Segment& segment) {
  for (int i = segment.begin; i < segment.end; ++i) {
    const program::Op& op = body.ops[static_cast<std::size_t>(i)];
    // Its masks are other ones for every step and micro-batch.
    if (op.dropout != program::DropoutSite::kNone) return "dropout";
    if (program::is_communication(op.kind)) return std::string(name_of(op.kind));
    if (op.lane != program::Lane::kCompute) return fmt::format("{} on another lane", name_of(op.kind));
    if (std::any_of(op.after.begin(), op.after.end(), [](std::int32_t earlier) { return earlier >= 0; })) {
      return fmt::format("{} that waits for another lane", name_of(op.kind));
    }
  }
  return "";
}

bool is_pass(TaskKind kind) {
  return kind == TaskKind::kForward || kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeights;
}

}  // namespace

Replays::Replays(const program::Program& program, const program::Role& role) : possible_(program.bodies.size()) {
  for (const program::Task& task : role.tasks) {
    auto& segments = possible_[static_cast<std::size_t>(task.body)];
    if (!is_pass(task.kind) || !segments.empty()) continue;
    const program::Body& body = program.body_of(task);
    for (const program::Segment& segment : body.segments) {
      const std::string why = obstacle(body, segment);
      segments.push_back(why.empty());
      ++segments_;
      if (!why.empty()) ++reasons_[why];
    }
  }
}

int Replays::left_out() const {
  return std::accumulate(reasons_.begin(), reasons_.end(), 0, [](int sum, const auto& r) { return sum + r.second; });
}

std::string Replays::summary() const {
  std::string text = fmt::format("{} of {} segments of the passes", segments_ - left_out(), segments_);
  std::string others;
  for (const auto& [why, count] : reasons_) others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", why, count);
  return others.empty() ? text : text + "; the others hold " + others;
}

}  // namespace trivium::runtime
