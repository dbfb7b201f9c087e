// Ranks name those they exchange data with before anything moves: NCCL connects them then, all at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/threads.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

/// A communicator that remembers whom its rank named, and whom it then exchanged data with.
class Listening final : public Communicator {
 public:
  explicit Listening(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int make_group(std::span<const int> ranks) override { return inner_->make_group(ranks); }
  void barrier(int group) override { inner_->barrier(group); }
  void all_reduce(int group, void* data, std::int64_t count, program::DType type, program::Reduction how) override {
    inner_->all_reduce(group, data, count, type, how);
  }
  void reduce_scatter(int group, const void* whole, void* part, std::int64_t count, program::DType type) override {
    inner_->reduce_scatter(group, whole, part, count, type);
  }
  void all_gather(int group, const void* part, void* whole, std::int64_t count, program::DType type) override {
    inner_->all_gather(group, part, whole, count, type);
  }
  void broadcast(int group, void* data, std::int64_t bytes, int root) override {
    inner_->broadcast(group, data, bytes, root);
  }
  void post_send(int to, std::int64_t number, const void* data, std::int64_t bytes) override {
    met.insert(to);
    inner_->post_send(to, number, data, bytes);
  }
  void post_recv(int from, std::int64_t number, void* data, std::int64_t bytes) override {
    met.insert(from);
    inner_->post_recv(from, number, data, bytes);
  }
  void wait_send(int to, std::int64_t number) override { inner_->wait_send(to, number); }
  void wait_recv(int from, std::int64_t number) override { inner_->wait_recv(from, number); }
  void expect_transfers(std::span<const LanePeers> all) override {
    EXPECT_TRUE(met.empty());
    ++times_named;
    for (const LanePeers& each : all) {
      lanes.push_back(each.lane);
      named.insert(each.peers.begin(), each.peers.end());
    }
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }

  std::set<int> named, met;
  std::vector<program::Lane> lanes;
  int times_named = 0;

 private:
  std::unique_ptr<Communicator> inner_;
};

std::vector<std::unique_ptr<Listening>> listen_to_a_step(const program::Job& job) {
  const program::Program program = ordered_program(job);
  const auto corpus = toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  std::vector<std::unique_ptr<Listening>> ends;
  for (auto& end : inproc::make_communicators(job.plan.ranks()))
    ends.push_back(std::make_unique<Listening>(std::move(end)));
  std::vector<std::jthread> threads;
  for (auto& end : ends) {
    threads.emplace_back([&, listening = end.get()] {
      RankExecutor executor(program, *listening, *corpus);
      executor.step({.step = 0, .learning_rate = 1e-3, .loss_weight = 1e-3}, nullptr);
    });
  }
  threads.clear();
  return ends;
}

program::Job job_of(int pipeline, int context, program::ContextMethod method, int expert) {
  program::Plan plan;
  plan.pipeline = pipeline;
  plan.context = context;
  plan.context_method = method;
  plan.attention = program::Attention::kFlash;
  plan.data = plan.expert = expert;
  program::Job job = toy_job(plan, 4);
  job.model.layers = 4;
  if (expert > 1) {
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 1, .every = 2, .capacity_factor = 1};
  }
  return job;
}

TEST(ExpectTransfers, NamesThoseThatMeetAndNobodyElse) {
  using program::ContextMethod;
  program::Job interleaved = job_of(2, 1, ContextMethod::kRing, 1);
  interleaved.plan.virtual_stages = 2;
  interleaved.plan.schedule = program::Schedule::kInterleaved;
  for (const program::Job& job : {job_of(1, 1, ContextMethod::kRing, 1), job_of(4, 1, ContextMethod::kRing, 1),
                                  interleaved, job_of(1, 4, ContextMethod::kRing, 1),
                                  job_of(1, 4, ContextMethod::kAllToAll, 1), job_of(2, 2, ContextMethod::kRing, 2)}) {
    SCOPED_TRACE(program::summary(job.plan));
    const auto ends = listen_to_a_step(job);
    for (const auto& end : ends) {
      EXPECT_EQ(end->times_named, 1);
      EXPECT_EQ(end->lanes, ends.front()->lanes) << "all ranks make a communicator for each, in the same order";
      EXPECT_EQ(end->named, end->met) << "rank " << end->rank();
      for (const int peer : end->named) {
        EXPECT_TRUE(ends[static_cast<std::size_t>(peer)]->named.contains(end->rank()))
            << end->rank() << " and " << peer;
      }
    }
  }
}

// Rank 0 of four stages sends to the next and hears of it; of a ring of four it meets both neighbours, never rank 2.
TEST(ExpectTransfers, NamesNeighboursOfAPipelineAndOfARing) {
  const auto pipeline = listen_to_a_step(job_of(4, 1, program::ContextMethod::kRing, 1));
  EXPECT_THAT(pipeline[0]->named, ::testing::ElementsAre(1));
  EXPECT_THAT(pipeline[2]->named, ::testing::ElementsAre(1, 3));
  const auto ring = listen_to_a_step(job_of(1, 4, program::ContextMethod::kRing, 1));
  EXPECT_THAT(ring[0]->named, ::testing::ElementsAre(1, 3));
}

}  // namespace
}  // namespace trivium::runtime::testing
