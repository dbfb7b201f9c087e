#include "program/ir/text.h"

#include <fmt/format.h>

#include <set>

namespace trivium::program {
namespace {

std::string operands(const ChunkTemplate& kind, const std::int32_t* begin, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (begin[i] == kNoBuffer) continue;
    if (!text.empty()) text += ", ";
    text += kind.buffers[static_cast<std::size_t>(begin[i])].name;
  }
  return text.empty() ? "-" : text;
}

std::string after_text(const Task& task) {
  std::string text;
  for (const Dependency& d : task.after) {
    text += fmt::format(" {}{}", d.task, d.segment == kWholeTask ? "" : fmt::format(".{}", d.segment));
  }
  return text.empty() ? "" : " after" + text;
}

std::string task_line(const Program& program, const Role& role, std::size_t id) {
  const Task& task = role.tasks[id];
  std::string line = fmt::format("{:>6} {} [{}]", id, describe(task), program.body_of(task).name);
  if (task.transfer >= 0) line += fmt::format(" stage {} transfer {}", task.peer_stage, task.transfer);
  if (task.micro_batch >= 0) line += fmt::format(" frame {}", task.frame);
  const bool split = program.kind_of(program.body_of(task)).backward_weights >= 0 && !is_whole_backward(program, task);
  const bool half = task.kind == TaskKind::kBackward || task.kind == TaskKind::kBackwardWeights;
  if (split && half) line += fmt::format(" delayed {}", task.deferred_frame);
  return line + after_text(task);
}

}  // namespace

std::string describe(const Task& task) {
  std::string text = fmt::format("{} chunk {}", name_of(task.kind), task.chunk);
  if (task.micro_batch >= 0) text += fmt::format(" micro-batch {}", task.micro_batch);
  return text;
}

std::string name_task(const Role& role, std::size_t task) {
  return fmt::format("stage {} task {} ({})", role.stage, task, describe(role.tasks[task]));
}

std::string text_of(const Program& program, const Body& body, const Op& op) {
  const ChunkTemplate& kind = program.kind_of(body);
  std::string text = fmt::format("{:<9} {:<9} {:<22}", name_of(op.lane), name_of(op.pass), name_of(op.kind));
  if (is_communication(op.kind)) {
    const bool counted = op.kind == OpKind::kAllToAll && op.in[1] != kNoBuffer;  // how much is known when it runs
    text +=
        fmt::format(" group={} {}{} x {}", name_of(op.group), counted ? "about " : "", op.elements, name_of(op.dtype));
  } else {
    text += fmt::format(" m={} n={} k={} {}", op.m, op.n, op.k, name_of(op.dtype));
    const Op usual;
    if (op.epsilon != usual.epsilon) text += fmt::format(" epsilon={}", op.epsilon);
    if (op.fp8 != usual.fp8) text += fmt::format(" fp8={}", name_of(op.fp8));
    if (op.window != usual.window) text += fmt::format(" window={}", op.window);
    if (op.chunked) text += " chunked";
    if (op.document_keys > 0) text += fmt::format(" document_keys={:.6g}", op.document_keys);
    if (op.soft_cap != usual.soft_cap) text += fmt::format(" soft_cap={}", op.soft_cap);
    if (op.score_scale != usual.score_scale) text += fmt::format(" score_scale={}", op.score_scale);
  }
  text += fmt::format("  {} -> {}", operands(kind, op.in.data(), op.in.size()),
                      operands(kind, op.out.data(), op.out.size()));
  for (const int before : op.after) {
    if (before >= 0) text += fmt::format(" after {}", before);
  }
  return text;
}

std::string text_of(const Program& program, int rank) {
  const Coordinates at = program.mesh.coordinates(rank);
  const Role& role = program.role_of(rank);
  const std::string context = program.mesh.context() > 1 ? fmt::format(" context {}", at.context) : "";
  std::string text = fmt::format("rank {} tensor {}{} data {} stage {} of {}\n", rank, at.tensor, context, at.data,
                                 at.pipeline, summary(program.job.plan));
  text += "memory\n";
  for (std::size_t s = 0; s < kSpaces; ++s) {
    if (role.bytes[s] == 0) continue;
    text += fmt::format("  {:<12} {:>16} bytes\n", name_of(static_cast<Space>(s)), role.bytes[s]);
  }
  text += fmt::format("  {:<12} {:>16} bytes\nchunks\n", "total", role.total_bytes());
  for (const Chunk& chunk : role.chunks) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    text += fmt::format("  position {} layers {}..{}{}{} frames {}\n", chunk.position, chunk.first_layer,
                        chunk.first_layer + kind.layers - 1, kind.embedding ? " embedding" : "",
                        kind.head ? " head" : "", chunk.frames);
  }
  text += "tasks\n";
  std::set<int> bodies;
  for (std::size_t id = 0; id < role.tasks.size(); ++id) {
    text += task_line(program, role, id) + "\n";
    bodies.insert(role.tasks[id].body);
  }
  if (!role.order.empty()) {
    text += "order (task.segment)\n ";
    for (const Issue& issue : role.order) text += fmt::format(" {}.{}", issue.task, issue.segment);
    text += "\n";
  }
  for (const int id : bodies) {
    const Body& body = program.bodies[static_cast<std::size_t>(id)];
    text += fmt::format("body {} [{}]\n", id, body.name);
    for (const Segment& segment : body.segments) {
      text += fmt::format("  segment {}\n", segment.name);
      for (int i = segment.begin; i < segment.end; ++i) {
        text += fmt::format("  {:>5} {}\n", i, text_of(program, body, body.ops[static_cast<std::size_t>(i)]));
      }
    }
  }
  return text;
}

}  // namespace trivium::program
