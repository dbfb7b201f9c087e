#include "planner/launch/export_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/enum_name.h"
#include "base/quote.h"
#include "hardware_profiles/capabilities.h"
#include "program/lower/layout.h"
#include "program/plan/dtype.h"
#include "program/plan/stack.h"
#include "simulator/cost/supported.h"
#include "simulator/placement/peer_buffers.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner::launch {
namespace {

constexpr std::int64_t kStepsUnsaid = 100;

}  // namespace

Machines machines_of(const program::Plan& plan, const hardware::Cluster& cluster, std::vector<Loss>& losses) {
  const hardware::Node& first = cluster.groups.front().node;
  const int ranks = plan.ranks(), of_host = first.devices_of_host(), devices = std::min(ranks, of_host);
  const bool alike = std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const hardware::NodeGroup& group) {
    return group.node.devices_of_host() == of_host;
  });
  if (!alike || ranks % devices != 0) {
    losses.push_back(
        {"cluster", fmt::format("its nodes are filled unevenly; {} processes a node is that of the first", devices)});
  } else if (first.host_devices > 0 && ranks > first.devices && ranks % first.devices != 0) {
    losses.push_back({"cluster", fmt::format("its NVLink domains are filled unevenly: {} ranks are no multiple of {}; "
                                             "--devices-per-node takes equally many of each",
                                             ranks, first.devices)});
  }
  Machines machines{(ranks + devices - 1) / devices, devices};
  machines.hosts_of_domain = std::min(machines.nodes, std::max(1, first.devices / of_host));
  return machines;
}

std::string domain_comment(const Machines& machines) {
  if (machines.hosts_of_domain == 1) return "";
  return fmt::format(
      "# Every {} hosts in a row share an NVLink domain; Slurm's block topology sees to it with "
      "--segment={}.\n",
      machines.hosts_of_domain, machines.hosts_of_domain);
}

bool overlaps_in_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster, std::vector<Loss>& losses) {
  if (!plan.overlap.tensor || plan.tensor == 1) return false;
  const auto no = simulator::misplaced(plan, cluster) ? std::nullopt : simulator::without_peer_buffers(plan, cluster);
  if (no) losses.push_back({"overlap.tensor", no->reason, "false"});
  return !no;
}

bool lacks_multicast(const hardware::Cluster& cluster) {
  return std::ranges::any_of(cluster.groups, [](const hardware::NodeGroup& group) {
    return !hardware::has(group.node, hardware::Capability::kFp8Tensor);
  });
}

std::string script_head(const std::string& title, const Machines& machines) {
  // Slurm's reserved ids of steps: 4294967290 and more, an interactive shell's and a batch script's among them.
  return fmt::format(
      R"(#!/usr/bin/env bash
#SBATCH --nodes={nodes} --ntasks-per-node=1 --gpus-per-node={devices} --exclusive
# {title}.
# With Slurm: sbatch THIS_FILE, or srun --nodes={nodes} --ntasks-per-node=1 bash THIS_FILE. Else on every node, with the
# first host's name: HEAD=host0 bash THIS_FILE
{domain}start=
if [ -n "${{SLURM_JOB_ID:-}}" ]; then
  HEAD=${{HEAD:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}}
  case "${{SLURM_STEP_ID:-}}" in '' | 42949672??) start=srun ;; esac  # no step of srun: this is the first node alone
fi
)",
      fmt::arg("nodes", machines.nodes), fmt::arg("devices", machines.devices), fmt::arg("title", title),
      fmt::arg("domain", domain_comment(machines)));
}

std::int64_t steps_of(const program::Training& training, std::vector<Loss>& losses) {
  const std::int64_t tokens = training.global_batch * training.sequence;
  if (training.total_tokens > 0) return (training.total_tokens + tokens - 1) / tokens;
  losses.push_back({"total_tokens", fmt::format("not said; the file asks for {} steps", kStepsUnsaid)});
  return kStepsUnsaid;
}

void lose_placement(const program::Plan& plan, std::string_view order, std::vector<Loss>& losses) {
  if (has_order(plan, order)) return;
  losses.push_back({"placement", fmt::format("{}; ranks come in the order {}, innermost first: list the hosts so that "
                                             "each rank lands on its device",
                                             plan.placement, order)});
}

bool runs_usual_schedule(const program::Plan& plan) {
  return plan.schedule == program::usual_schedule(plan.virtual_stages);
}

std::string usual_schedule_of(const program::Plan& plan) {
  return std::string(program::traits_of(program::usual_schedule(plan.virtual_stages)).name);
}

void lose_common(const program::Plan& plan, std::vector<Loss>& losses, bool blocks) {
  // Those that have blocks are Megatron-Core's.
  if (plan.context_heads > 1 && !blocks) {
    losses.push_back({"context_heads", fmt::format("{}; all context ranks do the same", plan.context_heads), "1"});
  }
  if (sends_once(plan.expert_dispatch) && plan.expert > 1 && !blocks) {
    losses.push_back({"expert_dispatch",
                      fmt::format("{}; rows travel to experts by an all-to-all", name_of(plan.expert_dispatch)),
                      "all_to_all"});
  }
  if (plan.fp8_parameter_gather == program::Fp8Gather::kOn && !blocks) {
    losses.push_back({"fp8_parameter_gather", "on; parameters are gathered in 16 bits", "off"});
  }
  const auto& stages = plan.stage_recompute;
  if (std::adjacent_find(stages.begin(), stages.end(), std::not_equal_to<>()) != stages.end()) {
    losses.push_back({"stage_recompute",
                      fmt::format("one choice holds for all stages; written as {}", program::name_of(plan.recompute)),
                      std::string(kCleared)});
  }
  if (plan.recompute_layers > 0 && !blocks) {
    losses.push_back(
        {"recompute_layers", fmt::format("{}; all layers of a stage are recomputed", plan.recompute_layers), "0"});
  }
  if (plan.precision == program::DType::kFp64) losses.push_back({"precision", "fp64; written as fp32"});
}

void lose_groups(const program::Plan& plan, std::vector<Loss>& losses) {
  if (plan.recompute_group == 1) return;
  losses.push_back(
      {"recompute_group", fmt::format("{}; every layer is recomputed by itself", plan.recompute_group), "1"});
}

int recomputed_together(const program::Plan& plan) {
  return plan.recompute_layers > 0 ? plan.recompute_layers : plan.recompute_group;
}

void lose_fp8(const program::Plan& plan, std::vector<Loss>& losses) {
  if (plan.fp8 == program::Fp8::kNone) return;
  losses.push_back({"fp8", fmt::format("{}; products stay in 16 bits", program::name_of(plan.fp8))});
}

void lose_moments(const program::Plan& plan, std::string_view why, std::vector<Loss>& losses) {
  if (plan.moment_dtype == program::Moments::kFp32) return;
  losses.push_back({"moment_dtype", fmt::format("{}; {}", name_of(plan.moment_dtype), why), "fp32"});
}

std::string_view flex_backend_of(const program::Plan& plan, const hardware::Cluster& cluster,
                                 std::vector<Loss>& losses) {
  const program::ExpertDispatch how = program::stack_of(plan).expert_dispatch;
  if (!sends_once(how)) return "";
  for (const hardware::NodeGroup& group : cluster.groups) {
    if (!simulator::dispatch_lacks_hardware(plan, group.node)) continue;
    losses.push_back({"expert_dispatch",
                      fmt::format("{}; {} lacks what it needs: {}", name_of(how), group.node.name,
                                  hardware::rule_of(hardware::Capability::kTokenDispatch).needs),
                      "all_to_all"});
    return "";
  }
  return how == program::ExpertDispatch::kDeepEp ? "deepep" : "hybridep";
}

std::string_view exchange_of(const program::Plan& plan) {
  if (plan.context_method == program::ContextMethod::kAllToAll) return "a2a";
  return plan.context_heads > 1 ? "a2a+p2p" : "p2p";
}

std::vector<std::string_view> module_names(const program::Plan& plan) {
  if (plan.recompute_modules.empty()) return {name_of(program::Module::kCoreAttention)};
  std::vector<std::string_view> names;
  for (const program::Module module : plan.recompute_modules) names.push_back(name_of(module));
  return names;
}

std::string_view fp8_recipe(program::Fp8 recipe) {
  static constexpr std::array<std::string_view, 6> kNames{"", "delayed", "tensorwise", "blockwise", "mxfp8", ""};
  return base::name_at(kNames, recipe);
}

std::int64_t bucket_elements(const program::Plan& plan) {
  return std::max<std::int64_t>(1, plan.bucket_bytes / program::size_of(plan.reduce_dtype));
}

std::string pipeline_layout(const program::Job& job) {
  const std::vector<int> layers = program::chunk_layers(job);
  if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end()) return "";
  // Parts run by virtual chunk, then by rank: the order of the model, as ours.
  std::string layout = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) layout += '|';
    if (layers[i] > 0) layout += fmt::format("t*{}", layers[i]);
  }
  const int modules = job.model.mtp_depth();
  const std::string end = modules > 0 ? fmt::format("m*{},L", modules) : "L";
  return layout + (layers.back() > 0 ? "," + end : end);
}

std::string title_of(const program::Job& job, Trainer trainer) {
  const TrainerVersion& version = version_of(trainer);
  return fmt::format("{} as {}, for {} {} of {}", base::one_line(job.model.name), program::summary(job.plan),
                     version.software, version.version, version.date);
}

}  // namespace trivium::planner::launch
