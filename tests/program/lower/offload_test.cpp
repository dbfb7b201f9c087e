// What is kept outside the device: bytes, copies, and what they wait for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "program/verify/verify.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::int64_t bytes_of(const Program& program, std::size_t stage, Space space) {
  return program.roles[stage].bytes[static_cast<std::size_t>(space)];
}

/// Two stages of two layers, four micro-batches.
Job offloaded(Storage optimizer, Storage activations) {
  Job job = tiny_job();
  job.training.global_batch = 4;
  job.plan.pipeline = 2;
  job.plan.offload.optimizer = optimizer;
  job.plan.offload.activations = activations;
  return job;
}

std::size_t count(const Role& role, TaskKind kind) {
  return static_cast<std::size_t>(
      std::count_if(role.tasks.begin(), role.tasks.end(), [&](const Task& task) { return task.kind == kind; }));
}

Task& first_of(Program& program, TaskKind kind, const std::string& body) {
  auto& tasks = program.roles[0].tasks;
  return *std::find_if(tasks.begin(), tasks.end(), [&](const Task& task) {
    return task.kind == kind && program.body_of(task).name.find(body) != std::string::npos;
  });
}

TEST(Offload, OptimizerStateLeavesTheDeviceButForTwoBuckets) {
  const Program kept = lowered(offloaded(Storage::kNone, Storage::kNone));
  const Program away = lowered(offloaded(Storage::kHost, Storage::kNone));
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(bytes_of(away, stage, Space::kOffloadedState), bytes_of(kept, stage, Space::kOptimizer));
    EXPECT_EQ(bytes_of(away, stage, Space::kOptimizer), 0);
    // The widest bucket is a layer: 12 h^2 weights and 13 h of biases and norms, padded to 16 elements, two moments in
    // fp32.
    const std::int64_t layer = 12 * 32 * 32 + 13 * 32;
    EXPECT_EQ(bytes_of(away, stage, Space::kStaging), 2 * layer * 2 * 4);
    EXPECT_EQ(away.roles[stage].total_bytes(), kept.roles[stage].total_bytes() -
                                                   bytes_of(kept, stage, Space::kOptimizer) +
                                                   bytes_of(away, stage, Space::kStaging));
  }
  EXPECT_EQ(count(away.roles[0], TaskKind::kFetch), away.kinds[0].buckets.size());
  EXPECT_EQ(count(away.roles[0], TaskKind::kStore), away.kinds[0].buckets.size());
  EXPECT_THAT(verify(away), IsEmpty());
}

// Of a layer go norms 2 x (32 + 2), qkv 96, probabilities 64, attention output and residual stream 32 each, and twice
// 128 of the MLP, for 16 tokens in fp32; inputs of layers stay.
TEST(Offload, ActivationsLeaveTheDeviceButForTwoLayers) {
  const Program kept = lowered(offloaded(Storage::kNone, Storage::kNone));
  const Program away = lowered(offloaded(Storage::kNone, Storage::kHost));
  const std::int64_t layer = 16 * 4 * (2 * (32 + 2) + 96 + 64 + 32 + 32 + 2 * 128);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const std::int64_t frames = away.roles[stage].chunks[0].frames;
    EXPECT_EQ(bytes_of(away, stage, Space::kStaging), 2 * layer);
    EXPECT_EQ(bytes_of(away, stage, Space::kOffloadedActivation), frames * 2 * layer);
    EXPECT_EQ(bytes_of(away, stage, Space::kFrame), bytes_of(kept, stage, Space::kFrame) - frames * 2 * layer);
  }
  EXPECT_THAT(verify(away), IsEmpty());
}

/// The same with offloaded gradients.
Job gradients_away(Storage storage = Storage::kHost) {
  Job job = offloaded(Storage::kNone, Storage::kNone);
  job.plan.offload.gradients = storage;
  return job;
}

// The widest bucket is a layer: 12 h^2 weights and 13 h of biases and norms in fp32.
TEST(Offload, GradientsLeaveTheDeviceButForTwoBuckets) {
  const Program kept = lowered(offloaded(Storage::kNone, Storage::kNone)), away = lowered(gradients_away());
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(bytes_of(away, stage, Space::kOffloadedGradient), bytes_of(kept, stage, Space::kGradient));
    EXPECT_EQ(bytes_of(away, stage, Space::kGradient), 0);
    EXPECT_EQ(bytes_of(away, stage, Space::kStaging), 2 * (12 * 32 * 32 + 13 * 32) * 4);
  }
  EXPECT_THAT(verify(away), IsEmpty());
}

// The first stage has the embedding (0) and two layers (1, 2); 0 and 2 take turns in one slot. Each of four backwards
// brings 2 and 0, the sum of the tied embedding finds 0, the norm too and brings 2, the step brings both; 1 comes once
// and stays. Every backward and the step give all three back, the sum the embedding.
TEST(Offload, GradientsComeUnlessTheyAreStillThere) {
  const Program program = lowered(gradients_away());
  EXPECT_EQ(count(program.roles[0], TaskKind::kFetch), 4U * 2 + 1 + 2 + 1);
  EXPECT_EQ(count(program.roles[0], TaskKind::kStore), 4U * 3 + 1 + 3);
}

// During the last backward every layer is reduced before it is stored: no copy for that. The embedding, which the last
// stage adds to as well, and without overlap all three are fetched once more.
TEST(Offload, GradientsAreReducedWhileTheyAreThere) {
  Job job = gradients_away();
  job.plan.data = 2;
  job.training.global_batch = 8;
  const Program apart = lowered(job);
  EXPECT_EQ(count(apart.roles[0], TaskKind::kStore), 4U * 3 + 3 + 3);
  job.plan.overlap.gradient_reduction = true;
  const Program beside = lowered(job);
  EXPECT_EQ(count(beside.roles[0], TaskKind::kStore), 4U * 3 + 1 + 3);
  EXPECT_THAT(verify(apart), IsEmpty());
  EXPECT_THAT(verify(beside), IsEmpty());
}

TEST(Offload, GradientsOfRandomJobsPassTheVerifier) {
  RandomJobs jobs(37);
  int checked = 0;
  for (int i = 0; i < 400; ++i) {
    Job job = jobs.next();
    job.plan.offload.gradients = jobs.pick<Storage>({Storage::kHost, Storage::kDisk});
    job.plan.offload.optimizer = jobs.pick<Storage>({Storage::kNone, Storage::kHost});
    job.plan.offload.activations = jobs.pick<Storage>({Storage::kNone, Storage::kHost});
    if (check(job)) continue;
    EXPECT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan);
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(Offload, LayersUseTwoSlotsInTurn) {
  Job job = offloaded(Storage::kNone, Storage::kHost);
  job.plan.pipeline = 1;
  const Program program = lowered(job);
  const ChunkTemplate& kind = program.kinds[0];
  const auto offset = [&](int layer) {
    const auto found = std::find_if(kind.buffers.begin(), kind.buffers.end(),
                                    [&](const Buffer& b) { return b.name == fmt::format("layer {} qkv", layer); });
    EXPECT_EQ(found->space, Space::kStaging);
    return found->offset;
  };
  EXPECT_EQ(offset(0), offset(2));
  EXPECT_EQ(offset(1), offset(3));
  EXPECT_NE(offset(0), offset(1));
}

// The last stage runs F0 B0 F1 B1 …: the last two layers of a forward are still in their slots for its backward.
TEST(Offload, WhatStillLiesInItsSlotIsNotFetched) {
  Job job = offloaded(Storage::kNone, Storage::kHost);
  job.model = tiny_model(8);
  const Program program = lowered(job);
  EXPECT_EQ(count(program.roles[1], TaskKind::kStore), 4U * 4);
  EXPECT_EQ(count(program.roles[1], TaskKind::kFetch), 4U * 2);
}

TEST(Offload, CopiesRunOnTheirOwnLaneAndSayWhereTo) {
  const Program program = lowered(offloaded(Storage::kDisk, Storage::kHost));
  int to_disk = 0, to_host = 0;
  for_each_op(program, [&](const Role&, const Task& task, const Op& op) {
    if (!is_copy(op.kind)) return;
    EXPECT_EQ(op.lane, Lane::kCopy);
    EXPECT_EQ(op.bytes, static_cast<double>(op.elements));
    EXPECT_EQ(op.disk, task.micro_batch < 0);  // states go to disk here, activations to the host's memory
    (op.disk ? to_disk : to_host) += 1;
  });
  EXPECT_GT(to_disk, 0);
  EXPECT_GT(to_host, 0);
}

TEST(Offload, RandomJobsPassTheVerifier) {
  RandomJobs jobs(31);
  int activations = 0;
  for (int i = 0; i < 400; ++i) {
    Job job = jobs.next();
    job.plan.offload.optimizer = jobs.pick<Storage>({Storage::kNone, Storage::kHost, Storage::kDisk});
    job.plan.offload.activations = jobs.pick<Storage>({Storage::kHost, Storage::kDisk});
    if (check(job)) continue;
    EXPECT_THAT(verify(lowered(job)), IsEmpty()) << summary(job.plan);
    ++activations;
  }
  EXPECT_GT(activations, 100);
}

TEST(Offload, RefusesWhatCannotBeOffloaded) {
  Job job = offloaded(Storage::kNone, Storage::kHost);
  job.plan.recompute = Recompute::kFull;
  EXPECT_EQ(check(job).value().rule, "offload-finds-activations");
  job.plan.recompute = Recompute::kNone;
  job.plan.stage_recompute = {Recompute::kNone, Recompute::kFull};
  EXPECT_EQ(check(job).value().rule, "offload-finds-activations");
  job.plan.stage_recompute.clear();
  job.plan.schedule = Schedule::kZeroBubble;
  EXPECT_EQ(check(job).value().rule, "offload.activations-supported");
}

// Four layers, every second a mixture: 0 and 2 are dense and in one slot, 1 and 3 in the other. Every third: mixture 2
// needs another room in the slot of dense 0. Each layer offloads what it saves itself.
TEST(Offload, KeepsLayersWithAndWithoutExpertsApart) {
  for (const auto& [every, rooms] : {std::pair{2, 2u}, {3, 3u}}) {
    Job job = offloaded(Storage::kNone, Storage::kHost);
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .every = every};
    job.plan.pipeline = 1;
    const Program program = lowered(job);
    EXPECT_THAT(verify(program), IsEmpty());
    const ChunkTemplate& kind = program.kinds[0];
    std::set<std::int64_t> staged;
    std::map<bool, std::set<std::int64_t>> sizes;  // by kind of layer
    for (int layer = 0; layer < 4; ++layer) {
      const Op& store =
          program.bodies[static_cast<std::size_t>(kind.store_layer[static_cast<std::size_t>(layer)])].ops[0];
      staged.insert(kind.buffers[static_cast<std::size_t>(store.in[0])].offset);
      sizes[(layer + 1) % every == 0].insert(store.elements);
    }
    EXPECT_EQ(staged.size(), rooms);
    EXPECT_EQ(sizes[false].size(), 1u);
    EXPECT_EQ(sizes[true].size(), 1u);
    EXPECT_NE(*sizes[false].begin(), *sizes[true].begin());
  }
}

TEST(Offload, SummaryNamesWhatIsAway) {
  EXPECT_THAT(summary(offloaded(Storage::kDisk, Storage::kHost).plan), HasSubstr(" optimizer=disk activations=host"));
}

TEST(OffloadMutation, ABackwardThatDoesNotWaitForItsFetch) {
  Program program = lowered(offloaded(Storage::kNone, Storage::kHost));
  Task& backward = first_of(program, TaskKind::kBackward, "backward");
  std::erase_if(backward.after, [&](const Dependency& d) {
    return program.roles[0].tasks[static_cast<std::size_t>(d.task)].kind == TaskKind::kFetch;
  });
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not wait for the activations of layer 1")));
}

TEST(OffloadMutation, AFetchThatDoesNotWaitForTheStore) {
  Program program = lowered(offloaded(Storage::kNone, Storage::kHost));
  Task& fetch = first_of(program, TaskKind::kFetch, "activations");
  std::erase_if(fetch.after, [&](const Dependency& d) {
    return program.roles[0].tasks[static_cast<std::size_t>(d.task)].kind == TaskKind::kStore;
  });
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not wait until they were stored")));
}

TEST(OffloadMutation, AForwardThatOverwritesWhatIsStillStored) {
  Program program = lowered(offloaded(Storage::kNone, Storage::kHost));
  auto& tasks = program.roles[0].tasks;
  Task& second = *std::find_if(tasks.begin(), tasks.end(), [](const Task& task) {
    return task.kind == TaskKind::kForward && task.micro_batch == 1;
  });
  second.after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites activations of layer 0")));
}

TEST(OffloadMutation, ABackwardThatDoesNotWaitForItsGradients) {
  Program program = lowered(gradients_away());
  Task& backward = first_of(program, TaskKind::kBackward, "backward");
  std::erase_if(backward.after, [&](const Dependency& d) {
    return d.before == 0 && program.roles[0].tasks[static_cast<std::size_t>(d.task)].kind == TaskKind::kFetch;
  });
  EXPECT_THAT(verify(program), Contains(HasSubstr("uses gradients of bucket 2 that nothing brought")));
}

TEST(OffloadMutation, GradientsThatAreBroughtBeforeTheyWereStored) {
  Program program = lowered(gradients_away());
  auto& tasks = program.roles[0].tasks;
  Task& second = *std::find_if(tasks.begin(), tasks.end(), [&](const Task& task) {
    return task.kind == TaskKind::kFetch && task.micro_batch == 1 &&
           program.body_of(task).name.find("gradients of bucket 2") != std::string::npos;
  });
  second.after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not wait until gradients of bucket 2 were stored")));
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites gradients of bucket 0")));
}

TEST(OffloadMutation, GradientsThatAreNotStored) {
  Program program = lowered(gradients_away());
  first_of(program, TaskKind::kStore, "gradients of bucket 2").after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites gradients of bucket 2")));
}

TEST(OffloadMutation, GradientsThatAreAddedToWhileTheyAreStored) {
  Program program = lowered(gradients_away());
  auto& tasks = program.roles[0].tasks;
  Task& second = *std::find_if(tasks.begin(), tasks.end(), [](const Task& task) {
    return task.kind == TaskKind::kBackward && task.micro_batch == 1;
  });
  std::erase_if(second.after,
                [&](const Dependency& d) { return tasks[static_cast<std::size_t>(d.task)].kind == TaskKind::kStore; });
  EXPECT_THAT(verify(program), Contains(HasSubstr("changes gradients of bucket 1 that task")));
}

TEST(OffloadMutation, AStateThatIsNotWaitedFor) {
  Program program = lowered(offloaded(Storage::kHost, Storage::kNone));
  Task& step = first_of(program, TaskKind::kOptimizer, "optimizer");
  std::erase_if(step.after, [](const Dependency& d) { return d.before == 1; });
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not wait for the state of bucket 1")));
}

TEST(OffloadMutation, AStateThatIsNotGivenBack) {
  Program program = lowered(offloaded(Storage::kHost, Storage::kNone));
  first_of(program, TaskKind::kStore, "state of bucket 0").after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not give back the state of bucket 0")));
}

/// Two replicas of a stage with embedding, four layers and head; parameters offloaded.
Job parameters_away(int data) {
  Job job = tiny_job();
  job.training.global_batch = 4;
  job.plan.data = data;
  job.plan.zero_stage = 3;
  job.plan.offload.parameters = Storage::kHost;
  return job;
}

TEST(Offload, ParametersLeaveTheDeviceButForTwoShards) {
  for (const int data : {1, 2}) {
    Job job = parameters_away(data);
    const Program away = lowered(job);
    job.plan.offload.parameters = Storage::kNone;
    const Program kept = lowered(job);
    EXPECT_EQ(bytes_of(away, 0, Space::kOffloadedParameter), bytes_of(kept, 0, Space::kParameter));
    EXPECT_EQ(bytes_of(away, 0, Space::kParameter), 0);
    std::int64_t widest = 0, in_use = 0;
    for (const Bucket& bucket : away.kinds[0].buckets) widest = std::max(widest, bucket.shard * 4);
    EXPECT_EQ(bytes_of(away, 0, Space::kStaging), 2 * widest);
    for (const Bucket& bucket : away.kinds[0].buckets) in_use = std::max(in_use, bucket.parameter_slot);
    EXPECT_GT(in_use, 0);
    EXPECT_THAT(verify(away), IsEmpty());
    EXPECT_THAT(verify(kept), IsEmpty());
  }
}

TEST(Offload, ChecksWaitsForParameters) {
  Program program = lowered(parameters_away(2));
  const auto gathers = [&](std::size_t which) -> Task& {
    for (Task& task : program.roles[0].tasks) {
      if (task.kind == TaskKind::kGatherParameters && which-- == 0) return task;
    }
    throw std::out_of_range("no such gather");
  };
  std::erase_if(gathers(2).after, [](const Dependency& d) { return d.before == 0; });  // it takes the slot of the first
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites parameters that task")));
  program = lowered(parameters_away(2));
  first_of(program, TaskKind::kFetch, "fetch parameters of bucket 1").after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites parameters that task")));
  program = lowered(parameters_away(2));
  first_of(program, TaskKind::kFetch, "fetch parameters of bucket 2").after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("overwrites the parameters of bucket 0")));
  program = lowered(parameters_away(1));
  first_of(program, TaskKind::kStore, "store parameters of bucket 1").after.clear();
  EXPECT_THAT(verify(program), Contains(HasSubstr("does not give back the parameters of bucket 1")));
}

}  // namespace
}  // namespace trivium::program
