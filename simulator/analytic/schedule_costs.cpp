#include "simulator/analytic/schedule_costs.h"

#include <algorithm>
#include <limits>

#include "program/schedules/slots.h"

namespace trivium::simulator {
namespace {

using Times = std::vector<std::int64_t>;

class Bounder {
 public:
  explicit Bounder(const ScheduleCosts& schedule_costs) : o_(schedule_costs), head_(stages()), tail_(stages()) {
    for (std::size_t s = 1; s < stages(); ++s) {
      const ScheduleCosts::Chunk &before = o_.chunks[s - 1], &here = o_.chunks[s];
      head_[s] = head_[s - 1] + forward_of(before) + before.send_forward;
      tail_[s] = tail_[s - 1] + here.send_backward + backward_of(before);
    }
  }

  // end[j]: when stage j's last backward ends at the earliest. A stage ends its passes with the first chunk's backward
  // of the last micro-batch, which then runs down to stage 0.
  // The second half of a split backward keeps the stage busy, but no other waits for it.
  PassEnds ends() const {
    PassEnds ends;
    ends.stages.resize(stages());
    ends.last_backward.resize(o_.chunks.size());
    Times sent(stages());
    for (std::size_t s = stages(); s-- > 0;) {
      sent[s] = head_[s] + passes(s);
      if (s + 1 < stages()) sent[s] = std::max(sent[s], sent[s + 1] + tail_[s + 1] - tail_[s]);
      const std::int64_t weights = sum(s, &ScheduleCosts::Chunk::weights);
      ends.stages[s] = std::max(
          {head_[s] + passes(s) + o_.micro_batches * weights, sent[s] + o_.chunks[s].weights, head_[s] + copies(s)});
    }
    if (traits().round(o_.pipeline) > 1) go_through_all_chunks(ends);
    return ends;
  }

 private:
  std::size_t stages() const { return static_cast<std::size_t>(o_.pipeline); }
  const program::ScheduleTraits& traits() const { return program::traits_of(o_.schedule); }

  // Of one micro-batch, from the begin of the pass to its end.
  std::int64_t forward_of(const ScheduleCosts::Chunk& chunk) const {
    return o_.pairs ? chunk.forward_through : chunk.forward;
  }
  std::int64_t backward_of(const ScheduleCosts::Chunk& chunk) const {
    return o_.pairs ? chunk.backward_through : chunk.backward;
  }

  std::int64_t sum(std::size_t s, std::int64_t ScheduleCosts::Chunk::*part) const {
    std::int64_t all = 0;
    for (int v = 0; v < o_.virtual_stages; ++v) all += o_.chunk_of(s, v).*part;
    return all;
  }

  // What the copy lane does before the last backward ends. Of a chunk of two layers or one, both may still be in their
  // slots by then: nobody waits until they have left.
  std::int64_t copies(std::size_t s) const {
    std::int64_t all = 0;
    for (int v = 0; v < o_.virtual_stages; ++v) {
      const ScheduleCosts::Chunk& chunk = o_.chunk_of(s, v);
      const std::int64_t awaited = o_.micro_batches - (chunk.layers > 2 ? 0 : 1);
      all += awaited * chunk.store + o_.micro_batches * chunk.fetch_inner;
    }
    return all;
  }

  // From the start of stage s's first forward to the end of its last backward, second halves left out.
  std::int64_t passes(std::size_t s) const {
    const std::int64_t pair = sum(s, &ScheduleCosts::Chunk::forward) + sum(s, &ScheduleCosts::Chunk::backward);
    const std::int64_t exchanges = sum(s, &ScheduleCosts::Chunk::exchanges);
    const std::int64_t longest = std::max(o_.micro_batches * pair + waits(s), o_.micro_batches * exchanges);
    const bool one_for_one =
        traits().has_steady_state() && !traits().splits_backward && o_.virtual_stages == 1 && !o_.pairs;
    return one_for_one ? std::max(longest, full_pipe(s, traits().warm_up(place(s)) + 1)) : longest;
  }

  // Of all pairs of the stage, for exchanges: in each at least as long as in the one that waits least.
  std::int64_t waits(std::size_t s) const {
    if (o_.pair_ps.empty()) return 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int f = 0; f < o_.virtual_stages; ++f) {
      for (int b = 0; b < o_.virtual_stages; ++b) {
        const ScheduleCosts::Chunk& back = o_.chunk_of(s, b);
        least = std::min(least, o_.pair_of(s, f, b) - o_.chunk_of(s, f).forward - back.backward - back.weights);
      }
    }
    const program::SlotOrder order = program::order_of(o_.schedule, place(s), o_.micro_batches);
    return std::max<std::int64_t>(0, order.passes - order.warm_up) * least;
  }

  // A micro-batch from the start of its forward on stage s to the end of its backward there.
  std::int64_t round_trip(std::size_t s) const {
    std::int64_t time = 0;
    for (std::size_t j = s; j < stages(); ++j) {
      time += o_.chunks[j].forward + o_.chunks[j].backward;
      if (j > s) time += o_.chunks[j - 1].send_forward + o_.chunks[j].send_backward;
    }
    return time;
  }

  program::StagePlace place(std::size_t s) const {
    return {static_cast<int>(s), o_.pipeline, o_.virtual_stages, o_.pairs};
  }

  // With `depth` micro-batches under way forward k + depth comes after backward k: whole round trips q, then what is
  // left of the last round. One after another, they are round trips alone.
  std::int64_t full_pipe(std::size_t s, std::int64_t depth) const {
    const std::int64_t trips = (o_.micro_batches - 1) / depth, left = (o_.micro_batches - 1) % depth;
    return (trips + 1) * round_trip(s) + left * o_.chunks[s].backward;
  }

  // Several chunks in turn, on the last stage: the first micro-batch goes forward through all chunks before the first
  // backward, of the last chunk; by then (v - 1) p + 1 forwards are done there. All others, and all backwards but as
  // many, come before the last micro-batch's first backward, which then goes back through all chunks.
  void go_through_all_chunks(PassEnds& ends) const {
    std::int64_t time = 0;
    for (const ScheduleCosts::Chunk& chunk : o_.chunks) time += forward_of(chunk) + chunk.send_forward;
    time -= o_.chunks.back().send_forward;
    const std::int64_t first = std::min<std::int64_t>(o_.pipeline, o_.micro_batches);
    for (std::size_t position = stages() - 1; position < o_.chunks.size(); position += stages()) {
      const bool last = position + 1 == o_.chunks.size();
      time += (o_.micro_batches - (last ? 1 : first)) * (o_.chunks[position].forward + o_.chunks[position].backward);
    }
    for (std::size_t position = o_.chunks.size(); position-- > 0;) {
      time += backward_of(o_.chunks[position]);
      if (position < stages()) ends.stages[position] = std::max(ends.stages[position], time);
      time += o_.chunks[position].send_backward;
    }
  }

  const ScheduleCosts& o_;
  Times head_;  // by stage: when its first forward starts at the earliest
  Times tail_;  // by stage: from the end of its last backward to the end of stage 0's
};

// Reductions during the last backward: a chunk's, and those of the chunks that end after it, come after the start of
// its last backward.
std::int64_t reduced_beside(const ScheduleCosts& o, const PassEnds& ends, std::size_t stage) {
  std::int64_t reduced = 0, left = 0;
  for (int v = 0; v < o.virtual_stages; ++v) {
    left += o.chunk_of(stage, v).reduce;
    if (left > 0) reduced = std::max(reduced, ends.last_backward[o.position_of(stage, v)] + left);
  }
  return reduced;
}

}  // namespace

std::int64_t ScheduleCosts::Ending::step() const {
  return std::max(copies, gathers > 0 ? std::max(optimizer + last_gather, first_optimizer + gathers) : optimizer);
}

namespace {

// A pass with collectives of the state between its layers. They take turns with what is computed, but not with copies:
// where those take the pass's time, of the computation the layers alone are known.
std::int64_t with_collectives(const ScheduleCosts::Chunk& chunk, std::int64_t pass, std::int64_t layer,
                              std::int64_t serial) {
  const bool copies_rule = chunk.store > 0 && pass <= chunk.fetch_inner;
  const std::int64_t computed = copies_rule ? chunk.layers * layer : pass;
  return std::max(computed + serial, pass);
}

}  // namespace

ScheduleCosts joined(ScheduleCosts passes, const ScheduleCosts& state) {
  for (std::size_t i = 0; i < passes.chunks.size(); ++i) {
    ScheduleCosts::Chunk& chunk = passes.chunks[i];
    chunk.forward = with_collectives(chunk, chunk.forward_alone, chunk.forward_layer, state.chunks[i].forward);
    chunk.backward = with_collectives(chunk, chunk.backward_alone, chunk.backward_layer, state.chunks[i].backward);
    chunk.forward_bus += state.chunks[i].forward_bus;
    chunk.backward_bus += state.chunks[i].backward_bus;
    chunk.bus += state.chunks[i].bus;
    hold_to_bus(chunk, passes.pairs);
    chunk.forward = std::max(chunk.forward, state.chunks[i].forward_data);
    chunk.backward = std::max(chunk.backward, state.chunks[i].backward_data);
    chunk.gathered = state.chunks[i].gathered;
    chunk.reduce = state.chunks[i].reduce;
    chunk.reduce_layer = state.chunks[i].reduce_layer;
    chunk.reduce_layers = state.chunks[i].reduce_layers;
    chunk.reduce_left = state.chunks[i].reduce_left;
    chunk.again_first = state.chunks[i].again_first;
    chunk.gather_layer = state.chunks[i].gather_layer;
  }
  passes.gathered_ahead = state.gathered_ahead;
  passes.reduces_beside = state.reduces_beside;
  passes.endings = state.endings;
  passes.norm_reduce = state.norm_reduce;
  return passes;
}

void hold_to_bus(ScheduleCosts::Chunk& chunk, bool pairs) {
  chunk.forward_alone = chunk.forward;
  chunk.backward_alone = chunk.backward;
  chunk.forward_through = std::max({chunk.forward_through, chunk.forward, chunk.forward_bus});
  chunk.backward_through = std::max({chunk.backward_through, chunk.backward, chunk.backward_bus});
  if (pairs) return;
  chunk.forward = std::max(chunk.forward, chunk.forward_bus);
  chunk.backward = std::max(chunk.backward, chunk.backward_bus);
}

namespace {

// What the bus of a stage's devices carries in one direction, whenever it does.
std::int64_t bus_of(const ScheduleCosts& o, std::size_t stage) {
  std::int64_t busy = o.endings[stage].bus;
  for (int v = 0; v < o.virtual_stages; ++v) busy += o.micro_batches * o.chunk_of(stage, v).bus;
  return busy;
}

}  // namespace

PassEnds pass_ends(const ScheduleCosts& schedule_costs) { return Bounder(schedule_costs).ends(); }

std::int64_t lower_bound_ps(const ScheduleCosts& o, const PassEnds& ends) {
  std::int64_t normed = 0, whole = 0, step = 0, busy = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(o.pipeline); ++s) {
    const ScheduleCosts::Ending& ending = o.endings[s];
    busy = std::max(busy, bus_of(o, s));
    const std::int64_t reduced = std::max({ends.stages[s] + ending.reduce, ending.data, reduced_beside(o, ends, s)});
    normed = std::max(normed, reduced + ending.norm);
    whole = std::max(whole, reduced + ending.norm + o.norm_reduce + ending.step());
    step = std::max(step, ending.step());
  }
  return std::max(busy, o.norm_joins_stages ? normed + o.norm_reduce + step : whole);
}

std::int64_t lower_bound_ps(const ScheduleCosts& schedule_costs) {
  return lower_bound_ps(schedule_costs, pass_ends(schedule_costs));
}

}  // namespace trivium::simulator
