#include "calibration/measurements/published_row.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/units.h"
#include "hardware_profiles/load.h"
#include "program/plan/fields.h"

namespace trivium::calibration {
namespace {

using program::DType;

constexpr std::int64_t kMostCounted = 1 << 24;

const std::vector<std::string> kColumns = {"case",
                                           "source",
                                           "hardware",
                                           "software",
                                           "gpus",
                                           "gpus_per_node",
                                           "layers",
                                           "hidden",
                                           "heads",
                                           "seq",
                                           "vocab",
                                           "global_batch",
                                           "micro_batch",
                                           "tp",
                                           "pp",
                                           "vpp",
                                           "dp",
                                           "sequence_parallel",
                                           "zero_stage",
                                           "recompute",
                                           "precision",
                                           "attention",
                                           "dp_overlap",
                                           "reduce_dtype",
                                           "measured_iteration_s",
                                           "measured_peak_gib",
                                           "tier",
                                           "notes"};

const std::vector<std::string> kYesNo = {"yes", "no"};
const std::vector<std::string> kRecompute = {"none", "selective", "full"};      // order of program::Recompute
const std::vector<std::string> kAttention = {"unfused", "flash"};               // order of program::Attention
const std::vector<std::string> kPrecisions = {"fp64", "fp32", "bf16", "fp16"};  // order of program::DType
const std::vector<std::string> kTiers = {"A", "B", "C"};

bool yes(const CsvTable::Row& row, const std::string& column) { return row.one_of(column, kYesNo) == 0; }

models::Model model_of(const CsvTable::Row& row) {
  models::Model model;
  model.name = row.text("case");
  model.source = row.text("source");
  model.layers = row.integer("layers", 1, kMostCounted);
  model.hidden = row.integer("hidden", 1, kMostCounted);
  model.heads = model.kv_heads = row.integer("heads", 1, kMostCounted);
  if (model.hidden % model.heads != 0) {
    row.fail("heads", fmt::format("{} heads do not divide hidden {}", model.heads, model.hidden));
  }
  model.head_dim = model.hidden / model.heads;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = row.integer("vocab", 1, kMostCounted);
  model.max_sequence = row.integer("seq", 1, kMostCounted);
  return model;
}

/// What the row names, or the variant of it that the machine shows.
const program::StackTraits& stack_of(const CsvTable::Row& row, const hardware::Node& node) {
  std::vector<std::string> names;
  for (const program::StackTraits& stack : program::all_stacks()) names.push_back(stack.name);
  const program::StackTraits& named = program::all_stacks()[row.one_of("software", names)];
  const auto variant = node.stacks.find(named.name);
  if (variant == node.stacks.end()) return named;
  const program::StackTraits* shown = program::find_stack(variant->second);
  if (shown == nullptr) row.fail("software", fmt::format("{} names an unknown stack, {}", node.name, variant->second));
  return *shown;
}

/// What gradients are reduced in where a row does not say: Megatron's stacks reduce in the type that they keep.
DType wire_type(const program::StackTraits& stack, DType precision) {
  const bool keeps_wide = stack.half_gradients && !stack.keeps_half_gradients(precision);
  return stack.reduces_in_fp32_by_default || keeps_wide ? DType::kFp32 : precision;
}

program::Plan plan_of(const CsvTable::Row& row, const program::StackTraits& stack) {
  const auto degree = [&](const std::string& column) { return static_cast<int>(row.integer(column, 1, kMostCounted)); };
  program::Plan plan;
  plan.tensor = degree("tp");
  plan.pipeline = degree("pp");
  plan.virtual_stages = degree("vpp");
  plan.data = degree("dp");
  plan.micro_batch = degree("micro_batch");
  plan.schedule = program::usual_schedule(plan.virtual_stages);
  plan.sequence_parallel = yes(row, "sequence_parallel");
  plan.zero_stage = static_cast<int>(row.integer("zero_stage", 0, 3));
  plan.recompute = static_cast<program::Recompute>(row.one_of("recompute", kRecompute));
  plan.attention = static_cast<program::Attention>(row.one_of("attention", kAttention));
  plan.precision = static_cast<DType>(row.one_of("precision", kPrecisions));
  plan.reduce_dtype = wire_type(stack, plan.precision);
  if (!row.text("reduce_dtype").empty())
    plan.reduce_dtype = static_cast<DType>(row.one_of("reduce_dtype", kPrecisions));
  plan.stack = stack.name;
  plan.overlap.gradient_reduction =
      row.text("dp_overlap").empty() ? stack.overlaps_gradients_by_default : yes(row, "dp_overlap");
  plan.overlap.parameter_gather = plan.zero_stage == 3 && stack.gathers_ahead_by_default;
  plan.overlap.tensor = stack.overlaps_tensor_collectives && plan.tensor > 1;
  return plan;
}

hardware::Cluster cluster_of(const CsvTable::Row& row, std::int64_t gpus) {
  static const std::vector<std::string> kProfiles = hardware::shipped_profiles();
  const std::string& name = kProfiles[row.one_of("hardware", kProfiles)];
  hardware::Cluster cluster;
  hardware::Node node = hardware::load_node(name);
  if (const auto given = row.integer("gpus_per_node", 1, kMostCounted); given != node.devices) {
    row.fail("gpus_per_node", fmt::format("{} has {} devices a node, not {}", name, node.devices, given));
  }
  const auto nodes = static_cast<int>((gpus + node.devices - 1) / node.devices);
  cluster.name = fmt::format("{}:{}", name, nodes);
  cluster.groups.push_back({std::move(node), nodes});
  return cluster;
}

std::string join(const CsvTable::Row& row, std::initializer_list<const char*> columns) {
  std::string text;
  for (const char* column : columns) {
    if (!text.empty()) text += " | ";
    text += row.text(column);
  }
  return text;
}

}  // namespace

std::span<const std::string> published_columns() { return kColumns; }

PublishedRun read_published_run(const CsvTable::Row& row) {
  PublishedRun run;
  run.case_name = row.text("case");
  if (run.case_name.empty()) row.fail("case", "is empty; give the run a name");
  run.source = row.text("source");
  run.hardware = row.text("hardware");
  run.tier = kTiers[row.one_of("tier", kTiers)];
  run.job.model = model_of(row);
  const std::int64_t gpus = row.integer("gpus", 1, kMostCounted);
  run.cluster = cluster_of(row, gpus);
  const program::StackTraits& stack = stack_of(row, run.cluster.groups.front().node);
  run.job.plan = plan_of(row, stack);
  run.job.training.sequence = run.job.model.max_sequence;
  run.job.training.global_batch = row.integer("global_batch", 1, kMostCounted);
  run.job.training.dropout = stack.usual_dropout;
  if (run.job.plan.ranks() != gpus) {
    row.fail("gpus", fmt::format("tp {} x pp {} x dp {} are {} ranks, not {}", run.job.plan.tensor,
                                 run.job.plan.pipeline, run.job.plan.data, run.job.plan.ranks(), gpus));
  }
  run.iteration_s = row.positive("measured_iteration_s");
  if (!row.text("measured_peak_gib").empty()) run.peak_bytes = row.positive("measured_peak_gib") * base::kGiB;
  run.sweep = join(
      row, {"source", "hardware", "software", "layers", "hidden", "heads", "seq", "vocab", "gpus", "global_batch"});
  run.plan = join(row, {"micro_batch", "tp", "pp", "vpp", "dp", "sequence_parallel", "zero_stage", "recompute",
                        "precision", "attention", "dp_overlap", "reduce_dtype"});
  return run;
}

}  // namespace trivium::calibration
