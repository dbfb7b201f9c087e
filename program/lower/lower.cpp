#include "program/lower/lower.h"

#include <algorithm>

#include "program/lower/chunk_template.h"
#include "program/lower/layout.h"
#include "program/lower/role_tasks.h"
#include "program/lower/settings.h"

namespace trivium::program {

Plan normalised(Plan plan) {
  const bool as_kept = find_stack(plan.stack)->keeps_half_gradients(plan.precision);
  if (!is_half(plan.precision) || as_kept) plan.reduce_dtype = plan.precision;
  if (!plan.replica_micro_batch.empty()) plan.micro_batch = plan.replica_micro_batch.front();
  if (micro_batch_sizes(plan).size() == 1) plan.replica_micro_batch.clear();
  return plan;
}

namespace {

// Where the gradient of a tied weight's other copy lies on a stage that holds both: the embedding's chunk and the last
// are the only ones of their kinds.
void reach_tied_copy(Program& program, const Role& role) {
  const auto kind_of = [&](const Chunk& chunk) -> ChunkTemplate& {
    return program.kinds[static_cast<std::size_t>(chunk.kind)];
  };
  const Chunk &first = role.chunks.front(), &last = role.chunks.back();
  if (kind_of(first).tie < 0 || !kind_of(last).head) return;
  const auto& copies = kind_of(last).parameters;
  const auto copy = std::find_if(copies.begin(), copies.end(), [](const Parameter& p) { return p.tied_copy; });
  const Buffer& there = kind_of(last).buffers[static_cast<std::size_t>(copy->gradient)];
  const auto space = static_cast<std::size_t>(Space::kGradient);
  kind_of(first).buffers[static_cast<std::size_t>(kind_of(first).tied_elsewhere)].offset =
      last.base[space] - first.base[space] + there.offset;
}

// The roles of one kind of replica, whose micro-batches are of `job.plan.micro_batch` samples, with all they run.
void add_roles(Program& program, const Job& job, int replica_kind, int first_replica) {
  const Plan& plan = job.plan;
  const std::vector<int> layers = chunk_layers(job);
  const std::size_t first_kind = program.kinds.size();
  std::vector<ChunkKey> keys;
  std::vector<Chunk> chunks(layers.size());
  int first_layer = 0;
  for (std::size_t position = 0; position < layers.size(); ++position) {
    ChunkKey key{.layers = layers[position], .embedding = position == 0, .head = position + 1 == layers.size()};
    key.phase = phase_of(job.model, first_layer, layers[position]);
    key = with_recompute(key, plan, static_cast<int>(position));
    auto found = std::find(keys.begin(), keys.end(), key);
    if (found == keys.end()) {
      const int index = static_cast<int>(program.kinds.size());
      program.kinds.push_back(make_chunk_template(job, program.stack, key, index, program.bodies));
      keys.push_back(key);
      found = keys.end() - 1;
    }
    Chunk& chunk = chunks[position];
    chunk.kind = static_cast<int>(first_kind) + static_cast<int>(found - keys.begin());
    chunk.position = static_cast<int>(position);
    chunk.first_layer = first_layer;
    first_layer += layers[position];
  }
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    Role role;
    role.stage = stage;
    role.replica_kind = replica_kind;
    role.first_replica = first_replica;
    for (int v = 0; v < plan.virtual_stages; ++v) {
      const int position = plan.position_of(stage, v);
      role.chunks.push_back(chunks[static_cast<std::size_t>(position)]);
      if (plan.stays(position)) role.chunks.back().input_from = v - 1;
    }
    add_tasks(program, role);
    lay_out_memory(program, role);
    reach_tied_copy(program, role);
    program.roles.push_back(std::move(role));
  }
}

}  // namespace

std::variant<Program, Infeasible> lower(const Job& job) {
  if (const auto no = check(job)) return *no;
  Program program;
  program.job = job;
  program.job.plan = normalised(program.job.plan);
  const Plan& plan = program.job.plan;
  program.stack = stack_of(plan);
  program.mesh = Mesh(plan, key_ranks(job));
  program.settings = settings_of(program.job, program.stack);
  program.micro_batches = micro_batches(plan, job.training.global_batch);

  const std::vector<int> sizes = micro_batch_sizes(plan);
  program.replica_kinds = replica_kinds(plan);
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    Job of_kind = program.job;
    of_kind.plan.micro_batch = sizes[kind];
    const auto& kinds = program.replica_kinds;
    const auto first = std::find(kinds.begin(), kinds.end(), static_cast<int>(kind)) - kinds.begin();
    add_roles(program, of_kind, static_cast<int>(kind), kinds.empty() ? 0 : static_cast<int>(first));
  }
  return program;
}

std::int64_t Role::total_bytes() const {
  std::int64_t total = 0;
  for (std::size_t space = 0; space < kSpaces; ++space) {
    if (!is_offloaded(static_cast<Space>(space))) total += bytes[space];
  }
  return total;
}

}  // namespace trivium::program
