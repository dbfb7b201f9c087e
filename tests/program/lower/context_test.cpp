// Sequences split over the ranks of a context group.
#include "program/ir/context.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Job context_job(int context, ContextMethod method) {
  Job job = tiny_job();
  job.plan.context = context;
  job.plan.context_method = method;
  job.plan.attention = Attention::kFlash;
  return job;
}

const Body& body_of(const Program& program, int body) { return program.bodies[static_cast<std::size_t>(body)]; }

/// Ops of layer 1 in a body.
std::vector<Op> of_kind(const Program& program, int body, OpKind kind) {
  std::vector<Op> found;
  for (const Op& op : body_of(program, body).ops) {
    if (op.layer == 1 && op.kind == kind) found.push_back(op);
  }
  return found;
}

std::vector<std::int64_t> positions(ContextMethod method, std::int64_t sequence, int rank, int ranks) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < sequence / ranks; ++i) all.push_back(context_position(method, i, sequence, rank, ranks));
  return all;
}

TEST(ContextPosition, OfTheRingIsAnEarlyAndALateChunk) {
  // 12 tokens, 3 ranks: six chunks of two; rank 1 holds chunks 1 and 4.
  EXPECT_EQ(positions(ContextMethod::kRing, 12, 1, 3), (std::vector<std::int64_t>{2, 3, 8, 9}));
  EXPECT_EQ(positions(ContextMethod::kAllToAll, 12, 1, 3), (std::vector<std::int64_t>{4, 5, 6, 7}));
}

TEST(ContextPosition, EveryTokenHasOneRank) {
  for (const auto method : {ContextMethod::kRing, ContextMethod::kAllToAll}) {
    for (const int ranks : {1, 2, 3, 4, 6}) {
      std::set<std::int64_t> seen;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const auto position : positions(method, 48, rank, ranks)) seen.insert(position);
      }
      EXPECT_EQ(seen.size(), 48u) << ranks;
      EXPECT_EQ(*seen.rbegin(), 47);
    }
  }
}

// Chunks of t tokens. Step 0: two triangles t (t + 1) / 2 and one full square; every later step two full squares,
// whichever keys have come by. So no rank waits for another in any step.
TEST(ContextPosition, CausalWorkOfARingStepIsTheSameForAllRanks) {
  constexpr std::int64_t kSequence = 48;
  for (const int ranks : {2, 3, 4, 6}) {
    const std::int64_t t = kSequence / (2 * ranks);
    for (int step = 0; step < ranks; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t pairs = 0;
        const auto keys = positions(ContextMethod::kRing, kSequence, ring_source(rank, step, ranks), ranks);
        for (const auto q : positions(ContextMethod::kRing, kSequence, rank, ranks)) {
          pairs += std::count_if(keys.begin(), keys.end(), [&](std::int64_t k) { return k <= q; });
        }
        EXPECT_EQ(pairs, step == 0 ? t * (t + 1) + t * t : 2 * t * t) << rank << " step " << step;
      }
    }
  }
}

TEST(Context, RingBlocksTogetherDoTheWorkOfFlashAttentionOnTheOwnTokens) {
  const Program whole = lowered(context_job(1, ContextMethod::kRing));
  for (const auto& [kind, block] : {std::pair{OpKind::kAttention, OpKind::kAttentionBlock},
                                    std::pair{OpKind::kAttentionBackward, OpKind::kAttentionBlockBackward}}) {
    const bool forward = kind == OpKind::kAttention;
    const auto flops = [&](const Program& program, OpKind which) {
      double sum = 0;
      const int body = forward ? program.kinds[0].forward : program.kinds[0].backward;
      for (const Op& op : of_kind(program, body, which)) sum += op.flops;
      return sum;
    };
    const Program ring = lowered(context_job(4, ContextMethod::kRing));
    EXPECT_DOUBLE_EQ(flops(ring, block), flops(whole, kind) / 4);
  }
}

// T = 16/4 tokens, keys and values of 2 · 4 heads · 8 = 64 wide, fp32: 4 · 64 · 4 = 1024 B a shift. Forward passes keys
// on 3 times; backward passes them on 3 times and their gradients 4 times, the last time home.
TEST(Context, RingShiftsByHand) {
  const Program program = lowered(context_job(4, ContextMethod::kRing));
  const ChunkTemplate& kind = program.kinds[0];
  const auto forward = of_kind(program, kind.forward, OpKind::kRingShift);
  EXPECT_EQ(forward.size(), 3u);
  EXPECT_EQ(of_kind(program, kind.backward, OpKind::kRingShift).size(), 7u);
  for (const Op& op : forward) {
    EXPECT_EQ(op.bytes, 1024);
    EXPECT_EQ(op.group, Group::kContext);
    EXPECT_EQ(op.lane, Lane::kContext);
  }
}

TEST(Context, TheNextKeysTravelBesideTheBlockBeforeThem) {
  const Program program = lowered(context_job(4, ContextMethod::kRing));
  const auto& ops = body_of(program, program.kinds[0].forward).ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kAttentionBlock || ops[i].k + 1 == program.mesh.context()) continue;
    // The shift stands before the block, and the block does not wait for it.
    EXPECT_EQ(ops[i - 1].kind, OpKind::kRingShift);
    for (const int before : ops[i].after) EXPECT_NE(before, static_cast<int>(i) - 1);
  }
}

// Grouped keys, 2 key heads of 8 and 4 query heads over 4 ranks: a rank has one query head and shares a key head.
// 16 tokens x (1 + 2) · 8 · 4 B = 1536 B of q, k, v; 16 x 8 · 4 = 512 B of output.
TEST(Context, AllToAllMovesAPartOfTheHeadsOfAllTokens) {
  Job job = context_job(4, ContextMethod::kAllToAll);
  job.model = tiny_llama();
  const Program program = lowered(job);
  const ChunkTemplate& kind = program.kinds[0];
  const auto forward = of_kind(program, kind.forward, OpKind::kAllToAll);
  const auto backward = of_kind(program, kind.backward, OpKind::kAllToAll);
  ASSERT_EQ(forward.size(), 2u);
  ASSERT_EQ(backward.size(), 2u);
  EXPECT_EQ(forward[0].bytes, 1536);
  EXPECT_EQ(forward[1].bytes, 512);
  EXPECT_EQ(backward[0].bytes, 512);
  EXPECT_EQ(backward[1].bytes, 1536);
  const auto attention = of_kind(program, kind.forward, OpKind::kAttention);
  ASSERT_EQ(attention.size(), 1u);
  EXPECT_EQ(attention[0].m, 16);
  EXPECT_EQ(attention[0].heads, 1);
  EXPECT_EQ(attention[0].kv_heads, 1);
}

// Gradients of replicas and context ranks are summed together: the group has data x context members.
TEST(Context, GradientsAreReducedWithTheReplicas) {
  Job job = context_job(2, ContextMethod::kRing);
  job.plan.data = 2;
  job.plan.zero_stage = 1;
  const Program program = lowered(job);
  EXPECT_EQ(program.mesh.group_size(Group::kData), 4);
  const Bucket& bucket = program.kinds[0].buckets[0];
  EXPECT_EQ(bucket.shard * 4, bucket.elements);
  int reductions = 0;
  for_each_op(program, [&](const Role&, const Task&, const Op& op) {
    reductions += op.kind == OpKind::kReduceScatter && op.group == Group::kData ? 1 : 0;
  });
  EXPECT_EQ(reductions, static_cast<int>(program.kinds[0].buckets.size()));
}

TEST(Context, ActivationsOfARingShrinkWithTheTokens) {
  const auto frame = [](int context) {
    return lowered(context_job(context, ContextMethod::kRing)).kinds[0].bytes[static_cast<std::size_t>(Space::kFrame)];
  };
  EXPECT_LT(static_cast<double>(frame(4)), 0.27 * static_cast<double>(frame(1)));  // padding to 64 B is the rest
}

TEST(Context, EverySplitPassesTheVerifier) {
  for (const auto method : {ContextMethod::kRing, ContextMethod::kAllToAll}) {
    for (const auto recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      Job job = context_job(2, method);
      job.model = tiny_llama();
      job.plan.tensor = 2, job.plan.pipeline = 2, job.plan.data = 2;
      job.plan.sequence_parallel = true;
      job.plan.overlap.tensor = true;
      job.plan.recompute = recompute;
      EXPECT_THAT(verify(lowered(job)), IsEmpty());
    }
  }
}

TEST(VerifyMutation, KeysThatWereShiftedOnceLess) {
  Program program = lowered(context_job(4, ContextMethod::kRing));
  Body& body = program.bodies[static_cast<std::size_t>(program.kinds[0].forward)];
  for (Op& op : body.ops) {
    if (op.kind == OpKind::kAttentionBlock && op.k == 2) op.k = 1;
  }
  EXPECT_THAT(verify(program), ::testing::Contains(HasSubstr("reads keys that were shifted 2 times, not 1")));
}

TEST(VerifyMutation, GradientsOfKeysThatNeverComeHome) {
  Program program = lowered(context_job(2, ContextMethod::kRing));
  Body& body = program.bodies[static_cast<std::size_t>(program.kinds[0].backward)];
  for (std::size_t i = 0; i < body.ops.size(); ++i) {
    if (body.ops[i].kind == OpKind::kJoinKv) body.ops[i].in[0] = body.ops[i - 1].in[0];  // what the last shift took
  }
  EXPECT_THAT(verify(program), ::testing::Contains(HasSubstr("takes home gradients that were shifted 1 times, not 2")));
}

TEST(Context, IsRefusedWhereItDoesNotDivide) {
  const auto reason = [](const Job& job) {
    const auto no = check(job);
    return !no ? "" : no->rule + ": " + no->reason;
  };
  Job job = context_job(3, ContextMethod::kRing);
  EXPECT_EQ(
      reason(job),
      "context-divides-sequence: the ring gives every rank two chunks: 2 x context 3 does not divide the sequence "
      "of 16 tokens");
  job.plan.context_method = ContextMethod::kAllToAll;
  EXPECT_EQ(reason(job), "context-divides-sequence: context 3 does not divide the sequence of 16 tokens");
  job.training.sequence = 15;
  EXPECT_EQ(reason(job), "context-divides-heads: all_to_all splits heads: context 3 does not divide 4 heads");
  job = context_job(2, ContextMethod::kRing);
  job.plan.attention = Attention::kUnfused;
  EXPECT_EQ(reason(job),
            "ring-needs-flash: ring attention never holds the scores of a whole row: use attention flash, or "
            "context_method all_to_all");
  job = context_job(2, ContextMethod::kAllToAll);
  job.model.heads = 12, job.model.kv_heads = 3;
  EXPECT_EQ(reason(job),
            "context-divides-kv_heads: 3 kv_heads can be neither split over nor shared by context 2 ranks");
}

}  // namespace
}  // namespace trivium::program
