#include "program/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "program/ir/text.h"
#include "program/schedules/schedule.h"
#include "program/verify/verify_context.h"
#include "program/verify/verify_frames.h"
#include "program/verify/verify_gradients.h"
#include "program/verify/verify_offload.h"
#include "program/verify/verify_order.h"
#include "program/verify/verify_pairs.h"
#include "program/verify/verify_sharding.h"
#include "program/verify/verify_transfers.h"

namespace trivium::program {
namespace {

using Problems = std::vector<std::string>;

void check_counts(const Program& program, Problems& problems) {
  for (const Role& role : program.roles) {
    std::map<std::tuple<TaskKind, int, int>, int> seen;
    for (std::size_t id = 0; id < role.tasks.size(); ++id) {
      const Task& task = role.tasks[id];
      const bool second_half = task.kind == TaskKind::kBackwardWeights;
      if (task.kind != TaskKind::kForward && task.kind != TaskKind::kBackward && !second_half) continue;
      ++seen[{task.kind, task.chunk, task.micro_batch}];
      if (is_whole_backward(program, task)) ++seen[{TaskKind::kBackwardWeights, task.chunk, task.micro_batch}];
      if (task.kind == TaskKind::kBackward && seen[{TaskKind::kForward, task.chunk, task.micro_batch}] == 0) {
        problems.push_back(fmt::format("{} comes before its forward", name_task(role, id)));
      }
      if (second_half && seen[{TaskKind::kBackward, task.chunk, task.micro_batch}] == 0) {
        problems.push_back(fmt::format("{} comes before its first half", name_task(role, id)));
      }
    }
    std::vector<TaskKind> wanted{TaskKind::kForward, TaskKind::kBackward};
    if (traits_of(program.job.plan.schedule).splits_backward) wanted.push_back(TaskKind::kBackwardWeights);
    for (const TaskKind kind : wanted) {
      for (int chunk = 0; chunk < static_cast<int>(role.chunks.size()); ++chunk) {
        for (int m = 0; m < static_cast<int>(program.micro_batches); ++m) {
          const int count = seen[{kind, chunk, m}];
          if (count == 1) continue;
          problems.push_back(fmt::format("stage {}: {} of chunk {} micro-batch {} occurs {} times", role.stage,
                                         name_of(kind), chunk, m, count));
        }
      }
    }
  }
}

bool outlives_body(Space space) {
  return space == Space::kFrame || space == Space::kDeferred || space == Space::kStaging;
}

// What a body reads must have been written in it, or have come into the frame before.
void check_buffers(const Program& program, Problems& problems) {
  for (const ChunkTemplate& kind : program.kinds) {
    std::set<int> in_frame, in_parts;  // the latter: a part of it came
    const auto space_of = [&](int b) { return kind.buffers[static_cast<std::size_t>(b)].space; };
    const auto run = [&](int id) {
      if (id < 0) return;
      const Body& body = program.bodies[static_cast<std::size_t>(id)];
      std::set<int> written;
      for (std::size_t i = 0; i < body.ops.size(); ++i) {
        const Op& op = body.ops[i];
        for (const int b : op.in) {
          if (b == kNoBuffer) continue;
          const bool framed = space_of(b) == Space::kFrame || space_of(b) == Space::kDeferred,
                     own = is_workspace(space_of(b));
          const bool gathers = op.kind == OpKind::kAllGather && in_parts.contains(b);
          if ((framed && !in_frame.contains(b) && !gathers) || (own && !written.contains(b))) {
            problems.push_back(fmt::format("body \"{}\" op {} ({}) reads \"{}\" before anything wrote it", body.name, i,
                                           name_of(op.kind), kind.buffers[static_cast<std::size_t>(b)].name));
          }
        }
        for (const int b : op.out) {
          if (b == kNoBuffer) continue;
          written.insert(b);
          const bool part = op.kind == OpKind::kRecv && op.parts > 1;
          if (outlives_body(space_of(b))) (part ? in_parts : in_frame).insert(b);
        }
      }
    };
    for (const int body : {kind.recv_forward, kind.gather_forward, kind.forward, kind.forward_first, kind.send_forward,
                           kind.recv_backward, kind.gather_backward, kind.backward, kind.send_backward,
                           kind.backward_weights, kind.backward_whole}) {
      run(body);
    }
  }
}

// Products have both factors and a place for what they give.
void check_products(const Program& program, Problems& problems) {
  for (const Body& body : program.bodies) {
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const Op& op = body.ops[i];
      const bool product = op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulDgrad ||
                           op.kind == OpKind::kMatmulWgrad || op.kind == OpKind::kExpertMatmul ||
                           op.kind == OpKind::kExpertMatmulDgrad || op.kind == OpKind::kExpertMatmulWgrad;
      if (!product || (op.in[0] != kNoBuffer && op.in[1] != kNoBuffer && op.out[0] != kNoBuffer)) continue;
      problems.push_back(
          fmt::format("body \"{}\" op {} ({}) has no buffer for an operand", body.name, i, name_of(op.kind)));
    }
  }
}

// Tensor ranks, or those that split an expert, gather and scatter whole buffers of a layer: as many equal parts as
// there are ranks.
void check_parts(const Program& program, Problems& problems) {
  for (const Body& body : program.bodies) {
    const ChunkTemplate& kind = program.kind_of(body);
    const auto elements = [&](int b) { return kind.buffers[static_cast<std::size_t>(b)].elements; };
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      const Op& op = body.ops[i];
      const bool of_layer = (op.group == Group::kTensor || op.group == Group::kExpertTensor) && op.layer >= 0;
      const bool gathers = op.kind == OpKind::kAllGather, scatters = op.kind == OpKind::kReduceScatter;
      if (!of_layer || (!gathers && !scatters) || op.in[0] == op.out[0]) continue;
      const std::int64_t part = elements(gathers ? op.in[0] : op.out[0]);
      const std::int64_t whole = elements(gathers ? op.out[0] : op.in[0]);
      const int ranks = program.mesh.group_size(op.group);
      if (part * ranks == whole && op.elements == whole) continue;
      problems.push_back(fmt::format("body \"{}\" op {} ({}): {} elements are not {} parts of {} over group {}",
                                     body.name, i, name_of(op.kind), whole, ranks, part, name_of(op.group)));
    }
  }
}

// Key columns that several tensor ranks hold are summed over them wherever their bucket is reduced.
void check_keys(const Program& program, Problems& problems) {
  for (const ChunkTemplate& kind : program.kinds) {
    for (std::size_t b = 0; b < kind.buckets.size(); ++b) {
      const Bucket& bucket = kind.buckets[b];
      std::int64_t held = 0, summed = 0;
      for (const Parameter& p : kind.parameters) {
        const bool inside = p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
        if (inside && !p.frozen) held += p.local_rows * p.key_columns;
      }
      if (held == 0) continue;
      if (kind.reduce[b] >= 0) {
        for (const Op& op : program.bodies[static_cast<std::size_t>(kind.reduce[b])].ops) {
          if (op.kind == OpKind::kAllReduce && op.group == Group::kKeys) summed += op.elements;
        }
      }
      if (summed != held) {
        problems.push_back(fmt::format(
            "bucket {}: {} gradients of key heads that tensor ranks share are summed, not {}", b, summed, held));
      }
    }
  }
}

}  // namespace

std::vector<std::string> verify(const Program& program, std::int64_t capacity_bytes) {
  Problems problems;
  check_counts(program, problems);
  check_transfers(program, problems);
  check_buffers(program, problems);
  check_frames(program, problems);
  check_offload(program, problems);
  check_away_gradients(program, problems);
  check_temporaries(program, problems);
  check_pairs(program, problems);
  check_rings(program, problems);
  check_keys(program, problems);
  check_products(program, problems);
  check_parts(program, problems);
  check_joint_collectives(program, problems);
  check_sharding(program, problems);
  if (problems.empty()) check_order(program, problems);
  if (capacity_bytes > 0) {
    for (const Role& role : program.roles) {
      if (role.total_bytes() <= capacity_bytes) continue;
      problems.push_back(fmt::format("stage {} needs {} bytes of {}", role.stage, role.total_bytes(), capacity_bytes));
    }
  }
  return problems;
}

}  // namespace trivium::program
