// Bubbles of the schedules against those that their authors published. Prints the tables of docs/journal/accuracy.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "program/schedules/slots.h"
#include "simulator/analytic/schedule_costs.h"

namespace trivium::simulator {
namespace {

using program::Schedule;

/// A pipeline whose stages are alike: seconds of a stage's forward, of the halves of its backward, of a transfer.
struct Shape {
  const char* model;
  int pipeline, micro_batches;
  int virtual_stages;  ///< of the interleaved schedule
  double forward, backward, weights, transfer;
};

std::int64_t ps(double ms) { return std::llround(ms * 1e9); }

/// Share of the longest stage's time in which it does not compute: (cost - m (f + b + w)) / cost. `less` (ms) of it are
/// left out.
double bubble(const Shape& shape, Schedule schedule, double less = 0) {
  const program::ScheduleTraits& traits = program::traits_of(schedule);
  ScheduleCosts costs;
  costs.schedule = schedule;
  costs.pipeline = shape.pipeline;
  costs.micro_batches = shape.micro_batches;
  costs.virtual_stages = traits.chunks > 0 ? traits.chunks : traits.virtual_stages ? shape.virtual_stages : 1;
  costs.chunks.resize(static_cast<std::size_t>(costs.pipeline * costs.virtual_stages));
  for (std::size_t i = 0; i < costs.chunks.size(); ++i) {
    ScheduleCosts::Chunk& chunk = costs.chunks[i];
    const int position = static_cast<int>(i), v = costs.virtual_stages;
    chunk.forward = ps(shape.forward / v);
    chunk.weights = traits.splits_backward ? ps(shape.weights / v) : 0;
    chunk.backward = ps((shape.backward + shape.weights) / v) - chunk.weights;
    const bool stays_here = i + 1 < costs.chunks.size() && traits.stays(position + 1, costs.pipeline);
    if (!stays_here) chunk.send_forward = ps(shape.transfer);
    if (!traits.stays(position, costs.pipeline)) chunk.send_backward = ps(shape.transfer);
  }
  costs.endings.resize(static_cast<std::size_t>(costs.pipeline));
  const std::vector<std::int64_t> ends = recurrence_ends(costs).stages;
  const double longest = static_cast<double>(*std::max_element(ends.begin(), ends.end())) - less * 1e9;
  const double work = shape.micro_batches * (shape.forward + shape.backward + shape.weights) * 1e9;
  return (longest - work) / longest;
}

struct Published {
  Shape shape;  ///< table 9 of the paper, in ms
  double one_for_one, interleaved, zb_h1;
};

// Qi et al. 2023, arXiv 2401.10241, tables 3, 5 and 9. Every layer is a chunk of the interleaved schedule; the first
// stage and the last have a layer fewer.
constexpr std::array kPublished{
    Published{{"1.5B", 8, 24, 3, 18.522, 18.086, 9.337, 0.601}, 0.2431, 0.1055, 0.1585},
    Published{{"1.5B", 8, 32, 3, 18.513, 18.086, 9.331, 0.626}, 0.1985, 0.0818, 0.1242},
    Published{{"1.5B", 8, 64, 3, 18.546, 18.097, 9.321, 0.762}, 0.1240, 0.0443, 0.0674},
    Published{{"6.2B", 8, 24, 4, 29.718, 29.444, 19.927, 0.527}, 0.2347, 0.0808, 0.1323},
    Published{{"6.2B", 8, 32, 4, 29.802, 29.428, 19.530, 0.577}, 0.1898, 0.0628, 0.1045},
    Published{{"6.2B", 8, 64, 4, 29.935, 29.621, 19.388, 0.535}, 0.1091, 0.0320, 0.0554},
    Published{{"14.6B", 16, 48, 3, 11.347, 11.248, 8.132, 0.377}, 0.2552, 0.1104, 0.1397},
    Published{{"14.6B", 16, 64, 3, 11.307, 11.254, 8.101, 0.379}, 0.2082, 0.0852, 0.1088},
    Published{{"14.6B", 16, 128, 3, 11.325, 11.308, 8.109, 0.378}, 0.1251, 0.0445, 0.0576},
    Published{{"28.3B", 32, 96, 2, 10.419, 10.207, 7.715, 0.408}, 0.2646, 0.1493, 0.1421},
    Published{{"28.3B", 32, 128, 2, 10.408, 10.204, 7.703, 0.408}, 0.2168, 0.1164, 0.1106},
    Published{{"28.3B", 32, 256, 2, 10.402, 10.248, 7.698, 0.460}, 0.1352, 0.0624, 0.0594},
};

TEST(PublishedBubbles, ThoseOfZeroBubblesAuthorsComeOut) {
  for (const Published& row : kPublished) {
    const Shape& s = row.shape;
    const double one_for_one = bubble(s, Schedule::k1f1b), zb_h1 = bubble(s, Schedule::kZeroBubble),
                 interleaved = bubble(s, Schedule::kInterleaved);
    // Their digits, from times that are rounded to a thousandth of a millisecond. Interleaved, the first micro-batch's
    // way through all chunks and the last one's way back are 2 (vp - 1) transfers; theirs have p fewer.
    EXPECT_NEAR(one_for_one, row.one_for_one, 1e-4) << s.model << " " << s.micro_batches;
    EXPECT_NEAR(zb_h1, row.zb_h1, 1e-4) << s.model << " " << s.micro_batches;
    EXPECT_NEAR(bubble(s, Schedule::kInterleaved, s.pipeline * s.transfer), row.interleaved, 1e-4) << s.model;
    const double v = bubble(s, Schedule::kZbv), dual = bubble(s, Schedule::kDualPipeV);
    EXPECT_LT(v, 0.57 * zb_h1);  // at equal memory
    EXPECT_GT(v, 0.4 * zb_h1);
    EXPECT_LT(v, dual);
    EXPECT_LT(dual, 0.65 * zb_h1);
    printf("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s.model, s.pipeline,
           s.micro_batches, 100 * one_for_one, 100 * row.one_for_one, 100 * interleaved, 100 * row.interleaved,
           100 * zb_h1, 100 * row.zb_h1, 100 * v, 100 * dual);
  }
}

// The same paper's table 8 has ZB-V, but not the times. A stage's transfer and second half, in forwards, are those that
// give the table's 1F1B and ZB-H1, with a first half as long as a forward.
struct PublishedV {
  Shape shape;
  double one_for_one, interleaved, zb_h1, zb_v;
};

constexpr std::array kPublishedV{
    PublishedV{{"6.2B", 16, 48, 2, 1, 1, .672, .0558}, .2668, .1499, .1536, .0697},
    PublishedV{{"6.2B", 16, 64, 2, 1, 1, .673, .0562}, .2206, .1169, .1198, .0533},
    PublishedV{{"6.2B", 16, 128, 2, 1, 1, .674, .0565}, .1390, .0621, .0637, .0274},
    PublishedV{{"14.6B", 24, 72, 2, 1, 1, .765, .0549}, .2699, .1519, .1439, .0638},
    PublishedV{{"14.6B", 24, 96, 2, 1, 1, .764, .0550}, .2229, .1184, .1121, .0483},
    PublishedV{{"14.6B", 24, 192, 2, 1, 1, .764, .0559}, .1403, .0630, .0595, .0250},
    PublishedV{{"28.3B", 32, 96, 2, 1, 1, .759, .0457}, .2676, .1509, .1429, .0593},
    PublishedV{{"28.3B", 32, 128, 2, 1, 1, .761, .0465}, .2204, .1177, .1111, .0451},
    PublishedV{{"28.3B", 32, 256, 2, 1, 1, .753, .0464}, .1362, .0626, .0593, .0236},
};

// Theirs is an order that a search found for these times, which moves second halves into what is left idle; this one is
// PyTorch's, the same for all times.
TEST(PublishedBubbles, AFixedOrderInAVIdlesLittleMoreThanASearchedOne) {
  for (const PublishedV& row : kPublishedV) {
    const Shape& s = row.shape;
    EXPECT_NEAR(bubble(s, Schedule::k1f1b), row.one_for_one, 2e-4) << s.model << " " << s.micro_batches;
    EXPECT_NEAR(bubble(s, Schedule::kZeroBubble), row.zb_h1, 4e-4) << s.model << " " << s.micro_batches;
    const double v = bubble(s, Schedule::kZbv), dual = bubble(s, Schedule::kDualPipeV);
    EXPECT_GT(v, row.zb_v) << s.model << " " << s.micro_batches;
    EXPECT_LT(v, 1.34 * row.zb_v) << s.model << " " << s.micro_batches;
    printf("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", s.model, s.pipeline, s.micro_batches,
           100 * bubble(s, Schedule::kInterleaved), 100 * row.interleaved, 100 * row.zb_h1, 100 * v, 100 * row.zb_v,
           100 * dual);
  }
}

/// Simulates a slot, or several as one, once what they need is there: results leave when all are done.
class Together {
 public:
  explicit Together(int pipeline) : pipeline_(pipeline), forward_(pass(pipeline)), backward_(pass(pipeline)) {}

  /// When the slots of stage `s` may begin; -1: something is missing.
  std::int64_t ready(int s, std::span<const program::Slot> slots) const {
    std::int64_t begin = 0;
    for (const program::Slot& slot : slots) {
      const int position = traits().position_of(s, slot.chunk, pipeline_);
      const int from = slot.forward ? position - 1 : position + 1;
      if (slot.weights || from < 0 || from == 2 * pipeline_) continue;
      const auto& ends = (slot.forward ? forward_ : backward_)[static_cast<std::size_t>(from)];
      if (static_cast<std::int64_t>(ends.size()) <= slot.micro_batch) return -1;
      begin = std::max(begin, ends[static_cast<std::size_t>(slot.micro_batch)]);
    }
    return begin;
  }

  void done(int s, std::span<const program::Slot> slots, std::int64_t end) {
    for (const program::Slot& slot : slots) {
      if (slot.weights) continue;
      const auto position = static_cast<std::size_t>(traits().position_of(s, slot.chunk, pipeline_));
      (slot.forward ? forward_ : backward_)[position].push_back(end);
    }
  }

 private:
  using Ends = std::vector<std::vector<std::int64_t>>;  // by chunk and micro-batch
  static Ends pass(int pipeline) { return Ends(static_cast<std::size_t>(2 * pipeline)); }
  static const program::ScheduleTraits& traits() { return program::traits_of(Schedule::kDualPipeV); }

  int pipeline_;
  Ends forward_, backward_;
};

// How many slots are one: a forward followed by the backward of the other chunk, in one half or both.
std::size_t together(std::span<const program::Slot> left) {
  if (left.size() < 2 || !left[0].forward || left[1].forward || left[1].chunk == left[0].chunk) return 1;
  return left.size() > 2 && left[2].weights && left[2].chunk == left[1].chunk ? 3 : 2;
}

// DualPipe's authors (github.com/deepseek-ai/DualPipe) have a forward and a backward F&B in one, whose results come
// when both are done, and idle (p - 1)(F&B + B - 3W): with all passes of 1, 2 (p - 1).
TEST(PublishedBubbles, DualPipeVOfForwardsBesideBackwardsIdlesAsItsAuthorsSay) {
  for (const int p : {2, 4, 8}) {
    const std::int64_t micro_batches = 4 * p;
    std::vector<std::vector<program::Slot>> slots;
    for (int s = 0; s < p; ++s) slots.push_back(schedule_of(Schedule::kDualPipeV, s, p, 2, micro_batches));
    std::vector<std::span<const program::Slot>> left(slots.begin(), slots.end());
    std::vector<std::int64_t> free(static_cast<std::size_t>(p), 0);
    Together simulated(p);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < p; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        while (!left[stage].empty()) {
          const auto next = left[stage].first(together(left[stage]));
          const std::int64_t ready = simulated.ready(s, next);
          if (ready < 0) break;
          free[stage] = std::max(free[stage], ready) + static_cast<std::int64_t>(next.size());
          simulated.done(s, next, free[stage]);
          left[stage] = left[stage].subspan(next.size());
          moved = true;
        }
      }
    }
    for (const auto& slots_left : left) EXPECT_TRUE(slots_left.empty());
    EXPECT_EQ(*std::max_element(free.begin(), free.end()), 6 * micro_batches + 2 * (p - 1)) << p;
  }
}

}  // namespace
}  // namespace trivium::simulator
