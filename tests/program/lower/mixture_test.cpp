// Mixture-of-experts layers: routing, capacity, experts spread over ranks.
#include <gmock/gmock.h>

#include <map>

#include "models/load.h"
#include "program/ir/expert_rows.h"
#include "program/lower/layout.h"
#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::IsEmpty;

/// Four experts in every second layer; LLaMA's other stack.
Job mixture_job(int expert, int data) {
  Job job = tiny_job();
  job.model = tiny_llama();
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 1.25};
  job.plan.data = data;
  job.plan.expert = expert;
  return job;
}

std::vector<Op> ops_of(const Program& program, int body, int layer) {
  std::vector<Op> found;
  for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
    if (op.layer == layer) found.push_back(op);
  }
  return found;
}

std::vector<Op> of_kind(const std::vector<Op>& ops, OpKind kind) {
  std::vector<Op> found;
  for (const Op& op : ops) {
    if (op.kind == kind) found.push_back(op);
  }
  return found;
}

/// Exchanges of as many rows as there are.
std::vector<Op> spilled_exchanges(const std::vector<Op>& ops) {
  std::vector<Op> found;
  for (const Op& op : of_kind(ops, OpKind::kAllToAll)) {
    if (op.group == Group::kContext && op.in[1] != kNoBuffer) found.push_back(op);
  }
  return found;
}

// 16 tokens, 2 choices each: 32 rows where all experts lie on one rank, an even 16 and 8 to each of 2 and 4; 1.3 times
// 8 is 10.4. To a rank with one expert a token goes once at most. 3 tensor ranks send 16 by 6, which two experts share.
TEST(DroplessRows, AreTheEvenShareTimesTheImbalanceAndNeverMoreThanThereAre) {
  models::Experts experts{.count = 4, .top_k = 2, .dropless = true};
  EXPECT_EQ(dropless_rows(experts, 16, 1, 1), 32);
  EXPECT_EQ(dropless_rows(experts, 16, 2, 1), 16);
  EXPECT_EQ(dropless_rows(experts, 16, 4, 1), 8);
  EXPECT_EQ(dropless_rows(experts, 16, 2, 3), 6);
  experts.imbalance = 1.3;
  EXPECT_EQ(dropless_rows(experts, 16, 1, 1), 32);
  EXPECT_EQ(dropless_rows(experts, 16, 4, 1), 11);
  experts.imbalance = 10;
  EXPECT_EQ(dropless_rows(experts, 16, 4, 1), 16);
}

// 16 tokens, 2 choices each, 4 experts: 8 each; times 1.25 is 10. Never more than the sample, never a fraction.
TEST(Capacity, IsTheEvenShareTimesTheFactor) {
  models::Experts experts{.count = 4, .top_k = 2, .every = 1, .capacity_factor = 1.25};
  EXPECT_EQ(expert_capacity(experts, 16), 10);
  EXPECT_EQ(expert_capacity(experts, 17), 11);  // 10.6
  experts.capacity_factor = 100;
  EXPECT_EQ(expert_capacity(experts, 16), 16);
}

TEST(Mixture, EverySecondLayerHasExperts) {
  const Program program = lowered(mixture_job(1, 1));
  for (int layer = 0; layer < 4; ++layer) {
    const bool mixture = layer % 2 == 1;
    EXPECT_EQ(of_kind(ops_of(program, program.kinds[0].forward, layer), OpKind::kRoute).size(), mixture ? 1u : 0u);
  }
}

// Two stages of three layers: the first has one mixture layer, the second two. They are not the same kind.
TEST(Mixture, StagesWithOtherLayersAreOtherKinds) {
  Job job = mixture_job(1, 1);
  job.model.layers = 9;
  job.plan.pipeline = 3;
  const Program program = lowered(job);
  std::vector<int> counts;
  for (const Role& role : program.roles) {
    int routers = 0;
    for (const Parameter& p : program.kinds[static_cast<std::size_t>(role.chunks[0].kind)].parameters) {
      routers += p.name.find("router") != std::string::npos ? 1 : 0;
    }
    counts.push_back(routers);
  }
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 1}));
}

// Chunks of two layers each of dense, dense, mixture and so on: the first and the fourth are alike, and so on.
TEST(Mixture, StagesWithTheSameKindsOfLayersShareATemplate) {
  Job job = mixture_job(1, 1);
  job.model.layers = 12;
  job.model.experts->every = 3;
  job.plan.pipeline = 6;
  job.model.tied_embeddings = false;
  std::vector<int> kinds;
  for (const Role& role : lowered(job).roles) kinds.push_back(role.chunks[0].kind);
  EXPECT_EQ(kinds, (std::vector<int>{0, 1, 2, 3, 1, 4}));  // the ends hold the embedding and the head
}

// 4 experts of 10 rows for 16 tokens, 32 wide, fp32: 4 · 10 · 32 · 4 = 5120 B there and back, forward and backward.
TEST(Mixture, RowsGoToTheirExpertsAndBack) {
  const Program program = lowered(mixture_job(2, 2));
  for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
    const auto exchanges = of_kind(ops_of(program, body, 1), OpKind::kAllToAll);
    ASSERT_EQ(exchanges.size(), 2u);
    for (const Op& op : exchanges) {
      EXPECT_EQ(op.group, Group::kExpert);
      EXPECT_EQ(op.bytes, 5120);
    }
  }
  EXPECT_THAT(of_kind(ops_of(lowered(mixture_job(1, 2)), 0, 1), OpKind::kAllToAll), IsEmpty());
}

// Two experts a rank, 2 · 10 rows each (its own and the other rank's): 2 · 2 · 20 · 192 · 32 FLOPs into the gated MLP.
TEST(Mixture, ProductsOfExpertsCountTheirCapacity) {
  const Program program = lowered(mixture_job(2, 2));
  const auto products = of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kExpertMatmul);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].m, 20);
  EXPECT_EQ(products[0].experts, 2);
  EXPECT_EQ(products[0].flops, 491520);
  EXPECT_EQ(products[1].flops, 245760);
}

// Two tensor ranks: each sends 5 of the 10 rows of an expert, 4 · 5 · 32 · 4 = 2560 B, and gathers the 5120 B of both
// for its experts; on the way back the sums of both are scattered.
TEST(Mixture, TensorRanksShareTheRows) {
  for (const bool sequence_parallel : {false, true}) {
    Job job = mixture_job(2, 2);
    job.plan.tensor = 2;
    job.plan.sequence_parallel = sequence_parallel;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), IsEmpty());
    for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
      const auto ops = ops_of(program, body, 1);
      for (const Op& op : of_kind(ops, OpKind::kAllToAll)) EXPECT_EQ(op.bytes, 2560);
      for (const OpKind kind : {OpKind::kAllGather, OpKind::kReduceScatter}) {
        const auto moved = of_kind(ops, kind);
        EXPECT_EQ(std::count_if(moved.begin(), moved.end(), [](const Op& op) { return op.bytes == 5120; }), 1);
      }
    }
    const auto products = of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kExpertMatmul);
    EXPECT_EQ(products[0].m, 20);
    EXPECT_EQ(products[0].parts, 4);
  }
}

// As above, but each of the two tensor ranks has an expert of its own, whole: 4 ranks share the experts, each sends its
// 4 · 5 rows, 2560 B, and computes the 4 · 5 rows of one expert at its full width of 2 · 96. No row is gathered.
TEST(Mixture, TensorRanksMayHoldWholeExperts) {
  for (const bool sequence_parallel : {false, true}) {
    Job job = mixture_job(4, 2);
    job.plan.tensor = 2, job.plan.expert_tensor = 1;
    job.plan.sequence_parallel = sequence_parallel;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_EQ(program.mesh.members(Group::kExpert, 1), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(program.mesh.members(Group::kExpertData, 1), (std::vector<int>{1}));
    for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
      const auto ops = ops_of(program, body, 1);
      EXPECT_EQ(of_kind(ops, OpKind::kAllToAll).size(), 2u);
      for (const Op& op : of_kind(ops, OpKind::kAllToAll)) EXPECT_EQ(op.bytes, 2560);
      for (const Op& op : of_kind(ops, OpKind::kAllGather)) EXPECT_LE(op.bytes, 2048);  // tokens, not rows
    }
    const auto products = of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kExpertMatmul);
    EXPECT_EQ(products[0].m, 20);
    EXPECT_EQ(products[0].n, 192);
    EXPECT_EQ(products[0].experts, 1);
  }
}

// Without capacity each tensor rank sends the rows of its 8 tokens: these are not gathered, in forward and backward;
// what is: their 4 logits each, once forward.
TEST(Mixture, TensorRanksWithWholeExpertsRouteTheirOwnTokens) {
  Job job = mixture_job(4, 2);
  job.model.experts->dropless = true;
  job.plan.tensor = 2, job.plan.expert_tensor = 1, job.plan.sequence_parallel = true;
  const Program program = lowered(job);
  EXPECT_THAT(verify(program), IsEmpty());
  std::vector<double> gathered;
  for (const Op& op : of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kAllGather)) {
    gathered.push_back(op.bytes);
  }
  EXPECT_EQ(gathered, (std::vector<double>{16 * 32 * 4, 16 * 4 * 4}));  // into attention; logits
  for (const Op& op : of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kDispatch)) EXPECT_EQ(op.m, 8);
}

// With room for 10 of 16 tokens three tensor ranks have 4, 3 and 3 rows of an expert: all hold 4. Two samples are dealt
// out together, 20 rows: 7 each.
TEST(ExpertRows, AreDealtOutOverTensorRanks) {
  constexpr ExpertRows one{.capacity = 10, .samples = 1, .context = 1, .tensor = 3};
  EXPECT_EQ(one.part(), 4);
  EXPECT_EQ(one.tensor_rank(0, 4), 1);
  EXPECT_EQ(one.row(0, 4), 1);
  constexpr ExpertRows two{.capacity = 10, .samples = 2, .context = 1, .tensor = 3};
  EXPECT_EQ(two.part(), 7);
  EXPECT_EQ(two.tensor_rank(1, 0), 1);  // row 10 of 20
  EXPECT_EQ(two.row(1, 0), 3);
}

// Room for 10, over four context ranks 3 each; of 4 own tokens one may have to go elsewhere, of 2 none.
TEST(ExpertRows, OfContextRanksMaySpill) {
  constexpr ExpertRows rows{.capacity = 10, .samples = 1, .context = 4, .tensor = 1};
  EXPECT_EQ(rows.context_part(), 3);
  EXPECT_EQ(rows.excess(4), 1);
  EXPECT_EQ(rows.excess(2), 0);
}

TEST(Mixture, EveryShippedMixtureHasItsPublishedCount) {
  for (const char* name : {"mixtral-8x7b", "switch-base-8", "switch-base-128", "switch-c"}) {
    for (const int expert : {1, 8}) {
      Job job;
      job.model = models::load_model(name);
      job.training.sequence = 512;
      job.training.global_batch = 8;
      job.plan.data = job.plan.expert = expert;
      const Program program = lowered(job);
      std::int64_t elements = 0;
      for (const Parameter& p : program.kinds[0].parameters) {
        elements += p.local_rows * p.local_columns * (p.experts > 0 ? expert : 1);
      }
      EXPECT_EQ(elements, models::count_parameters(job.model).total) << name << " over " << expert;
    }
  }
}

// Every (row, column) of the global matrix is held by exactly one (expert rank, tensor rank).
TEST(Mixture, MatricesOfExpertsTileTheirGlobalMatrix) {
  Job job = mixture_job(2, 2);
  job.plan.tensor = 2;
  for (const Parameter& p : expert_parameters(job, 1)) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (int expert = 0; expert < 2; ++expert) {
      for (int tensor = 0; tensor < 2; ++tensor) {
        for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
          ++seen[*global_place(p, i / p.local_columns, i % p.local_columns, tensor, 2, expert)];
        }
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), p.rows * p.columns) << p.name;
    for (const auto& [place, times] : seen) ASSERT_EQ(times, 1);
    EXPECT_EQ(seen.rbegin()->first, (std::pair{p.rows - 1, p.columns - 1}));
  }
}

TEST(Mixture, WholeExpertsOfTensorRanksTileTheirGlobalMatrix) {
  Job job = mixture_job(4, 2);
  job.plan.tensor = 2, job.plan.expert_tensor = 1;
  const Program program = lowered(job);
  for (const Parameter& p : expert_parameters(job, 1)) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (int rank = 0; rank < 4; ++rank) {
      const Coordinates at = program.mesh.coordinates(rank);
      for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
        ++seen[*global_place(p, i / p.local_columns, i % p.local_columns, at.tensor, 2, program.mesh.expert_rank(at))];
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), p.rows * p.columns) << p.name;
    for (const auto& [place, times] : seen) ASSERT_EQ(times, 1);
  }
}

// Experts of 2 over 4 replicas: two ranks hold the same ones and reduce their gradients among themselves.
TEST(Mixture, GradientsOfExpertsAreReducedAmongTheirHolders) {
  for (const int zero : {0, 1}) {
    Job job = mixture_job(2, 4);
    job.plan.zero_stage = zero;
    const Program program = lowered(job);
    EXPECT_EQ(program.mesh.members(Group::kExpert, 1), (std::vector<int>{0, 1}));
    EXPECT_EQ(program.mesh.members(Group::kExpertData, 1), (std::vector<int>{1, 3}));
    std::map<Group, int> reductions;
    for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
      if (task.kind == TaskKind::kReduceGradients && is_communication(op.kind)) ++reductions[op.group];
    });
    EXPECT_EQ(reductions, (std::map<Group, int>{{Group::kData, 6}, {Group::kExpertData, 2}}));
    for (const Bucket& bucket : program.kinds[0].buckets) {
      EXPECT_EQ(bucket.shard * (zero == 0 ? 1 : bucket.expert ? 2 : 4), bucket.elements);
    }
  }
}

// As torchtitan's FSDP2 (fully_shard of the experts over efsdp) and Megatron-FSDP do: after each of 3 micro-batches the
// two holders of an expert scatter its gradients, in a slot of their own; each keeps half. With two replicas nobody
// else holds them, and they stay whole. Of 4 layers 2 are mixtures.
TEST(Mixture, GradientsOfExpertsAreScatteredAfterEveryMicroBatchWithZero2) {
  for (const int data : {2, 4}) {
    for (const int zero : {2, 3}) {
      Job job = mixture_job(2, data);
      job.training.global_batch = data * 3;
      job.plan.zero_stage = zero;
      const Program program = lowered(job);
      EXPECT_THAT(verify(program), IsEmpty());
      int scattered = 0;
      for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
        if (task.kind != TaskKind::kReduceGradients || op.group != Group::kExpertData) return;
        EXPECT_EQ(op.kind, OpKind::kReduceScatter);
        ++scattered;
      });
      EXPECT_EQ(scattered, data == 4 ? 2 * 3 : 0);
      std::int64_t kept = 0;
      for (const Bucket& bucket : program.kinds[0].buckets) {
        EXPECT_EQ(bucket.gradient_shard >= 0, !bucket.expert || data == 4);
        kept += bucket.gradient_shard >= 0 ? bucket.shard : bucket.elements;
        for (const Bucket& other : program.kinds[0].buckets) {
          if (other.expert || !bucket.expert || bucket.gradient_slot < 0) continue;
          EXPECT_NE(bucket.gradient_slot, other.gradient_slot);
        }
      }
      EXPECT_EQ(program.kinds[0].bytes[static_cast<std::size_t>(Space::kGradient)], kept * 4);
    }
  }
}

// Two of four replicas hold the same experts: each keeps half of their bucket and gathers it with its layer's, forward
// and backward of 2 micro-batches, in a slot of its own. With two replicas nobody else holds them, and nothing is
// moved.
TEST(Mixture, ExpertsAreGatheredFromTheirHoldersWithZero3) {
  for (const int data : {2, 4}) {
    for (const bool prefetches : {false, true}) {
      Job job = mixture_job(2, data);
      job.training.global_batch = data * 2;
      job.plan.zero_stage = 3;
      job.plan.overlap.parameter_gather = prefetches;
      const Program program = lowered(job);
      EXPECT_THAT(verify(program), IsEmpty());
      std::map<Group, int> gathers;
      for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
        if (task.kind == TaskKind::kGatherParameters) ++gathers[op.group];
      });
      EXPECT_EQ(gathers[Group::kExpertData], data == 4 ? 2 * 2 * 2 : 0);
      const ChunkTemplate& kind = program.kinds[0];
      std::int64_t whole = 0, kept = 0;
      for (const Bucket& bucket : kind.buckets) {
        EXPECT_GE(bucket.parameter_shard, 0);
        EXPECT_EQ(bucket.shard * (bucket.expert ? data / 2 : data), bucket.elements);
        whole += bucket.elements, kept += bucket.shard;
        for (const Bucket& other : kind.buckets) {
          if (other.expert || !bucket.expert || bucket.parameter_slot < 0) continue;
          EXPECT_NE(bucket.parameter_slot, other.parameter_slot);
        }
      }
      EXPECT_EQ(kind.bytes[static_cast<std::size_t>(Space::kParameter)], kept * 4);
      EXPECT_LT(kept, whole);
    }
  }
}

TEST(Mixture, TheRoutersGradientIsSummedOverTheTensorGroup) {
  Job job = mixture_job(1, 1);
  job.plan.tensor = 2;
  const Program program = lowered(job);
  std::int64_t summed = 0;
  for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
    if (task.kind == TaskKind::kReduceGradients && op.group == Group::kTensor) summed += op.elements;
  });
  EXPECT_EQ(summed, 2 * 32 * 4);  // two mixture layers, hidden x experts
}

TEST(Mixture, EverySplitPassesTheVerifier) {
  for (const auto recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const int top_k : {1, 2}) {
      Job job = mixture_job(2, 4);
      job.model.experts->top_k = top_k;
      job.plan.tensor = 2, job.plan.pipeline = 2, job.plan.zero_stage = 1;
      job.plan.sequence_parallel = true;
      job.plan.recompute = recompute;
      EXPECT_THAT(verify(lowered(job)), IsEmpty());
    }
  }
}

// A balance loss is counted when a layer is first routed, not again when it is recomputed.
TEST(Mixture, RecomputedRoutersDoNotCountTheirLossAgain) {
  Job job = mixture_job(1, 1);
  job.plan.recompute = Recompute::kFull;
  const Program program = lowered(job);
  for (const Op& op : of_kind(ops_of(program, program.kinds[0].forward, 1), OpKind::kRoute)) EXPECT_NE(op.out[2], -1);
  for (const Op& op : of_kind(ops_of(program, program.kinds[0].backward, 1), OpKind::kRoute)) EXPECT_EQ(op.out[2], -1);
}

TEST(Mixture, IsRefusedWhereItDoesNotDivide) {
  const auto reason = [](const Job& job) {
    const auto no = check(job);
    return !no ? "" : no->rule + ": " + no->reason;
  };
  EXPECT_EQ(reason(mixture_job(2, 1)),
            "expert-divides-data: experts lie on neighbouring replicas: expert 2 does not divide data 1");
  Job job = mixture_job(8, 8);
  EXPECT_EQ(reason(job), "expert-divides-experts: expert 8 does not divide 4 experts");
  job = mixture_job(4, 2);
  job.plan.tensor = 4, job.plan.expert = 2, job.plan.expert_tensor = 1;
  EXPECT_EQ(reason(job),
            "tensor-divides-expert: tensor ranks that do not split experts share them: tensor 4 does not divide expert "
            "2");
  job.plan.expert = 4, job.plan.tensor = 2, job.plan.data = 3;
  EXPECT_EQ(reason(job),
            "expert-divides-data: experts lie on neighbouring replicas: expert 4, over tensor 2, does not divide data "
            "3");
  job = tiny_job();
  job.plan.expert_tensor = 1;
  EXPECT_EQ(reason(job), "expert-needs-experts: expert_tensor 1 splits the experts of mixture layers; tiny has none");
  job = tiny_job();
  job.plan.data = job.plan.expert = 2;
  EXPECT_EQ(reason(job), "expert-needs-experts: expert 2 splits the experts of mixture layers; tiny has none");
  job = mixture_job(2, 4);
  job.plan.zero_stage = 3, job.plan.shard_group = 2;
  EXPECT_EQ(reason(job),
            "expert-with-shard-group-supported: shard_group is not implemented: spread experts are sharded over all "
            "their ranks; use shard_group 0");
}

// Of two tensor ranks each: 4 experts' 2 · 128 / 2 columns and 32, a bias of 4 for the router; not a dense layer's.
TEST(Mixture, ExpertsOfAModelWithBiasesHaveTheirOwn) {
  Job job = mixture_job(1, 1);
  job.model.linear_bias = true;
  job.plan.tensor = 2;
  const Program program = lowered(job);
  EXPECT_THAT(verify(program), IsEmpty());
  std::map<std::string, std::int64_t> sizes;
  for (const Parameter& p : program.kinds[0].parameters) {
    if (p.layer == 1 && p.name.ends_with("bias")) sizes[p.name.substr(5)] = p.local_rows * p.local_columns;
  }
  EXPECT_EQ(sizes, (std::map<std::string, std::int64_t>{{"attn.c_proj.bias", 32},
                                                        {"mlp.router.bias", 4},
                                                        {"mlp.experts.c_fc.bias", 4 * job.model.ffn_hidden},
                                                        {"mlp.experts.c_proj.bias", 4 * 32}}));
}

// 16 tokens a sample over two ranks, 4 experts with room for 10: every rank lists the choices of 16 tokens and computes
// 4 · 5 rows, its own tokens' and of the other's what has no room there: at most 3 a sample and expert of 8 tokens,
// 4 · 3 rows of 32; nothing where choices are even. Logits of all tokens are 16 · 4 · 4 B.
TEST(Mixture, ContextRanksListAllTokensAndShareTheRows) {
  Job job = mixture_job(1, 1);
  job.plan.context = 2, job.plan.attention = Attention::kFlash;
  for (const auto method : {ContextMethod::kRing, ContextMethod::kAllToAll}) {
    job.plan.context_method = method;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), IsEmpty());
    const auto ops = ops_of(program, program.kinds[0].forward, 1);
    EXPECT_EQ(of_kind(ops, OpKind::kRoute)[0].m, 16);
    EXPECT_EQ(of_kind(ops, OpKind::kDispatch)[0].m, 8);
    EXPECT_EQ(of_kind(ops, OpKind::kExpertMatmul)[0].m, 5);
    const auto gathers = of_kind(ops, OpKind::kAllGather), scatters = of_kind(ops, OpKind::kReduceScatter);
    ASSERT_EQ(gathers.size(), 1u);
    EXPECT_THAT(scatters, IsEmpty());
    EXPECT_EQ(gathers[0].group, Group::kContext);
    EXPECT_EQ(gathers[0].bytes, 256);
    const auto spills = spilled_exchanges(ops);
    ASSERT_EQ(spills.size(), 2u);
    EXPECT_EQ(spilled_exchanges(ops_of(program, program.kinds[0].backward, 1)).size(), 3u);
    for (const Op& op : spills) EXPECT_EQ(op.bytes, 0);
    const auto& buffers = program.kinds[0].buffers;
    EXPECT_EQ(buffers[static_cast<std::size_t>(spills[0].in[0])].elements, 12 * 32);
    EXPECT_EQ(buffers[static_cast<std::size_t>(spills[0].out[0])].elements, 12 * 32);
  }
}

// 16 tokens of one choice each and room for 2 of the 4 that want an expert: the first rank's tokens take both rows, of
// which one is the other rank's. So it sends a row for each of 4 experts, the other none: 2 on average.
TEST(Mixture, SpillsArePricedWhereTokensAreTurnedAway) {
  Job job = mixture_job(1, 1);
  job.plan.context = 2, job.plan.attention = Attention::kFlash;
  job.model.experts->top_k = 1;
  job.model.experts->capacity_factor = 0.5;
  const Program program = lowered(job);
  const auto spills = spilled_exchanges(ops_of(program, program.kinds[0].forward, 1));
  ASSERT_EQ(spills.size(), 2u);
  EXPECT_EQ(spills[0].bytes, 2 * 32 * 4);
}

// Experts that take every token of a sample have room for those of every rank, where the rank is.
TEST(Mixture, NothingSpillsWhereEveryTokenHasRoom) {
  Job job = mixture_job(1, 1);
  job.plan.context = 2, job.plan.attention = Attention::kFlash;
  job.model.experts->capacity_factor = 2;
  const Program program = lowered(job);
  EXPECT_THAT(verify(program), IsEmpty());
  EXPECT_THAT(spilled_exchanges(ops_of(program, program.kinds[0].forward, 1)), IsEmpty());
}

}  // namespace
}  // namespace trivium::program
