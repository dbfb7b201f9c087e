// The way from a job to a Program that may run: what is refused, by which rule, and what comes out.
#include "simulator/predict/prepare.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/plan/job_json.h"
#include "program/verify/verify.h"
#include "simulator/predict/in_rounds.h"
#include "tests/simulator/analytic/random_jobs.h"

namespace trivium::simulator {
namespace {

program::Job gpt3_13b() {
  program::Job job;
  job.model = models::load_model("gpt3-13b");
  job.training.sequence = 2048;
  job.training.global_batch = 64;
  job.plan.tensor = 8;
  job.plan.data = 2;
  return job;
}

base::Error refused(const program::Job& job, const char* cluster, const PrepareOptions& options = {}) {
  const auto prepared = prepare(job, hardware::load_cluster(cluster), options);
  return prepared ? base::Error{base::ErrorKind::kRuntime, "prepared"} : prepared.error();
}

TEST(Prepare, GivesAnOrderedProgramThatIsSoundWithItsMemory) {
  std::mt19937 random(29);
  for (int i = 0; i < 40; ++i) {
    const RandomJob made = random_job(random);
    const auto prepared = prepare(made.job, made.cluster, {.fits = false});
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    EXPECT_TRUE(program::verify(prepared.value().verified()).empty());
    EXPECT_EQ(prepared.value().memory().size(), prepared.value().program().roles.size());
    for (const program::Role& role : prepared.value().program().roles) EXPECT_FALSE(role.order.empty());
  }
}

TEST(Prepare, NamesTheRuleThatStandsAgainstAPlan) {
  program::Job job = gpt3_13b();
  job.plan.tensor = 7;
  EXPECT_EQ(refused(job, "dgx-a100-80gb:2").kind, base::ErrorKind::kNoPlan);
  EXPECT_EQ(refused(job, "dgx-a100-80gb:2").rule, "tensor-divides-heads");
  job = gpt3_13b();
  EXPECT_FALSE(refused(job, "dgx-a100-80gb:1").rule.empty());  // 16 ranks on 8 devices
  job.plan.precision = program::DType::kBf16;
  EXPECT_FALSE(refused(job, "dgx1-v100-32gb:2").rule.empty());  // which lack it
}

// Times are whole picoseconds in 64 bits: beyond a hundred days they would begin anew below zero.
TEST(Prepare, RefusesAnIterationOfMoreDaysThanItCanTell) {
  const program::Job job = gpt3_13b();
  for (const double slower : {1e4, 1e6, 1e9, 1e15}) {
    hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
    hardware::Node& node = cluster.groups.front().node;
    node.device.compute_scale /= slower;
    node.network.bandwidth = node.network.bandwidth / slower;
    const auto prepared = prepare(job, cluster, {.fits = false});
    if (slower < 1e5) {
      EXPECT_TRUE(prepared.ok()) << prepared.error().message;
      continue;
    }
    ASSERT_FALSE(prepared.ok()) << slower;
    EXPECT_EQ(prepared.error().rule, "iteration-in-range") << slower;
    EXPECT_EQ(prepared.error().kind, base::ErrorKind::kNoPlan) << slower;
    const auto simulated = simulate_in_rounds(job, cluster, {}, false, {});
    EXPECT_TRUE(!simulated || !simulated.value()) << slower;
  }
}

// Chunks of one kind share their frames: what is freed of them is freed once, not once for each chunk.
TEST(Prepare, OutputsThatWereSentAreFreedOnce) {
  program::Job job = gpt3_13b();
  job.plan.tensor = 1;
  job.plan.pipeline = 2;
  job.plan.virtual_stages = 20;
  job.plan.schedule = program::Schedule::kInterleaved;
  job.plan.data = 8;
  const auto stages = [&](const char* stack) {
    job.plan.stack = stack;
    return prepare(job, hardware::load_cluster("dgx-a100-80gb:2"), {.fits = false}).value_or_throw();
  };
  const auto keeping = stages("trivium"), freeing = stages("megatron-bridge");
  for (std::size_t s = 0; s < keeping.memory().size(); ++s) {
    std::map<int, int> frames;  // by kind
    for (const program::Chunk& chunk : keeping.program().roles[s].chunks) frames[chunk.kind] = chunk.frames;
    int all = 0;
    for (const auto& [kind, count] : frames) all += count;
    const std::int64_t output = keeping.program().settings.sent_bytes_per_sample * job.plan.micro_batch;
    const std::int64_t freed = keeping.memory()[s].activations - freeing.memory()[s].activations;
    EXPECT_GT(freed, 0) << s;
    EXPECT_LE(freed, output * all) << s << ": no more outputs than lie in frames";
  }
}

TEST(Prepare, RefusesWhatDoesNotFitUnlessItNeedNot) {
  program::Job job = gpt3_13b();
  job.plan.tensor = 1;
  job.plan.data = 16;
  EXPECT_EQ(refused(job, "dgx-a100-80gb:2").rule, kMemoryRule);
  const auto prepared = prepare(job, hardware::load_cluster("dgx-a100-80gb:2"), {.fits = false});
  ASSERT_TRUE(prepared.ok());
  ASSERT_TRUE(prepared.value().too_big());
  EXPECT_EQ(prepared.value().too_big()->reason, refused(job, "dgx-a100-80gb:2").message);
}

TEST(Prepare, RefusesAProgramThatIsNotSoundUnlessItIsNotAsked) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:2");
  program::Program damaged = std::get<program::Program>(program::lower(gpt3_13b()));
  damaged.roles.front().tasks.front().micro_batch = 1 << 20;  // which no step has
  ASSERT_FALSE(program::verify(damaged).empty());
  const auto refused = prepare(damaged, cluster);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, base::ErrorKind::kRuntime);
  EXPECT_EQ(refused.error().message.find("the program is not sound ("), 0U) << refused.error().message;
  EXPECT_TRUE(prepare(damaged, cluster, {.verified = false}).ok());
}

TEST(Prepare, LeavesTheOrderToThoseWhoScheduleSegments) {
  const auto prepared = prepare(gpt3_13b(), hardware::load_cluster("dgx-a100-80gb:2"), {.ordered = false});
  ASSERT_TRUE(prepared.ok());
  for (const program::Role& role : prepared.value().program().roles) EXPECT_TRUE(role.order.empty());
}

TEST(Prepare, EndsWhereItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  const auto prepared = prepare(gpt3_13b(), hardware::load_cluster("dgx-a100-80gb:2"), {}, stop.get_token());
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().kind, base::ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace trivium::simulator
