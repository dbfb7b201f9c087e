#include "program/plan/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/enum_name.h"
#include "program/plan/stack.h"

namespace trivium::program {
namespace {

using base::JsonReader;
using Names = std::vector<std::string>;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const std::string& value) { return value; }
template <class Enum>
requires std::is_enum_v<Enum> std::string text_of(Enum value) { return std::string(name_of(value)); }
template <class Value>
std::string text_of(const std::vector<Value>& values) {
  std::string all;
  for (const Value& value : values) all += (all.empty() ? "" : ",") + text_of(value);
  return all;
}

template <class Value>
nlohmann::json json_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else {
    return value;
  }
}
template <class Enum>
requires std::is_enum_v<Enum> nlohmann::json json_of(const std::vector<Enum>& values) {
  auto array = nlohmann::json::array();
  for (const Enum value : values) array.push_back(name_of(value));
  return array;
}

void read_into(const PlanField&, const JsonReader& r, bool& into) { into = r.boolean(); }
void read_into(const PlanField& f, const JsonReader& r, int& into) {
  into = static_cast<int>(r.integer(f.least, f.most));
}
void read_into(const PlanField& f, const JsonReader& r, std::int64_t& into) { into = r.integer(f.least, f.most); }
void read_into(const PlanField&, const JsonReader& r, double& into) {
  into = r.number();
  if (!(into > 0 && into <= 1)) r.fail("is a share; give a number above 0 and at most 1");
}
void read_into(const PlanField& f, const JsonReader& r, std::string& into) {
  into = f.names == nullptr ? r.text() : r.one_of(f.names());
}
template <class Enum>
requires std::is_enum_v<Enum>
void read_into(const PlanField& f, const JsonReader& r, Enum& into) {
  const Names names = f.names();
  const std::string name = r.one_of(names);
  into = static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());  // which count from 0
}
template <class Value>
void read_into(const PlanField& f, const JsonReader& r, std::vector<Value>& into) {
  into.clear();
  for (const JsonReader& element : r.elements()) read_into(f, element, into.emplace_back());
}

// The names of an enumeration's values from the first to `kLast`.
template <auto kLast>
Names names_to() {
  Names names;
  for (int i = 0; i <= static_cast<int>(kLast); ++i) names.emplace_back(name_of(static_cast<decltype(kLast)>(i)));
  return names;
}

Names stacks() {
  Names names;
  for (const StackTraits& stack : all_stacks()) names.push_back(stack.name);
  return names;
}

// A row of the table; `Member` finds the field in a plan.
template <class Member>
PlanField row(PlanField field, Member) {
  field.text = [](const Plan& plan) { return text_of(Member{}(plan)); };
  field.json = [](const Plan& plan) { return json_of(Member{}(plan)); };
  field.read = [](const PlanField& f, const JsonReader& r, Plan& plan) { read_into(f, r, Member{}(plan)); };
  return field;
}

#define TRIVIUM_FIELD(member) \
  [](auto& plan) -> auto& { return plan.member; }

PlanField flag(const char* name, FieldGroup group, const char* title, const char* help) {
  return {name, FieldKind::kFlag, group, title, "", help, "false"};
}

PlanField count(const char* name, FieldGroup group, const char* title, const char* help, int least = 1) {
  return {name, FieldKind::kCount, group, title, "N", help, least == 0 ? "0" : "1", least, kMostCount};
}

PlanField choice(const char* name, FieldGroup group, const char* title, const char* values, const char* help,
                 Names (*names)(), const char* unused = nullptr) {
  return {name, FieldKind::kChoice, group, title, values, help, unused, 0, 0, names};
}

// `unused` is empty where a list only says what else holds for all.
PlanField counts(const char* name, FieldGroup group, const char* title, const char* help, int least,
                 const char* unused) {
  return {name, FieldKind::kCounts, group, title, "N,N,...", help, unused, least, kMostCount};
}

PlanField storage(const char* name, const char* title, const char* help) {
  return choice(name, FieldGroup::kMemory, title, "none|host|disk", help, names_to<Storage::kDisk>, "none");
}

std::string schedules_in_words() {
  std::string words;
  for (const ScheduleTraits& traits : schedule_table()) {
    const bool first = words.empty(), last = &traits == &schedule_table().back();
    words += fmt::format("{}{}", first ? "" : last ? " or " : ", ", traits.name);
  }
  return words;
}

PlanField first_layers() {
  PlanField layers = count("recompute_layers", FieldGroup::kMemory, "Recomputed layers",
                           "First layers of every chunk that full recomputation makes again; 0: all", 0);
  layers.absent_when_empty = true;
  return layers;
}

PlanField layer_group() {
  PlanField layers = count("recompute_group", FieldGroup::kMemory, "Recomputed together",
                           "Layers that full recomputation makes again together, from one kept input");
  layers.absent_when_empty = true;
  return layers;
}

PlanField module_list() {
  PlanField modules = choice("recompute_modules", FieldGroup::kMemory, "Recomputed modules", "NAME,NAME,...",
                             "What selective recomputation drops: core_attn, mlp, moe, shared_experts, layernorm, "
                             "moe_act or mla_up_proj; empty: core_attn",
                             names_to<static_cast<Module>(kModules - 1)>, "");
  modules.kind = FieldKind::kChoices;
  modules.absent_when_empty = true;
  return modules;
}

PlanField fp8_gather() {
  PlanField gather = choice("fp8_parameter_gather", FieldGroup::kMemory, "fp8 parameters", "stack|on|off",
                            "Keep and gather the layers' matrices in 8 bits alone, with fp8 and ZeRO 1 or 2",
                            names_to<Fp8Gather::kOff>, "stack");
  gather.absent_when_empty = true;
  return gather;
}

PlanField expert_dispatch() {
  PlanField dispatch =
      choice("expert_dispatch", FieldGroup::kCommunication, "Expert dispatch", "stack|all_to_all|deepep|hybrid",
             "How tokens travel to experts of other ranks: all_to_all (NCCL), DeepEP or HybridEP",
             names_to<ExpertDispatch::kHybrid>, "stack");
  dispatch.absent_when_empty = true;
  return dispatch;
}

std::vector<PlanField> split_fields() {
  using enum FieldGroup;
  static const std::string order_of_passes = "Order of passes: " + schedules_in_words();
  PlanField layers =
      counts("stage_layers", kSplit, "Layers by chunk", "Layers of every chunk in model order", 0, nullptr);
  PlanField sizes = counts("replica_micro_batch", kSplit, "Micro-batch by replica",
                           "Samples of a micro-batch of every replica, where they differ", 1, "");
  sizes.absent_when_empty = true;
  PlanField heads = count("context_heads", kSplit, "Context heads",
                          "Context ranks of a ring that exchange heads all to all, and are one of its ranks together");
  heads.absent_when_empty = true;
  PlanField zero = count("zero_stage", kMemory, "ZeRO stage",
                         "What data parallel ranks share: 1 optimizer, 2 gradients, 3 parameters", 0);
  zero.values = "0..3";
  zero.most = 3;
  return {
      row(count("tensor", kSplit, "Tensor parallel", "Tensor parallel ranks"), TRIVIUM_FIELD(tensor)),
      row(flag("sequence_parallel", kSplit, "Sequence parallel",
               "Split norms and dropout along the sequence inside the tensor group"),
          TRIVIUM_FIELD(sequence_parallel)),
      row(count("context", kSplit, "Context parallel", "Context parallel ranks: the sequence itself split"),
          TRIVIUM_FIELD(context)),
      row(choice("context_method", kSplit, "Context method", "ring|all_to_all",
                 "How context parallel ranks exchange keys and values", names_to<ContextMethod::kAllToAll>),
          TRIVIUM_FIELD(context_method)),
      row(heads, TRIVIUM_FIELD(context_heads)),
      row(count("pipeline", kSplit, "Pipeline stages", "Pipeline stages"), TRIVIUM_FIELD(pipeline)),
      row(count("virtual_stages", kSplit, "Virtual stages", "Model chunks per pipeline stage"),
          TRIVIUM_FIELD(virtual_stages)),
      row(choice("schedule", kSplit, "Schedule", "NAME", order_of_passes.c_str(),
                 names_to<static_cast<Schedule>(kSchedules - 1)>),
          TRIVIUM_FIELD(schedule)),
      row(layers, TRIVIUM_FIELD(stage_layers)),
      row(count("data", kSplit, "Data parallel", "Data parallel replicas"), TRIVIUM_FIELD(data)),
      row(zero, TRIVIUM_FIELD(zero_stage)),
      row(count("shard_group", kMemory, "Shard group", "Ranks the ZeRO state is split over; 0: all of data", 0),
          TRIVIUM_FIELD(shard_group)),
      row(count("expert", kSplit, "Expert parallel", "Expert parallel ranks"), TRIVIUM_FIELD(expert)),
      row(count("expert_tensor", kSplit, "Expert tensor parallel",
                "Tensor ranks that split each expert; 0: all of tensor, 1: experts are whole", 0),
          TRIVIUM_FIELD(expert_tensor)),
      row(expert_dispatch(), TRIVIUM_FIELD(expert_dispatch)),
      row(count("micro_batch", kSplit, "Micro-batch", "Samples of a micro-batch"), TRIVIUM_FIELD(micro_batch)),
      row(sizes, TRIVIUM_FIELD(replica_micro_batch)),
  };
}

std::vector<PlanField> execution_fields() {
  using enum FieldGroup;
  PlanField by_chunk = choice("stage_recompute", kMemory, "Recompute by chunk", "NAME,NAME,...",
                              "Recompute of every chunk in model order", names_to<Recompute::kFull>, "");
  by_chunk.kind = FieldKind::kChoices;
  PlanField bucket = count("bucket_bytes", kCommunication, "Gradient buckets",
                           "Bytes of gradients reduced together; 0: one bucket per layer", 0);
  bucket.kind = FieldKind::kBytes;
  bucket.most = kMostBytes;
  const auto overlap = [](const char* name, const char* title, const char* help) {
    return flag(name, kCommunication, title, help);
  };
  return {
      row(choice("recompute", kMemory, "Recompute", "none|selective|full",
                 "Activations recomputed in the backward pass", names_to<Recompute::kFull>, "none"),
          TRIVIUM_FIELD(recompute)),
      row(by_chunk, TRIVIUM_FIELD(stage_recompute)),
      row(first_layers(), TRIVIUM_FIELD(recompute_layers)),
      row(layer_group(), TRIVIUM_FIELD(recompute_group)),
      row(module_list(), TRIVIUM_FIELD(recompute_modules)),
      row(choice("precision", kSoftware, "Precision", "TYPE",
                 "bf16, fp16, fp32 or fp64; default: what the devices do best", names_to<DType::kFp16>),
          TRIVIUM_FIELD(precision)),
      row(choice("fp8", kSoftware, "fp8 products", "none|delayed|current|block|mxfp8|nvfp4",
                 "Recipe of the layers' products in 8 bits: how their operands are scaled; all else stays in precision",
                 names_to<Fp8::kNvfp4>, "none"),
          TRIVIUM_FIELD(fp8)),
      row(fp8_gather(), TRIVIUM_FIELD(fp8_parameter_gather)),
      row(choice("reduce_dtype", kCommunication, "Reduce in", "TYPE", "Type in which gradients are reduced",
                 names_to<DType::kFp16>),
          TRIVIUM_FIELD(reduce_dtype)),
      row(choice("moment_dtype", kMemory, "Moments in", "fp32|bf16",
                 "Type in which AdamW's moments are kept between steps; fp32: that of the values that it steps",
                 names_to<Moments::kBf16>, "fp32"),
          TRIVIUM_FIELD(moment_dtype)),
      row(choice("attention", kMemory, "Attention", "unfused|flash", "Attention kernels", names_to<Attention::kFlash>),
          TRIVIUM_FIELD(attention)),
      row(overlap("overlap.gradient_reduction", "Overlap gradients",
                  "Overlap gradient reductions with the backward pass"),
          TRIVIUM_FIELD(overlap.gradient_reduction)),
      row(overlap("overlap.parameter_gather", "Overlap gathers",
                  "Gather parameters during the pass before the one that needs them"),
          TRIVIUM_FIELD(overlap.parameter_gather)),
      row(overlap("overlap.pipeline", "Overlap transfers", "Overlap transfers between stages with compute"),
          TRIVIUM_FIELD(overlap.pipeline)),
      row(overlap("overlap.tensor", "Overlap tensor", "Overlap tensor collectives with weight-gradient GEMMs"),
          TRIVIUM_FIELD(overlap.tensor)),
      row(overlap("overlap.expert", "Overlap experts", "Overlap expert exchanges with a pass of another micro-batch"),
          TRIVIUM_FIELD(overlap.expert)),
      row(bucket, TRIVIUM_FIELD(bucket_bytes)),
      row(storage("offload.optimizer", "Offload optimizer", "Where the optimizer state is kept"),
          TRIVIUM_FIELD(offload.optimizer)),
      row(storage("offload.gradients", "Offload gradients", "Where gradients are kept"),
          TRIVIUM_FIELD(offload.gradients)),
      row(storage("offload.parameters", "Offload parameters", "Where parameters are kept; with ZeRO 3"),
          TRIVIUM_FIELD(offload.parameters)),
      row(storage("offload.activations", "Offload activations", "Where activations are kept"),
          TRIVIUM_FIELD(offload.activations)),
      row(choice("scatter_gather", kCommunication, "Scatter and gather", "stack|on|off",
                 "Each tensor rank sends a part to the next stage, which gathers", names_to<ScatterGather::kOff>),
          TRIVIUM_FIELD(scatter_gather)),
      row(choice("compression", kCommunication, "Compression", "none|fp16|top_k",
                 "Compression of gradients between replicas", names_to<Compression::kTopK>, "none"),
          TRIVIUM_FIELD(compression)),
      row({"top_k_share", FieldKind::kShare, kCommunication, "Share sent", "SHARE",
           "Share of the gradients that compression top_k sends", nullptr},
          TRIVIUM_FIELD(top_k_share)),
      row({"placement", FieldKind::kOrder, kSoftware, "Placement", "ORDER",
           "Dimensions, innermost first: tensor-context-data-pipeline", nullptr},
          TRIVIUM_FIELD(placement)),
      row(counts("stage_nodes", kSoftware, "Nodes by stage",
                 "Group of the cluster that holds each stage, counted from 0; default: ranks fill nodes in order", 0,
                 ""),
          TRIVIUM_FIELD(stage_nodes)),
      row(choice("stack", kSoftware, "Software stack", "NAME", "Whose traits: trivium, megatron, fsdp, ...", stacks),
          TRIVIUM_FIELD(stack)),
  };
}

#undef TRIVIUM_FIELD

}  // namespace

std::string_view name_of(FieldGroup group) {
  static constexpr std::array<std::string_view, 4> kNames{"Split", "Memory", "Communication",
                                                          "Arithmetic and software"};
  return base::name_at(kNames, group);
}

const std::vector<PlanField>& plan_field_table() {
  static const std::vector<PlanField> kTable = [] {
    std::vector<PlanField> all = split_fields();
    for (PlanField& field : execution_fields()) all.push_back(field);
    return all;
  }();
  return kTable;
}

const PlanField* find_plan_field(std::string_view name) {
  const auto& all = plan_field_table();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PlanField& field) { return field.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string text_of(const Plan& plan, std::string_view field) {
  const PlanField* known = find_plan_field(field);
  return known == nullptr ? "" : known->text(plan);
}

const std::vector<std::string>& plan_fields() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const PlanField& field : plan_field_table()) names.emplace_back(field.name);
    return names;
  }();
  return kNames;
}

namespace {

void settle_on_a_schedule(Plan& plan) {
  if (!traits_of(plan.schedule).takes(plan.virtual_stages)) plan.schedule = usual_schedule(plan.virtual_stages);
}

}  // namespace

void settle_schedule(Plan& plan) {
  if (plan.pipeline == 1) plan.virtual_stages = 1;
  settle_on_a_schedule(plan);
}

void settle(Plan& plan, std::string_view field) {
  if (field == "schedule") {
    const ScheduleTraits& traits = traits_of(plan.schedule);
    if (!traits.takes(plan.virtual_stages))
      plan.virtual_stages = std::max(traits.chunks, traits.virtual_stages ? 2 : 1);
  }
  if (field == "virtual_stages") settle_on_a_schedule(plan);
  if (field == "pipeline" && plan.pipeline == 1) settle_schedule(plan);
  if (field == "pipeline" || field == "virtual_stages" || field == "schedule") {
    plan.stage_layers.clear();
    plan.stage_recompute.clear();
    plan.stage_nodes.clear();
  }
  if (field == "recompute") plan.stage_recompute.clear();
  const bool as_many = plan.replica_micro_batch.size() == static_cast<std::size_t>(plan.data);
  if (field == "micro_batch" || !as_many) plan.replica_micro_batch.clear();
  if (plan.tensor == 1) plan.sequence_parallel = false;
  if (field == "zero_stage" && plan.zero_stage == 0) plan.shard_group = 0;
  const bool divides = plan.shard_group < plan.data && (plan.shard_group == 0 || plan.data % plan.shard_group == 0);
  if (!divides) plan.shard_group = 0;
}

}  // namespace trivium::program
