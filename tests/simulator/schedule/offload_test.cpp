// Offload simulated: what copies hide, what they expose, and what they free.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "simulator/cost/supported.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

using program::Storage;

program::Job job_of(Storage optimizer, Storage activations) {
  program::Job job;
  job.model = models::load_model("gpt3-2.7b");
  job.training.sequence = 2048;
  job.training.global_batch = 16;
  job.plan.pipeline = 8;
  job.plan.offload.optimizer = optimizer;
  job.plan.offload.activations = activations;
  return job;
}

Simulation simulated(const program::Job& job, const hardware::Cluster& cluster) {
  return simulate(prepared(job, cluster), {}).value_or_throw();
}

double exposed(const Simulation& s) { return s.breakdown_s[static_cast<std::size_t>(Part::kExposedOffload)]; }

hardware::Cluster with_link(double bytes_per_second) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  cluster.groups[0].node.host_link = base::BytesPerSecond(bytes_per_second);
  return cluster;
}

TEST(Offload, AFastLinkHidesTheCopiesOfActivations) {
  const Simulation kept = simulated(job_of(Storage::kNone, Storage::kNone), with_link(24e9));
  const Simulation away = simulated(job_of(Storage::kNone, Storage::kHost), with_link(1e15));
  EXPECT_EQ(exposed(kept), 0);
  EXPECT_NEAR(away.iteration_s, kept.iteration_s, 0.002 * kept.iteration_s);  // but for the copies' kernel launches
  EXPECT_LT(away.peak_memory_bytes, kept.peak_memory_bytes);
}

// A layer of 2,048 tokens and 2,560 hidden keeps some 0.7 GiB and computes for some milliseconds: 24 GB/s hold it up.
TEST(Offload, ASlowLinkIsExposed) {
  const Simulation fast = simulated(job_of(Storage::kNone, Storage::kHost), with_link(24e9));
  const Simulation slow = simulated(job_of(Storage::kNone, Storage::kHost), with_link(6e9));
  EXPECT_GT(exposed(fast), 0);
  EXPECT_GT(exposed(slow), 2 * exposed(fast));
  for (const Simulation* s : {&fast, &slow}) {
    EXPECT_NEAR(std::accumulate(s->breakdown_s.begin(), s->breakdown_s.end(), 0.0), s->iteration_s,
                1e-9 * s->iteration_s);
  }
}

// State of all but the first two buckets of a stage is copied after the gradients: 2 x 12 B per parameter.
TEST(Offload, TheStepTakesTheTimeOfItsCopies) {
  const hardware::Cluster cluster = with_link(24e9);
  const Simulation kept = simulated(job_of(Storage::kNone, Storage::kNone), cluster);
  const Simulation away = simulated(job_of(Storage::kHost, Storage::kNone), cluster);
  const auto lowered = std::get<program::Program>(program::lower(job_of(Storage::kHost, Storage::kNone)));
  const program::ChunkTemplate& middle = lowered.kinds[static_cast<std::size_t>(lowered.roles[3].chunks[0].kind)];
  double behind = 0;  // bytes that cannot have come before: buckets from the third on, and all that go back
  for (std::size_t b = 0; b < middle.buckets.size(); ++b) {
    behind += static_cast<double>(middle.buckets[b].shard) * 12 * (b < 2 ? 1 : 2);
  }
  EXPECT_GE(away.iteration_s - kept.iteration_s, 0.5 * behind / 24e9);
  EXPECT_GT(exposed(away), 0);
  for (std::size_t s = 0; s < kept.stages.size(); ++s) {
    EXPECT_EQ(away.stages[s].memory.optimizer, 0);
    EXPECT_EQ(away.stages[s].memory.host, kept.stages[s].memory.optimizer);
  }
}

TEST(Offload, DiskIsSlowerThanMemoryAndDoesNotFillIt) {
  const hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  const Simulation host = simulated(job_of(Storage::kHost, Storage::kNone), cluster);
  const Simulation disk = simulated(job_of(Storage::kDisk, Storage::kNone), cluster);
  EXPECT_GT(disk.iteration_ps, host.iteration_ps);
  EXPECT_EQ(disk.stages[0].memory.host, 0);
}

TEST(Offload, WhatTheHostCannotHoldIsRefused) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  cluster.groups[0].node.host_memory = base::Bytes(8 * base::kGiB);  // 1 GiB a rank
  const auto program = std::get<program::Program>(program::lower(job_of(Storage::kHost, Storage::kNone)));
  const auto no = out_of_memory(memory_of(program, cluster));
  ASSERT_TRUE(no.has_value());
  EXPECT_EQ(no->rule, "host-memory");
}

TEST(Offload, ANodeWithoutDrivesCannotOffloadToDisk) {
  hardware::Cluster cluster = hardware::load_cluster("dgx-a100-80gb:1");
  cluster.groups[0].node.disk = base::BytesPerSecond(0);
  EXPECT_EQ(unsupported_by(job_of(Storage::kDisk, Storage::kNone), cluster)->rule, "disk");
  program::Job gradients = job_of(Storage::kNone, Storage::kNone);
  gradients.plan.offload.gradients = Storage::kDisk;
  ASSERT_TRUE(unsupported_by(gradients, cluster).has_value());
  EXPECT_EQ(unsupported_by(gradients, cluster)->rule, "disk");
  EXPECT_FALSE(unsupported_by(job_of(Storage::kHost, Storage::kHost), cluster).has_value());
}

}  // namespace
}  // namespace trivium::simulator
