#include "simulator/analytic/outline.h"

#include <algorithm>

namespace trivium::simulator {
namespace {

using program::Schedule;
using Times = std::vector<std::int64_t>;

class Bounder {
 public:
  explicit Bounder(const Outline& outline) : o_(outline), head_(stages()), tail_(stages()) {
    for (std::size_t s = 1; s < stages(); ++s) {
      const Outline::Chunk &before = o_.chunks[s - 1], &here = o_.chunks[s];
      head_[s] = head_[s - 1] + before.forward + before.send_forward;
      tail_[s] = tail_[s - 1] + here.send_backward + before.backward;
    }
  }

  std::int64_t iteration() const {
    // end[j]: when stage j's last backward ends at the earliest. A stage ends its passes with the first chunk's
    // backward of the last micro-batch, which then runs down to stage 0.
    // The second half of a split backward keeps the stage busy, but no other waits for it.
    Times end(stages()), sent(stages());
    for (std::size_t s = stages(); s-- > 0;) {
      sent[s] = head_[s] + passes(s);
      if (s + 1 < stages()) sent[s] = std::max(sent[s], sent[s + 1] + tail_[s + 1] - tail_[s]);
      const std::int64_t weights = weights_of(s);
      end[s] = std::max(head_[s] + passes(s) + o_.micro_batches * weights, sent[s] + weights);
    }
    std::int64_t normed = 0, whole = 0, step = 0;
    for (std::size_t s = 0; s < stages(); ++s) {
      const Outline::Ending& ending = o_.endings[s];
      const std::int64_t reduced = std::max(end[s] + ending.reduce, ending.data);
      normed = std::max(normed, reduced + ending.norm);
      whole = std::max(whole, reduced + ending.norm + o_.norm_reduce + ending.step());
      step = std::max(step, ending.step());
    }
    return o_.norm_joins_stages ? normed + o_.norm_reduce + step : whole;
  }

 private:
  std::size_t stages() const { return static_cast<std::size_t>(o_.pipeline); }

  std::int64_t weights_of(std::size_t s) const {
    std::int64_t weights = 0;
    for (std::size_t position = s; position < o_.chunks.size(); position += stages()) {
      weights += o_.chunks[position].weights;
    }
    return weights;
  }

  // From the start of stage s's first forward to the end of its last backward, second halves left out.
  std::int64_t passes(std::size_t s) const {
    std::int64_t pair = 0;
    for (std::size_t position = s; position < o_.chunks.size(); position += stages()) {
      pair += o_.chunks[position].forward + o_.chunks[position].backward;
    }
    std::int64_t longest = o_.micro_batches * pair;
    if (o_.schedule == Schedule::k1f1b) longest = std::max(longest, full_pipe(s));
    if (o_.schedule == Schedule::kSequential) longest = std::max(longest, o_.micro_batches * round_trip(s));
    return longest;
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

  // Forward k + (p-s) comes behind backward k: whole round trips q, then what is left of the last round.
  std::int64_t full_pipe(std::size_t s) const {
    const auto depth = static_cast<std::int64_t>(stages() - s);
    const std::int64_t trips = (o_.micro_batches - 1) / depth, left = (o_.micro_batches - 1) % depth;
    return (trips + 1) * round_trip(s) + left * o_.chunks[s].backward;
  }

  const Outline& o_;
  Times head_;  // by stage: when its first forward starts at the earliest
  Times tail_;  // by stage: from the end of its last backward to the end of stage 0's
};

}  // namespace

std::int64_t Outline::Ending::step() const {
  return gathers > 0 ? std::max(optimizer + last_gather, first_optimizer + gathers) : optimizer;
}

std::int64_t lower_bound_ps(const Outline& outline) { return Bounder(outline).iteration(); }

}  // namespace trivium::simulator
