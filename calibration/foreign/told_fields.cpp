// What traces tell of the job that they are of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>

#include "base/refuse.h"
#include "calibration/foreign/foreign_files.h"

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;
using imports::KernelTrace;

struct Axis {
  std::string_view field;
  std::array<std::string_view, 3> words;  ///< of a group's description, lower case
};

// Megatron-Core's descriptions and the names of torchtitan's meshes.
constexpr Axis kExperts{"expert", {"expert_model_parallel_group", "mesh_ep", "expert_parallel"}};
constexpr std::array<Axis, 3> kAxes{{{"tensor", {"tensor_model_parallel_group", "mesh_tp", "tensor_parallel"}},
                                     {"pipeline", {"pipeline_model_parallel_group", "mesh_pp", "pipeline_parallel"}},
                                     {"context", {"context_parallel_group", "mesh_cp", "context_parallel"}}}};

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

int size_of_axis(const KernelTrace& trace, const Axis& axis) {
  for (const imports::ProcessGroup& group : trace.groups) {
    const std::string description = in_small_letters(group.description);
    const bool named =
        std::ranges::any_of(axis.words, [&](std::string_view word) { return description.starts_with(word); });
    if (named && group.size > 0) return group.size;
  }
  return 1;
}

/// How many parts DTensor cuts a product into: of the whole one to what it runs on this rank; 1 without DTensor.
int parts_of_products(const KernelTrace& trace) {
  const auto volume = [&](const imports::Operator& op) {
    double product = 1;
    if (op.shapes < 0) return 0.0;
    const imports::Shapes& shapes = trace.shapes[static_cast<std::size_t>(op.shapes)];
    if (shapes.size() < 2 || shapes[0].size() != 2 || shapes[1].size() != 2) return 0.0;
    for (const std::int64_t size : {shapes[0][0], shapes[0][1], shapes[1][1]}) product *= static_cast<double>(size);
    return product;
  };
  double most = 1;
  for (const imports::Operator& op : trace.operators) {
    if (op.is_wrapper || trace.name_of(op) != "aten::mm") continue;
    for (std::int32_t at = op.parent; at >= 0;) {
      const imports::Operator& above = trace.operators[static_cast<std::size_t>(at)];
      if (above.is_wrapper && above.name == op.name && volume(op) > 0)
        most = std::max(most, volume(above) / volume(op));
      at = above.parent;
    }
  }
  constexpr double kMost = 4096;
  return static_cast<int>(std::lround(std::min(most, kMost)));
}

/// Whether the traces are of stages: they transfer, and some have no embedding.
bool is_piped(const ForeignRun& run) {
  bool transfers = false, all_embed = true;
  for (const KernelTrace& trace : run.traces) {
    bool embeds = false;
    for (const imports::Operator& op : trace.operators) embeds = embeds || trace.name_of(op) == "aten::embedding";
    all_embed = all_embed && embeds;
    for (const Kernel& kernel : trace.kernels) transfers = transfers || kernel.other_collective == "c10d::send";
  }
  return transfers && !all_embed;
}

bool exchanges(const KernelTrace& trace, program::OpKind kind, int ranks) {
  return std::ranges::any_of(trace.kernels, [&](const Kernel& kernel) {
    return kernel.collective == kind && (kernel.ranks == 0 || kernel.ranks == ranks);
  });
}

/// Parameters gathered and gradients scattered among the replicas, or only added up.
int zero_stage(const KernelTrace& trace, int data) {
  using program::OpKind;
  if (data == 1) return 0;
  return exchanges(trace, OpKind::kAllGather, data) && exchanges(trace, OpKind::kReduceScatter, data) ? 3 : 0;
}

/// Ranks that experts are spread over: of a group that is named for them, or all replicas if those exchange rows all to
/// all. Context ranks exchange heads the same way, in groups of their own.
int expert_ranks(const KernelTrace& trace, int data) {
  constexpr double kCountsBytes = 4096;  // below, ranks tell each other how many rows come
  if (const int named = size_of_axis(trace, kExperts); named > 1) return data % named == 0 ? named : 1;
  const bool exchange = std::ranges::any_of(trace.kernels, [&](const Kernel& kernel) {
    return kernel.collective == program::OpKind::kAllToAll && kernel.bytes > kCountsBytes &&
           (kernel.ranks == 0 || kernel.ranks == data);
  });
  return exchange ? data : 1;
}

/// Ranks of the job. A single process without `distributedInfo` that communicates with no other is the whole job.
int world_of(const ForeignRun& run) {
  const KernelTrace& trace = run.traces.front();
  if (trace.world_size && *trace.world_size >= 1) return *trace.world_size;
  const auto communicates = [](const KernelTrace& each) {
    return std::ranges::any_of(each.kernels, [](const Kernel& kernel) {
      return kernel.kind == imports::KernelClass::kCollective || kernel.collective || !kernel.other_collective.empty();
    });
  };
  if (run.traces.size() == 1 && !trace.kernels.empty() && !communicates(trace)) return 1;
  base::refuse(
      trace.file,
      "does not tell how many ranks ran (distributedInfo of torch.distributed); give a plan file for \"auto\"");
}

/// Samples and tokens of every embedding's input, within one marked iteration.
struct Looks {
  std::vector<std::int64_t> sizes;
  int count = 0;
};

Looks looks_of(const KernelTrace& trace) {
  Looks looks;
  std::set<std::int32_t> seen;
  for (const Kernel& kernel : trace.kernels) {
    if (!trace.marked.empty() &&
        (kernel.start_s < trace.marked.front().begin_s || kernel.start_s >= trace.marked.front().end_s))
      continue;
    for (std::int32_t at = kernel.launched_by; at >= 0; at = trace.operators[static_cast<std::size_t>(at)].parent) {
      const imports::Operator& op = trace.operators[static_cast<std::size_t>(at)];
      if (op.shapes < 0 || trace.name_of(op) != "aten::embedding" || !seen.insert(at).second) continue;
      const imports::Shapes& shapes = trace.shapes[static_cast<std::size_t>(op.shapes)];
      if (shapes.size() < 2 || shapes[1].size() != 2) continue;
      looks.sizes = shapes[1];
      ++looks.count;
    }
  }
  return looks;
}

std::string_view precision_of(const std::string& type) {
  if (type.find("BFloat16") != std::string::npos) return "bf16";
  if (type.find("Half") != std::string::npos) return "fp16";
  return type == "double" ? "fp64" : type == "float" ? "fp32" : "";
}

}  // namespace

std::map<std::string, std::string> told_fields(const ForeignRun& run) {
  const KernelTrace& trace = run.traces.front();
  const int world = world_of(run);
  std::map<std::string, std::string> fields;
  int model = 1;
  for (const Axis& axis : kAxes) {
    int size = size_of_axis(trace, axis);
    // What is exchanged tells what groups are not named for.
    if (axis.field == "tensor" && size == 1) size = parts_of_products(trace);
    if (axis.field == "pipeline" && size == 1 && is_piped(run)) size = std::max(1, world / model);
    if (size < 1 || world % (model * size) != 0) size = 1;
    fields[std::string(axis.field)] = std::to_string(size);
    model *= std::max(1, size);
  }
  const int data = std::max(1, world / model);
  fields["data"] = std::to_string(data);
  fields["zero_stage"] = std::to_string(zero_stage(trace, data));
  if (const int experts = expert_ranks(trace, data); experts > 1) fields["expert"] = std::to_string(experts);
  const int tensor = std::stoi(fields["tensor"]);
  // Groups of replicas scatter gradients, too. If both kinds of group have one size, nothing distinguishes them.
  if (tensor > 1 && tensor != data && exchanges(trace, program::OpKind::kReduceScatter, tensor) &&
      exchanges(trace, program::OpKind::kAllGather, tensor)) {
    fields["sequence_parallel"] = "true";
  }
  if (const auto precision = precision_of(trace.operand_type); !precision.empty()) fields["precision"] = precision;
  const Looks looks = looks_of(trace);
  if (looks.count == 0) return fields;
  constexpr std::int64_t kMost = 1 << 20;
  const std::int64_t samples = looks.sizes[0], sequence = looks.sizes[1];
  if (samples < 1 || samples > kMost || sequence < 1 || sequence > kMost * kMost) return fields;
  fields["micro_batch"] = std::to_string(samples);
  fields["sequence"] = std::to_string(sequence);
  fields["global_batch"] = std::to_string(samples * looks.count * data);
  return fields;
}

}  // namespace trivium::calibration::foreign
