// What the exporters share: counts of a job, and the losses several trainers have in common.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/launch/arguments.h"
#include "planner/launch/launch.h"
#include "planner/space/trainers.h"

namespace trivium::planner::launch {

/// What launchers call nodes: hosts that the plan's ranks fill, and processes on each.
struct Machines {
  int nodes = 1, devices = 1;
  int hosts_of_domain = 1;  ///< neighbouring hosts that share an NVLink domain
};
Machines machines_of(const program::Plan& plan, const hardware::Cluster& cluster, std::vector<Loss>& losses);

/// Head of a shell script that torchrun starts on every node: under Slurm the one that sbatch takes, which sets HEAD to
/// the first host and leaves starting on each node to srun; elsewhere the user sets HEAD and starts it on every node.
std::string script_head(const std::string& title, const Machines& machines);

/// A line of comment that says which hosts must share an NVLink domain; empty where each is its own.
std::string domain_comment(const Machines& machines);

/// Whether user buffers of Transformer Engine work only with UB_SKIPMC=1: without multicast objects, which need compute
/// capability 9.0 (transformer_engine/pytorch/module/base.py, initialize_ub). Of devices with NVLink those that have
/// 8-bit products have it.
bool lacks_multicast(const hardware::Cluster& cluster);

/// The plan's field overlap.tensor as the file may ask for it: through the memory of peers, only where the cluster
/// reaches it; a loss that says why where it does not.
bool overlaps_in_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster, std::vector<Loss>& losses);

/// Optimizer steps of the training; 100, and a loss that says so, where it does not say its tokens.
std::int64_t steps_of(const program::Training& training, std::vector<Loss>& losses);

/// Adds the loss of a placement that the trainer, whose ranks come in `order`, does not have.
void lose_placement(const program::Plan& plan, std::string_view order, std::vector<Loss>& losses);

/// Whether the schedule is the one that trainers with no choice of schedules run: 1f1b, interleaved over virtual
/// stages.
bool runs_usual_schedule(const program::Plan& plan);

/// Its name.
std::string usual_schedule_of(const program::Plan& plan);

/// Adds the losses of fields that none of the trainers has: recomputation that differs from stage to stage, fp64; and,
/// but for those that recompute `blocks` of first layers, of their number.
void lose_common(const program::Plan& plan, std::vector<Loss>& losses, bool blocks = false);

/// Adds the loss of layers that are recomputed together, for trainers that recompute every layer by itself.
void lose_groups(const program::Plan& plan, std::vector<Loss>& losses);

/// Adds the loss of products in 8 bits, for trainers whose files do not ask for them here.
void lose_fp8(const program::Plan& plan, std::vector<Loss>& losses);

/// Adds the loss of moments in 16 bits, which are fp32 where the file is run: `why` they are.
void lose_moments(const program::Plan& plan, std::string_view why, std::vector<Loss>& losses);

/// Megatron's number of layers to recompute: with the method block the first so many, with uniform between checkpoints.
int recomputed_together(const program::Plan& plan);

/// What selective recomputation drops, as Megatron-Core names it.
std::vector<std::string_view> module_names(const program::Plan& plan);

/// Megatron-Core's name of a recipe: "delayed" "tensorwise" "blockwise" "mxfp8"; empty for none and nvfp4.
std::string_view fp8_recipe(program::Fp8 recipe);

/// Megatron-Core's moe_flex_dispatcher_backend of how the plan's tokens travel: "deepep" "hybridep"; empty: its
/// dispatcher is not "flex" but "alltoall". A loss where the cluster has no hardware for it.
std::string_view flex_backend_of(const program::Plan& plan, const hardware::Cluster& cluster,
                                 std::vector<Loss>& losses);

/// Megatron-Core's name of how context ranks exchange keys and values: "p2p" "a2a" "a2a+p2p".
std::string_view exchange_of(const program::Plan& plan);

/// Why a file for the trainer cannot say how the job's weights are trained, with Muon or LoRA; empty: it can.
std::string unsaid_training(const program::Job& job, Trainer trainer);

/// Megatron-Core's settings of Muon and their values, {"muon_momentum", "0.95"}; none of a job with AdamW.
std::vector<std::pair<std::string, std::string>> muon_settings(const program::Job& job, std::vector<Loss>& losses);

/// Megatron-Bridge's value of cfg.peft. Precondition: adapters are used, alpha is whole.
std::string peft_of(const program::Job& job, std::vector<Loss>& losses);

/// Bytes of the dtype that gradients are reduced in, for buckets that are counted in elements.
std::int64_t bucket_elements(const program::Plan& plan);

/// "gpt3-175b as TP8 …, for Megatron-LM d98e8a64ddf3 of 2026-08-22": the first comment of every file.
std::string title_of(const program::Job& job, Trainer trainer);

/// The model's shape and its training as Megatron's flags (Megatron-LM and Megatron-DeepSpeed); losses of what it
/// cannot say.
std::vector<Argument> model_arguments(const models::Model& model, Trainer trainer, std::vector<Loss>& losses);
std::vector<Argument> training_arguments(const program::Training& training, std::vector<Loss>& losses);

/// Lines that set members of `object`, a TransformerConfig of Megatron-Core, to the model's shape; losses of what it
/// cannot say. Rotary frequencies that are scaled, and the vocabulary, are left to the caller.
std::string transformer_config(const models::Model& model, const program::Training& training, const char* object,
                               std::vector<Loss>& losses);
/// How chunks that do not hold equally many layers are written: "Et*5|t*6,L"; empty where they do.
std::string pipeline_layout(const program::Job& job);

/// A module for torchtitan that registers the model; losses of what its classes lack.
std::string torchtitan_flavor(const models::Model& model, std::vector<Loss>& losses);

Launch export_megatron(const program::Job& job, const hardware::Cluster& cluster);
Launch export_megatron_bridge(const program::Job& job, const hardware::Cluster& cluster);
Launch export_deepspeed(const program::Job& job, const hardware::Cluster& cluster);
Launch export_torchtitan(const program::Job& job, const hardware::Cluster& cluster);
Launch export_nemo(const program::Job& job, const hardware::Cluster& cluster);
Launch export_accelerate(const program::Job& job, const hardware::Cluster& cluster);
Launch export_fsdp2(const program::Job& job, const hardware::Cluster& cluster);

}  // namespace trivium::planner::launch
