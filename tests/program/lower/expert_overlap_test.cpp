// Exchanges with the experts during a pass of another micro-batch: pairs of passes, their turns, their memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "program/ir/text.h"
#include "program/ir/turns.h"
#include "program/schedules/slots.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Job pair_job(int pipeline, int virtual_stages) {
  Job job = tiny_job();
  job.model = tiny_llama(4);
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .shared_hidden = 32, .dense_layers = 1};
  job.model.experts->dense_hidden = 96;
  job.training.global_batch = 16;
  job.plan.data = job.plan.expert = 2;
  job.plan.pipeline = pipeline;
  job.plan.virtual_stages = virtual_stages;
  job.plan.schedule = usual_schedule(virtual_stages);
  job.plan.overlap.expert = true;
  return job;
}

std::string slots_of(const StagePlace& place, std::int64_t micro_batches) {
  std::string text;
  for (const Slot& slot : schedule_of(Schedule::kInterleaved, place.stage, place.pipeline, place.virtual_stages,
                                      micro_batches, place.pairs)) {
    text += (slot.forward ? "F" : "B") + std::to_string(slot.micro_batch) + "." + std::to_string(slot.chunk) + " ";
  }
  return text;
}

// The last stage has one forward more before its first backward, so that each overlaps another micro-batch.
TEST(ExpertOverlap, OneForwardMoreGoesAhead) {
  EXPECT_EQ(slots_of({1, 2, 2, false}, 2), "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0 ");
  EXPECT_EQ(slots_of({1, 2, 2, true}, 2), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0 ");
  EXPECT_EQ(order_of(Schedule::k1f1b, {0, 1, 1, true}, 8).in_flight(), 2);
  EXPECT_EQ(order_of(Schedule::k1f1b, {0, 1, 1, true}, 1).in_flight(), 1);
}

// Stage 1 of 2 with 4 micro-batches, as dualpipev.py of deepseek-ai/DualPipe runs rank 1 of 2: two rounds of F0 F1,
// then m - 2p + s + 1 = 2 rounds of pairs, the first pair of the last stage apart, then one B1 B0 whole and the rest
// split. f: a forward that takes turns with the backward after it; b: a backward with its second half in it.
TEST(ExpertOverlap, PairsInAVAreThoseOfDualPipeV) {
  const auto text_of = [](const StagePlace& place, std::int64_t micro_batches) {
    std::string text;
    for (const Slot& slot : schedule_of(Schedule::kDualPipeV, place.stage, place.pipeline, place.virtual_stages,
                                        micro_batches, place.pairs)) {
      const char* kind = slot.forward ? (slot.pair ? "f" : "F") : slot.weights ? "W" : slot.whole ? "b" : "B";
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", kind, slot.chunk);
    }
    return text;
  };
  EXPECT_EQ(text_of({1, 2, 2, true}, 4), "F0 F1 F0 F1 F0 b1 f1 b0 f0 b1 f1 b0 B1 W1 B0 W0 B1 B0 W1 W0");
  EXPECT_EQ(text_of({0, 2, 2, true}, 4), "F0 F0 F0 F1 B1 W1 F1 f0 b1 f1 b0 B1 W1 f1 b0 B1 W1 B0 W0 B0 W0");
}

TEST(ExpertOverlap, ProgramsInAVAreSound) {
  for (const int pipeline : {2, 3, 4}) {
    for (const std::int64_t batch : {2, 4, 16, 34}) {
      Job job = pair_job(pipeline, 2);
      job.model.layers = 2 * pipeline;
      job.plan.schedule = Schedule::kDualPipeV;
      job.training.global_batch = batch;
      const Program program = lowered(job);
      EXPECT_THAT(verify(program), IsEmpty()) << pipeline << " " << batch;
      int pairs = 0;
      for (const Role& role : program.roles) {
        for (const Task& task : role.tasks) {
          pairs += task.beside >= 0 ? 1 : 0;
          EXPECT_EQ(task.beside >= 0 && !is_whole_backward(program, task), false);
        }
      }
      // A stage has 2 (m - 2p + s + 1) pairs of its main rounds and p - s - 1 of the next, the last stage one less.
      const std::int64_t m = batch / 2, p = pipeline;
      std::int64_t expected = -1;
      for (std::int64_t s = 0; s < p; ++s) expected += 2 * (m - 2 * p + s + 1) + p - s - 1;
      if (m >= 2 * p) {
        EXPECT_EQ(pairs, expected) << pipeline << " " << batch;
      }
    }
  }
}

TEST(ExpertOverlap, PassesRunInPairsBehindTheWarmUp) {
  const Program program = lowered(pair_job(1, 1));
  std::string text;
  for (const Task& task : program.roles[0].tasks) {
    if (task.kind == TaskKind::kForward) text += "F" + std::to_string(task.micro_batch) + " ";
    if (task.kind != TaskKind::kBackward) continue;
    text += "B" + std::to_string(task.micro_batch);
    if (task.beside >= 0) {
      const Task& forward = program.roles[0].tasks[static_cast<std::size_t>(task.beside)];
      text += "|F" + std::to_string(forward.micro_batch);
    }
    text += " ";
  }
  EXPECT_EQ(text, "F0 F1 B0|F1 F2 B1|F2 F3 B2|F3 F4 B3|F4 F5 B4|F5 F6 B5|F6 F7 B6|F7 B7 ");
}

// The first layer is dense; the others are cut where they wait for an exchange.
TEST(ExpertOverlap, LayersAreCutAtTheExchanges) {
  Job job = pair_job(1, 1);
  job.model.layers = 2;
  const Program program = lowered(job);
  const ChunkTemplate& kind = program.kinds.front();
  const Body& forward = program.bodies[static_cast<std::size_t>(kind.forward)];
  std::vector<std::string> names;
  std::string turns;
  for (const Segment& segment : forward.segments) names.push_back(segment.name), turns += segment.turn ? '|' : '.';
  EXPECT_THAT(names,
              ElementsAre("embedding", "layer 0", "layer 1", "layer 1 to the experts", "layer 1 beside the exchange",
                          "layer 1 experts", "layer 1 from the experts", "layer 1 behind the experts", "head"));
  EXPECT_EQ(turns, ".....|.|.");
  EXPECT_EQ(forward.parts(), 4);
  EXPECT_EQ(forward.end_of(2), 7);
  for (const int id : {kind.forward, kind.backward}) {
    const Body& body = program.bodies[static_cast<std::size_t>(id)];
    int exchanges = 0;
    for (const Segment& segment : body.segments) {
      for (int i = segment.begin; i < segment.end; ++i) {
        if (body.ops[static_cast<std::size_t>(i)].lane != Lane::kExpert) continue;
        EXPECT_EQ(segment.end - segment.begin, 1) << segment.name;  // apart, or what overlaps it would be counted
        ++exchanges;
      }
    }
    EXPECT_EQ(exchanges, 2);
  }
}

TEST(ExpertOverlap, TurnsAlternateFromTheBackward) {
  const std::vector<char> backward{0, 1, 0, 1}, forward{0, 0, 1};
  std::string text;
  take_turns(backward, forward,
             [&](bool is_forward, int segment) { text += (is_forward ? 'f' : 'b') + std::to_string(segment) + " "; });
  EXPECT_EQ(text, "b0 f0 f1 b1 b2 f2 b3 ");
}

// Both passes of a pair are in progress at once, so neither may write where the other keeps its temporaries.
TEST(ExpertOverlap, EachPassOfAPairHasAWorkspaceOfItsOwn) {
  const Program program = lowered(pair_job(2, 2)), alone = [] {
    Job job = pair_job(2, 2);
    job.plan.overlap.expert = false;
    return lowered(job);
  }();
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    const auto bytes = [&](const Program& p, Space space) { return p.roles[r].bytes[static_cast<std::size_t>(space)]; };
    EXPECT_GT(bytes(program, Space::kForwardWorkspace), 0);
    EXPECT_EQ(bytes(alone, Space::kForwardWorkspace), 0);
  }
  EXPECT_THAT(verify(program), IsEmpty());
  EXPECT_EQ(lowered(pair_job(1, 1)).roles[0].chunks[0].frames, 2);  // one forward more under way
}

TEST(ExpertOverlap, ProgramsOfAllKindsVerify) {
  for (const auto& [pipeline, chunks] : {std::pair{1, 1}, {2, 2}, {4, 1}, {2, 1}}) {
    Job job = pair_job(pipeline, chunks);
    if (pipeline > 1 && chunks == 1) {
      EXPECT_TRUE(check(job));
      continue;
    }
    for (const bool tensor : {false, true}) {
      job.plan.tensor = tensor ? 2 : 1;
      job.plan.sequence_parallel = job.plan.overlap.tensor = tensor;
      job.plan.zero_stage = tensor ? 1 : 0;
      job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = tensor;
      EXPECT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan);
    }
  }
}

TEST(ExpertOverlap, IsRefusedByNameWhereItCannotBe) {
  struct PairRefusal {
    const char* rule;
    void (*change)(Plan&);
  };
  const PairRefusal refusals[] = {
      {"overlap-expert-needs-expert", [](Plan& plan) { plan.expert = 1; }},
      {"overlap-expert-needs-virtual-stages",
       [](Plan& plan) { plan.pipeline = 2, plan.virtual_stages = 1, plan.schedule = Schedule::k1f1b; }},
      {"overlap.expert-supported",
       [](Plan& plan) { plan.pipeline = 2, plan.virtual_stages = 1, plan.schedule = Schedule::kZeroBubble; }},
      {"overlap.expert-supported", [](Plan& plan) { plan.zero_stage = 2; }},
      {"overlap.expert-supported", [](Plan& plan) { plan.schedule = Schedule::kDualPipeV, plan.tensor = 2; }},
      {"overlap.expert-supported", [](Plan& plan) { plan.recompute = Recompute::kFull; }},
      {"overlap.expert-supported", [](Plan& plan) { plan.offload.activations = Storage::kHost; }},
  };
  for (const PairRefusal& refusal : refusals) {
    Job job = pair_job(2, 2);
    EXPECT_TRUE(!check(job));
    refusal.change(job.plan);
    const auto verdict = check(job);
    ASSERT_TRUE(verdict) << refusal.rule;
    EXPECT_EQ(verdict->rule, refusal.rule);
  }
}

/// Tasks of a stage without a pipeline: its first pair.
struct Pair {
  std::size_t forward = 0, backward = 0;
};
Pair first_pair(const Program& program) {
  const auto& tasks = program.roles[0].tasks;
  const auto at = std::find_if(tasks.begin(), tasks.end(), [](const Task& task) { return task.beside >= 0; });
  return {static_cast<std::size_t>(at->beside), static_cast<std::size_t>(at - tasks.begin())};
}

TEST(ExpertOverlapMutation, AForwardThatTakesTurnsWithItsOwnBackward) {
  Program program = lowered(pair_job(1, 1));
  auto& tasks = program.roles[0].tasks;
  const Pair pair = first_pair(program);
  tasks[pair.backward].beside = -1;
  const auto own = std::find_if(tasks.begin(), tasks.end(), [&](const Task& task) {
    return task.kind == TaskKind::kForward && task.micro_batch == tasks[pair.backward].micro_batch;
  });
  tasks[pair.backward].beside = static_cast<std::int32_t>(own - tasks.begin());
  EXPECT_THAT(verify(program), Contains(HasSubstr("takes turns with its own forward")));
}

TEST(ExpertOverlapMutation, OneWorkspaceForBoth) {
  Program program = lowered(pair_job(1, 1));
  const Pair pair = first_pair(program);
  for (Buffer& buffer : program.kinds[0].buffers) {
    if (buffer.space == Space::kForwardWorkspace) buffer.space = Space::kWorkspace;
  }
  auto& role = program.roles[0];  // in the order of the schedule, pairs segment by segment
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const auto segments = program.body_of(role.tasks[t]).segments.size();
    if (t == pair.backward) continue;
    if (t == pair.forward) {
      take_turns(
          turns_of(program.body_of(role.tasks[pair.backward])), turns_of(program.body_of(role.tasks[t])),
          [&](bool is_forward, std::int16_t segment) {
            role.order.push_back({static_cast<std::int32_t>(is_forward ? pair.forward : pair.backward), segment});
          });
      continue;
    }
    for (std::size_t s = 0; s < segments; ++s) {
      role.order.push_back({static_cast<std::int32_t>(t), static_cast<std::int16_t>(s)});
    }
  }
  EXPECT_THAT(verify(program), Contains(HasSubstr("begins in the workspace of task")));
}

TEST(ExpertOverlapMutation, ASegmentBeforeTheExchangeThatItWaitsFor) {
  Program program = lowered(pair_job(1, 1));
  auto& role = program.roles[0];
  for (std::size_t t = 0; t < role.tasks.size(); ++t) {
    const auto segments = program.body_of(role.tasks[t]).segments.size();
    for (std::size_t s = 0; s < segments; ++s) {
      role.order.push_back({static_cast<std::int32_t>(t), static_cast<std::int16_t>(s)});
    }
  }
  EXPECT_THAT(verify(program), IsEmpty());
  const auto& names = program.body_of(role.tasks[0]).segments;
  const auto exchange =
      std::find_if(names.begin(), names.end(),
                   [](const Segment& segment) { return segment.name.ends_with("from the experts"); }) -
      names.begin();
  std::swap(role.order[static_cast<std::size_t>(exchange)], role.order[static_cast<std::size_t>(exchange) + 1]);
  EXPECT_THAT(verify(program), Contains(HasSubstr("that it waits for")));
}

}  // namespace
}  // namespace trivium::program
