// What launch files say of hosts, of NVLink domains, and of what the hardware can do.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/capabilities.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

program::Job llama(int tensor, int pipeline, int data) {
  program::Job job;
  job.model = models::load_model("llama3-8b");
  job.training.sequence = 4096;
  job.training.global_batch = data * 7;  // no "72" but that of a rack
  job.training.total_tokens = 100 * job.training.global_batch * job.training.sequence;
  job.plan.tensor = tensor, job.plan.pipeline = pipeline, job.plan.data = data;
  job.plan.sequence_parallel = tensor > 1;
  job.plan.attention = program::Attention::kFlash;
  job.plan.stack = "megatron-core";
  return job;
}

std::string file(const program::Job& job, const std::string& cluster, Trainer trainer) {
  return export_plan(job, hardware::load_cluster(cluster), trainer).text;
}

// Two racks of NVL72 are 36 hosts of four (NVIDIA GB200 NVL72 data sheet: 18 compute trays, 72 GPUs).
TEST(Hosts, AreWhatLaunchersStartProcessesOn) {
  const program::Job job = llama(8, 1, 18), alone = llama(1, 1, 144);
  const std::string cluster = "gb200-nvl72:2";
  const char* torchrun = "torchrun --nnodes 36 --nproc-per-node 4 ";
  const char* slurm = "#SBATCH --nodes=36 --ntasks-per-node=1 --gpus-per-node=4 ";
  EXPECT_THAT(file(job, cluster, Trainer::kMegatron), AllOf(HasSubstr(torchrun), HasSubstr(slurm)));
  EXPECT_THAT(file(job, cluster, Trainer::kTorchtitan), AllOf(HasSubstr(torchrun), HasSubstr(slurm)));
  EXPECT_THAT(file(job, cluster, Trainer::kMegatronBridge), HasSubstr(torchrun));
  EXPECT_THAT(file(alone, cluster, Trainer::kFsdp2), HasSubstr(torchrun));
  EXPECT_THAT(file(job, cluster, Trainer::kNemo),
              AllOf(HasSubstr("num_nodes=36, num_gpus_per_node=4"), HasSubstr("ntasks_per_node=4")));
  EXPECT_THAT(file(job, cluster, Trainer::kDeepspeed),
              AllOf(HasSubstr("slots=4\" for each of 36 nodes"), HasSubstr("--num_nodes 36 --num_gpus 4 ")));
  EXPECT_THAT(file(job, cluster, Trainer::kAccelerate),
              AllOf(HasSubstr("num_machines: 36"), HasSubstr("num_processes: 144")));
  for (const TrainerVersion& trainer : trainers()) {
    SCOPED_TRACE(trainer.name);
    const std::string text = file(trainer.trainer == Trainer::kFsdp2 ? alone : job, cluster, trainer.trainer);
    EXPECT_THAT(text, HasSubstr("# Every 18 hosts in a row share an NVLink domain"));
    EXPECT_THAT(text, AllOf(Not(HasSubstr(" 72")), Not(HasSubstr("=72"))));
  }
}

// Four racks with 64 devices of each: 16 hosts of four in a rack, 64 in all.
TEST(Hosts, OfPartsOfRacksAreEven) {
  const Launch launch = export_plan(llama(8, 1, 32), hardware::load_cluster("gb200-nvl72:4x64"), Trainer::kMegatron);
  EXPECT_THAT(launch.text, AllOf(HasSubstr("--nnodes 64 --nproc-per-node 4"), HasSubstr("# Every 16 hosts in a row")));
  EXPECT_TRUE(launch.losses.empty());
  const Launch uneven = export_plan(llama(8, 1, 32), hardware::load_cluster("gb200-nvl72:4"), Trainer::kMegatron);
  EXPECT_THAT(uneven.text, HasSubstr("--nnodes 64 --nproc-per-node 4"));
  EXPECT_THAT(uneven.losses,
              testing::Contains(Loss{"cluster",
                                     "its NVLink domains are filled unevenly: 256 ranks are no multiple of "
                                     "72; --devices-per-node takes equally many of each"}));
  EXPECT_THAT(file(llama(2, 1, 1), "gb200-nvl72", Trainer::kMegatron), HasSubstr("--nnodes 1 --nproc-per-node 2 "));
  EXPECT_THAT(file(llama(2, 1, 1), "dgx-h100", Trainer::kMegatron),
              AllOf(HasSubstr("--nnodes 1 --nproc-per-node 2 "), Not(HasSubstr("NVLink domain"))));
}

TEST(Hosts, ComeBackAsRanks) {
  for (const Trainer trainer :
       {Trainer::kMegatron, Trainer::kMegatronBridge, Trainer::kTorchtitan, Trainer::kDeepspeed, Trainer::kFsdp2}) {
    SCOPED_TRACE(version_of(trainer).name);
    const program::Job job = trainer == Trainer::kFsdp2 ? llama(1, 1, 144) : llama(8, 1, 18);
    ImportRequest request;
    request.text = file(job, "gb200-nvl72:2", trainer);
    request.where = "file";
    request.model = job.model;
    request.ranks = 144;
    const Imported imported = import_plan(request, trainer_of(request));
    EXPECT_EQ(imported.job.plan.tensor, job.plan.tensor);
    EXPECT_EQ(imported.job.plan.data, job.plan.data);
    EXPECT_EQ(imported.job.plan.ranks(), 144);
  }
}

bool asks_for_overlap(const std::string& text) {
  return text.find("tp-comm-overlap") != std::string::npos || text.find("tp_comm_overlap=True") != std::string::npos ||
         text.find("enable_async_tensor_parallel = true") != std::string::npos;
}

// Whatever the plan says, and whoever's stack it names.
TEST(PeerBuffers, AreAskedForWhereShippedHardwareHasThem) {
  int with = 0, without = 0;
  for (const std::string& name : hardware::shipped_profiles()) {
    const hardware::Node node = hardware::load_node(name);
    if (node.device.kind != hardware::DeviceKind::kGpu || node.devices < 2) continue;
    const bool old = name.find("v100") != std::string::npos,
               pcie = name.find("pcie") != std::string::npos || name == "l40s" || name == "rtx-4090";
    for (const int tensor : {2, 16}) {
      if (tensor > node.devices && node.adapters == 0) continue;
      const int nodes = (tensor + node.devices - 1) / node.devices;
      for (const char* stack : {"trivium", "megatron-core", "torchtitan-fsdp2"}) {
        for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge, Trainer::kTorchtitan}) {
          program::Job job = llama(tensor, 1, 1);
          job.plan.stack = stack;
          job.plan.overlap.tensor = true;
          const bool asks = asks_for_overlap(file(job, fmt::format("{}:{}", name, nodes), trainer));
          EXPECT_EQ(asks, !old && !pcie && tensor <= node.devices)
              << name << " " << tensor << " " << stack << " " << version_of(trainer).name;
          ++(asks ? with : without);
        }
      }
    }
  }
  EXPECT_GT(with, 100);
  EXPECT_GT(without, 100);
}

TEST(PeerBuffers, ThatAreNotThereAreALoss) {
  program::Job job = llama(16, 1, 2);
  job.plan.overlap.tensor = true;
  const Launch launch = export_plan(job, hardware::load_cluster("dgx-h100:4"), Trainer::kMegatron);
  EXPECT_THAT(launch.losses, testing::Contains(AllOf(testing::Field(&Loss::field, "overlap.tensor"),
                                                     testing::Field(&Loss::what, HasSubstr("lie on 2 nodes")),
                                                     testing::Field(&Loss::becomes, "false"))));
}

}  // namespace
}  // namespace trivium::planner::launch
