// Recomputation that differs from chunk to chunk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

Job job_of_four_stages() {
  Job job = tiny_job();
  job.plan.pipeline = 4;
  job.plan.recompute = Recompute::kNone;
  job.plan.stage_recompute = {Recompute::kFull, Recompute::kSelective, Recompute::kNone, Recompute::kFull};
  return job;
}

TEST(StageRecompute, EveryStageRecomputesWhatItIsTold) {
  const Program program = lowered(job_of_four_stages());
  std::map<int, std::map<OpKind, int>> again;  // stage -> ops of one backward
  for (const Role& role : program.roles) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(role.chunks[0].kind)];
    for (const Op& op : program.bodies[static_cast<std::size_t>(kind.backward)].ops) {
      if (op.pass == Pass::kRecompute) ++again[role.stage][op.kind];
    }
  }
  EXPECT_EQ(again[0][OpKind::kMatmul], 4);  // the layer's matrices
  EXPECT_EQ(again[0][OpKind::kAttention], 1);
  EXPECT_EQ(again[1][OpKind::kMatmul], 0);
  EXPECT_EQ(again[1][OpKind::kAttention], 1);
  EXPECT_TRUE(again[2].empty());
  EXPECT_EQ(again[3][OpKind::kMatmul], 4);
  EXPECT_THAT(verify(program), ::testing::IsEmpty());
}

// A frame of a middle stage, T = 16 tokens in fp32: chunk input and output 32 wide each; kept of the layer 32 + 2 + 96
// + 4 heads x 16 probabilities + 32 + 32 + 32 + 2 + 128 + 128, without the probabilities when these are computed again.
TEST(StageRecompute, EveryStageKeepsWhatItDoesNotRecompute) {
  Job job = job_of_four_stages();
  const auto frame = [&](Recompute how) {
    job.plan.stage_recompute = {Recompute::kFull, how, how, Recompute::kFull};
    const Program program = lowered(job);
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(program.roles[1].chunks[0].kind)];
    return kind.bytes[static_cast<std::size_t>(Space::kFrame)];
  };
  constexpr std::int64_t kToken = 16 * 4;
  EXPECT_EQ(frame(Recompute::kFull), kToken * (32 + 32));
  EXPECT_EQ(frame(Recompute::kSelective), kToken * (32 + 32 + 484));
  EXPECT_EQ(frame(Recompute::kNone), kToken * (32 + 32 + 484 + 64));
}

TEST(StageRecompute, OneWordForAllIsTheSameAsAListOfIt) {
  Job job = job_of_four_stages();
  job.plan.stage_recompute = std::vector<Recompute>(4, Recompute::kFull);
  const Program listed = lowered(job);
  job.plan.stage_recompute.clear();
  job.plan.recompute = Recompute::kFull;
  const Program word = lowered(job);
  for (std::size_t stage = 0; stage < 4; ++stage) EXPECT_EQ(listed.roles[stage].bytes, word.roles[stage].bytes);
}

// The segments of a backward, and how many inputs of layers its frame has.
struct GroupsOfStage {
  std::vector<std::string> segments;
  int inputs = 0;
};

GroupsOfStage groups_of(int layers, int group) {
  Job job = tiny_job();
  job.model.layers = layers;
  job.plan.recompute = Recompute::kFull;
  job.plan.recompute_group = group;
  const Program program = lowered(job);
  EXPECT_THAT(verify(program), ::testing::IsEmpty());
  const ChunkTemplate& kind = program.kinds.front();
  GroupsOfStage found;
  for (const Segment& segment : program.bodies[static_cast<std::size_t>(kind.backward)].segments) {
    found.segments.push_back(segment.name);
  }
  for (const Buffer& buffer : kind.buffers) {
    const bool of_layer = buffer.name.starts_with("layer ") && buffer.name.ends_with(" input");
    const bool of_chunk = buffer.name == "chunk input";
    found.inputs += buffer.space == Space::kFrame && (of_layer || of_chunk) ? 1 : 0;
  }
  return found;
}

// One input is that of the head.
TEST(RecomputeGroup, KeepsOneInputOfEveryGroup) {
  for (const auto& [group, inputs] : {std::pair(1, 6), std::pair(2, 4), std::pair(3, 3), std::pair(5, 2)}) {
    EXPECT_EQ(groups_of(5, group).inputs, inputs) << group;
  }
}

TEST(RecomputeGroup, GoesForwardThroughAGroupBeforeItGoesBack) {
  EXPECT_THAT(groups_of(5, 3).segments,
              ::testing::ElementsAre("head", "layer 3 again", "layer 4 again", "layer 4", "layer 3", "layer 0 again",
                                     "layer 1 again", "layer 2 again", "layer 2", "layer 1", "layer 0", "embedding"));
  EXPECT_EQ(groups_of(5, 9).segments, groups_of(5, 5).segments);
}

// Parameters whose slot another layer of the group took are gathered once more, those that still lie there are not.
TEST(RecomputeGroup, GathersWhatLeftItsSlotAgain) {
  const auto gathers = [](int group, bool ahead) {
    Job job = tiny_job();
    job.model.layers = 6;
    job.plan.data = 2;
    job.plan.zero_stage = 3;
    job.plan.recompute = Recompute::kFull;
    job.plan.recompute_group = group;
    job.plan.overlap.parameter_gather = ahead;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), ::testing::IsEmpty());
    std::map<std::int32_t, int> by_micro_batch;
    for (const Task& task : program.roles.front().tasks) {
      if (task.kind == TaskKind::kGatherParameters) ++by_micro_batch[task.micro_batch];
    }
    return by_micro_batch.at(0);
  };
  const int alone = gathers(1, false);
  EXPECT_EQ(gathers(2, false), alone + 3);  // one slot: of two layers the first leaves it
  EXPECT_EQ(gathers(3, false), alone + 4);
  EXPECT_EQ(gathers(2, true), alone);  // two slots
  EXPECT_EQ(gathers(3, true), alone + 2);
}

TEST(StageRecompute, AListMustNameEveryChunk) {
  Job job = job_of_four_stages();
  job.plan.stage_recompute.pop_back();
  EXPECT_EQ(check(job).value().reason, "stage_recompute has 3 entries; pipeline x virtual_stages is 4");
}

}  // namespace
}  // namespace trivium::program
