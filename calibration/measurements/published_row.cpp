#include "calibration/measurements/published_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "calibration/measurements/published_model.h"
#include "calibration/measurements/published_notes.h"
#include "calibration/measurements/stage_balance.h"
#include "hardware_profiles/load.h"
#include "hardware_profiles/part_of_node.h"
#include "program/plan/fields.h"

namespace trivium::calibration {
namespace {

using program::DType;

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

using Reason = std::optional<std::string>;

bool yes(const CsvTable::Row& row, const std::string& column) { return row.one_of(column, kYesNo) == 0; }

/// How products in 8 or 4 bits are scaled, by what tables call it. Where a row does not say: delayed scaling, the
/// default of Transformer Engine and of Flax, and the one recipe there is in 4 bits. Rows scaled one by one
/// (torchao's rowwise) have products as slow as those of blocks.
std::optional<program::Fp8> recipe_of(const CsvTable::Row& row) {
  using program::Fp8;
  static const std::map<std::string_view, Fp8> kRecipes = {{"hybrid-delayed", Fp8::kDelayed},
                                                           {"te-amp_fp8", Fp8::kDelayed},
                                                           {"current-scaling", Fp8::kCurrent},
                                                           {"tensorwise-float8", Fp8::kCurrent},
                                                           {"tensorwise with float8 all-gather", Fp8::kCurrent},
                                                           {"rowwise-float8", Fp8::kBlock},
                                                           {"rowwise with bfloat16 all-gather", Fp8::kBlock},
                                                           {"block", Fp8::kBlock},
                                                           {"blockwise", Fp8::kBlock},
                                                           {"mxfp8", Fp8::kMxfp8},
                                                           {"nvfp4", Fp8::kNvfp4}};
  const std::string& precision = row.text("precision");
  if (precision != "fp8" && precision != "fp4") return Fp8::kNone;
  const std::string& recipe = row.given("fp8_recipe");
  if (recipe.empty()) return precision == "fp4" ? Fp8::kNvfp4 : Fp8::kDelayed;
  const auto found = kRecipes.find(recipe);
  return found == kRecipes.end() ? std::nullopt : std::optional(found->second);
}

Reason why_not_this_precision(const CsvTable::Row& row) {
  const auto recipe = recipe_of(row);
  if (!recipe) return fmt::format("fp8_recipe {}: not a recipe of the plan", row.given("fp8_recipe"));
  if (*recipe != program::Fp8::kNone || row.find("precision", kPrecisions)) return std::nullopt;
  return fmt::format("precision {}: not one of the plan", row.text("precision"));
}

/// Replicas: where a row does not say, what the rest of the split leaves of the devices, if that is a whole number.
std::int64_t replicas_of(const CsvTable::Row& row) {
  if (!row.text("dp").empty()) return row.count("dp");
  const std::int64_t gpus = row.integer("gpus", 1, CsvTable::Row::kMostCounted);
  const std::int64_t split = row.count("tp") * row.count("cp") * row.count("pp");
  return std::max<std::int64_t>(1, gpus / split);
}

/// Recipes of LoRA (adapters_of) leave recomputation off, and their rows do not say so.
bool recipe_recomputes_nothing(const CsvTable::Row& row) {
  return row.given("task") == "lora" && row.text("recompute").empty();
}

/// Columns of the split that the source does not print.
Reason why_no_split(const CsvTable::Row& row) {
  for (const char* column : {"micro_batch", "tp", "pp", "zero_stage", "global_batch", "attention"}) {
    if (row.text(column).empty()) return fmt::format("{} is not given", column);
  }
  if (row.text("sequence_parallel").empty() && row.text("tp") != "1") return "sequence_parallel is not given";
  if (row.text("vpp").empty() && row.text("pp") != "1") return "vpp is not given";
  if (row.text("recompute").empty()) {
    if (recipe_recomputes_nothing(row)) return std::nullopt;
    return "recompute is not given";
  }
  if (!modules_of(row)) return "notes: modules that a plan does not recompute by themselves";
  if (row.text("recompute") != kSelectiveMixture && !row.find("recompute", kRecompute)) {
    return fmt::format("recompute {}: the plan cannot say which products are kept", row.text("recompute"));
  }
  return std::nullopt;
}

/// Experts of a plan lie on neighbouring replicas, each split over neighbouring tensor ranks or whole on one of them.
Reason why_no_experts(const CsvTable::Row& row) {
  if (row.given("experts").empty()) return std::nullopt;
  const std::int64_t tensor = row.count("tp"), expert = row.count("ep"), data = replicas_of(row);
  const std::int64_t expert_tensor = row.count("etp", tensor);
  if (tensor % expert_tensor != 0) {
    return fmt::format("experts split over {} of {} tensor ranks, which it does not divide", expert_tensor, tensor);
  }
  const std::int64_t sharing = tensor / expert_tensor;  // tensor ranks with experts of their own
  if (expert % sharing != 0 || data % (expert / sharing) != 0) {
    return fmt::format(
        "{} expert ranks over {} replicas of {} tensor ranks that split experts {} ways: the plan has "
        "no such groups",
        expert, data, tensor, expert_tensor);
  }
  return std::nullopt;
}

Reason why_no_task(const CsvTable::Row& row) {
  const std::string& task = row.given("task");
  if (task.empty() || task == "pretrain" || task == "sft" || task == "lora") return std::nullopt;
  return fmt::format("task {}: neither pretraining nor fine-tuning of all weights or of adapters (lora)", task);
}

/// Adapters of models of 8B, and of 70B and more, and tokens of the documents that samples are packed of (0: one).
struct AdapterRecipe {
  program::Lora small, large;
  std::int64_t document = 0;
};

/// Tokens of one of SQuAD's samples with its prompt: 906 bytes each (79,346,108 of 87,599 samples: the data set's card,
/// huggingface.co/datasets/rajpurkar/squad), of them about 840 of text, at somewhat more than 4 bytes a token. That
/// attention is counted of so short ones show the FLOPs that Megatron-Bridge prints (validation/README.md).
constexpr std::int64_t kSquad = 200;

/// Adapters of a LoRA row, which tables do not print: those of the recipes that the software comes with.
/// MLPerf Training v4.0 (NVIDIA, llama2_70b_lora, megatron_gpt_peft_tuning_config.yaml): rank 16, alpha 32, attention.
/// NeMo 1 (megatron_gpt_finetuning_config.yaml): rank and alpha 32, queries, keys and values alone.
/// NeMo 2 (finetune_recipe, performance_mode), likewise, and Megatron-Bridge (llama3.py, llama3_*_peft_config), with
/// all targets: rank 8 and alpha 16 for 8B models, 16 and 32 for 70B; both pack SQuAD's samples
/// (packed_sequence_specs).
const AdapterRecipe* adapters_of(const CsvTable::Row& row) {
  constexpr program::Lora kBenchmark{16, 32, true, true, false, false}, kWide{32, 32, true, false, false, false};
  static const std::map<std::string_view, AdapterRecipe> kRecipes = {
      {"megatron-nemo-mlperf", {kBenchmark, kBenchmark}},
      {"megatron-nemo1", {kWide, kWide}},
      {"megatron-nemo2", {{8, 16, true, false, false, false}, {16, 32, true, false, false, false}, kSquad}},
      {"megatron-bridge", {{8, 16}, {16, 32}, kSquad}}};
  const auto found = kRecipes.find(row.text("software"));
  return found == kRecipes.end() ? nullptr : &found->second;
}

Reason why_no_adapters(const CsvTable::Row& row) {
  if (row.given("task") != "lora" || adapters_of(row) != nullptr) return std::nullopt;
  return fmt::format("task lora: no recipe of {} is known", row.text("software"));
}

/// Words that this reader does not know, where others stand for a setting.
Reason why_unknown_word(const CsvTable::Row& row) {
  const std::pair<const char*, std::span<const std::string>> words[] = {
      {"attention", kAttention}, {"sequence_parallel", kYesNo}, {"dp_overlap", kYesNo}, {"reduce_dtype", kPrecisions}};
  for (const auto& [column, known] : words) {
    if (row.text(column).empty() || row.find(column, known)) continue;
    return fmt::format("{}: {}", column, row.unknown(column, known));
  }
  return std::nullopt;
}

/// Ranks that the split makes, against `gpus`.
Reason why_no_ranks(const CsvTable::Row& row) {
  const std::int64_t tensor = row.count("tp"), context = row.count("cp"), pipeline = row.count("pp"),
                     data = replicas_of(row), gpus = row.integer("gpus", 1, CsvTable::Row::kMostCounted);
  if (tensor * context * pipeline * data == gpus) return std::nullopt;
  const std::string cp = context > 1 ? fmt::format(" x cp {}", context) : "";
  return fmt::format("gpus: tp {}{} x pp {} x dp {} are {} ranks, not {}", tensor, cp, pipeline, data,
                     tensor * context * pipeline * data, gpus);
}

Reason why_unsupported(const CsvTable::Row& row) {
  for (const auto& why : {why_no_model, why_no_task, why_no_adapters, why_not_this_precision, why_no_split,
                          why_unknown_word, why_no_experts, why_no_ranks}) {
    if (Reason reason = why(row)) return reason;
  }
  return std::nullopt;
}

/// The variant of a stack that switches of a recipe show, noted where a table's rows were traced to their recipes: the
/// stack NAME-graphs or NAME-flex. Null where the row has no such switch, or the stack no such variant.
const program::StackTraits* traced_variant(const CsvTable::Row& row, const program::StackTraits& named) {
  const bool in_graphs = row.given("cuda_graph") == "full_iteration";
  if (!in_graphs && !notes_flex_dispatcher(row)) return nullptr;
  return program::find_stack(named.name + (in_graphs ? "-graphs" : "-flex"));
}

/// What the row names, or the variant of it that the machine or the row's recipe shows.
const program::StackTraits* stack_of(const CsvTable::Row& row, const hardware::Node& node, Reason& unsupported) {
  std::vector<std::string> names;
  for (const program::StackTraits& stack : program::all_stacks()) names.push_back(stack.name);
  const auto index = row.find("software", names);
  if (!index) {
    unsupported = fmt::format("software: {}", row.unknown("software", names));
    return nullptr;
  }
  const program::StackTraits& named = program::all_stacks()[*index];
  if (const program::StackTraits* variant = traced_variant(row, named)) return variant;
  const auto variant = node.stacks.find(named.name);
  if (variant == node.stacks.end()) return &named;
  const program::StackTraits* shown = program::find_stack(variant->second);
  if (shown == nullptr) row.fail("software", fmt::format("{} names an unknown stack, {}", node.name, variant->second));
  return shown;
}

/// What gradients are reduced in where a row does not say: Megatron's stacks reduce in the type that they keep.
DType wire_type(const program::StackTraits& stack, DType precision) {
  const bool keeps_wide = stack.half_gradients && !stack.keeps_half_gradients(precision);
  return stack.reduces_in_fp32_by_default || keeps_wide ? DType::kFp32 : precision;
}

void set_overlap(const CsvTable::Row& row, const program::StackTraits& stack, program::Plan& plan) {
  // Wide gradients that hooks add to are reduced as a whole after a pipeline's last backward.
  const bool by_default = stack.overlaps_gradients_by_default && !(stack.fills_half_gradients && plan.pipeline > 1);
  plan.overlap.gradient_reduction = row.text("dp_overlap").empty() ? by_default : yes(row, "dp_overlap");
  plan.overlap.parameter_gather = (plan.zero_stage == 1 || plan.zero_stage == 3) && stack.gathers_ahead_by_default;
  const std::string& tensor = row.given("tp_comm_overlap");
  // A switch of MLPerf's configurations, noted where the column, which knows True and False, is left empty.
  const bool noted = row.text("notes").find("TP_COMM_OVERLAP=1") != std::string::npos;
  const bool usual = stack.overlaps_tensor_collectives || noted;
  plan.overlap.tensor = plan.tensor > 1 && (tensor.empty() ? usual : tensor != "no");
  const bool pairs = notes_paired_passes(row);
  plan.overlap.expert = plan.expert > 1 && (pairs || plan.schedule == program::paired_in_v().schedule);
}

/// Ranks that share optimizer state or parameters: a column of FSDP's tables, a note of those with ZeRO-1 alone.
int shard_of(const CsvTable::Row& row, int all) {
  if (!row.given("fsdp_shard").empty()) return static_cast<int>(row.count("fsdp_shard"));
  constexpr std::string_view kNote = "optimizer states sharded over ";
  const std::string& notes = row.text("notes");
  const std::size_t at = notes.find(kNote);
  if (at == std::string::npos) return all;
  const int ranks = std::atoi(notes.c_str() + at + kNote.size());  // 0 where the note says "all"
  return ranks > 0 ? ranks : all;
}

/// Megatron-Core's DistributedDataParallel, where nobody says otherwise: a bucket grows with the ranks that share it;
/// after the first stage of a pipeline, and in all chunks but a stage's first, one holds everything.
std::int64_t usual_bucket(const program::StackTraits& stack, const program::Plan& plan) {
  constexpr std::int64_t kEachRank = 1'000'000, kEverything = std::int64_t{1} << 40;
  if (stack.bucket_elements == 0 || plan.zero_stage > 1) return 0;
  if (plan.pipeline > 1) return kEverything;
  const std::int64_t ranks = std::int64_t{plan.data} * plan.context;
  return std::max(stack.bucket_elements, kEachRank * ranks) * program::size_of(plan.reduce_dtype);
}

/// FSDP's trainers print what a replica is given for a step. A pipeline cuts it into as many micro-batches as it has
/// stages, unless told otherwise (torchtitan, pipeline_parallel_microbatches).
int micro_batch_of(const program::StackTraits& stack, const program::Plan& plan, std::int64_t printed,
                   std::int64_t global_batch) {
  const bool whole = stack.wide_shards_only && plan.pipeline > 1 && printed * plan.data == global_batch;
  return static_cast<int>(whole && printed % plan.pipeline == 0 ? printed / plan.pipeline : printed);
}

program::Plan plan_of(const CsvTable::Row& row, const program::StackTraits& stack) {
  const auto degree = [&](const std::string& column) { return static_cast<int>(row.count(column)); };
  program::Plan plan;
  plan.tensor = degree("tp");
  plan.context = degree("cp");
  plan.pipeline = degree("pp");
  plan.virtual_stages = plan.pipeline > 1 ? degree("vpp") : 1;  // a stage that is alone has one, whatever is printed
  plan.data = static_cast<int>(replicas_of(row));
  if (!row.given("experts").empty()) {
    plan.expert = degree("ep");
    const auto expert_tensor = static_cast<int>(row.count("etp", plan.tensor));
    if (expert_tensor < plan.tensor) plan.expert_tensor = expert_tensor;
  }
  plan.micro_batch = micro_batch_of(stack, plan, row.count("micro_batch"),
                                    row.integer("global_batch", 1, CsvTable::Row::kMostCounted));
  const bool in_v = stack.pairs_in_v && plan.virtual_stages == 2;
  plan.schedule = in_v ? program::paired_in_v().schedule : program::usual_schedule(plan.virtual_stages);
  plan.sequence_parallel = plan.tensor > 1 && yes(row, "sequence_parallel");
  plan.zero_stage = static_cast<int>(row.integer("zero_stage", 0, 3));
  const int shard = shard_of(row, plan.data);
  if (plan.zero_stage > 0 && shard > 1 && shard < plan.data) plan.shard_group = shard;
  if (!recipe_recomputes_nothing(row)) {
    plan.recompute = row.text("recompute") == kSelectiveMixture
                         ? program::Recompute::kSelective
                         : static_cast<program::Recompute>(row.one_of("recompute", kRecompute));
    plan.recompute_modules = *modules_of(row);
  }
  plan.attention = static_cast<program::Attention>(row.one_of("attention", kAttention));
  plan.fp8 = recipe_of(row).value_or(program::Fp8::kNone);
  plan.precision = plan.fp8 == program::Fp8::kNone ? static_cast<DType>(row.one_of("precision", kPrecisions))
                                                   : DType::kBf16;  // what is not a layer's product
  plan.reduce_dtype = wire_type(stack, plan.precision);
  if (!row.text("reduce_dtype").empty())
    plan.reduce_dtype = static_cast<DType>(row.one_of("reduce_dtype", kPrecisions));
  plan.stack = stack.name;
  if (notes_deepep(row)) plan.expert_dispatch = program::ExpertDispatch::kDeepEp;
  plan.bucket_bytes = usual_bucket(stack, plan);
  set_overlap(row, stack, plan);
  return plan;
}

/// Jobs on several NVLink domains take equal parts of as few as hold them, whole hosts of each (block scheduling: 128
/// devices are 64 of each of two racks of 72).
void take_equal_parts(hardware::Node& node, std::int64_t gpus) {
  if (node.host_devices == 0 || gpus <= node.devices) return;
  for (std::int64_t domains = (gpus + node.devices - 1) / node.devices; domains * node.host_devices <= gpus;
       ++domains) {
    if (gpus % (domains * node.host_devices) != 0) continue;
    node = hardware::with_devices(std::move(node), static_cast<int>(gpus / domains));
    return;
  }
}

Reason put_on_cluster(const CsvTable::Row& row, hardware::Cluster& cluster) {
  static const std::vector<std::string> kProfiles = hardware::shipped_profiles();
  const auto index = row.find("hardware", kProfiles);
  if (!index) return fmt::format("hardware: {}", row.unknown("hardware", kProfiles));
  const std::string& name = kProfiles[*index];
  const std::int64_t gpus = row.integer("gpus", 1, CsvTable::Row::kMostCounted);
  hardware::Node node = hardware::load_node(name);
  const int host = node.host_devices > 0 ? node.host_devices : node.devices;
  const std::int64_t given = row.integer("gpus_per_node", 1, CsvTable::Row::kMostCounted);
  if (given != host) return fmt::format("gpus_per_node: {} has {} devices a node, not {}", name, host, given);
  take_equal_parts(node, gpus);
  const auto nodes = static_cast<int>((gpus + node.devices - 1) / node.devices);
  cluster.name = hardware::cluster_text(node, nodes);
  cluster.groups.push_back({std::move(node), nodes});
  return std::nullopt;
}

std::string join(const CsvTable::Row& row, std::initializer_list<const char*> columns) {
  std::string text;
  for (const char* column : columns) {
    if (!text.empty()) text += " | ";
    text += row.text(column);
  }
  return text;
}

/// Columns that newer tables add; nothing for a table without them.
std::string join_given(const CsvTable::Row& row, std::initializer_list<const char*> columns) {
  std::string text;
  for (const char* column : columns) {
    if (!row.given(column).empty()) text += fmt::format(" | {} {}", column, row.given(column));
  }
  return text;
}

/// The job, where the row tells one.
void read_job(const CsvTable::Row& row, PublishedRun& run) {
  run.unsupported = put_on_cluster(row, run.cluster);
  if (run.unsupported) return;
  const program::StackTraits* stack = stack_of(row, run.cluster.groups.front().node, run.unsupported);
  if (stack == nullptr) return;
  run.unsupported = why_unsupported(row);
  if (run.unsupported) return;
  run.job.model = published_model(row);
  run.job.plan = plan_of(row, *stack);
  run.job.training.sequence = run.job.model.max_sequence;
  run.job.training.global_batch = row.integer("global_batch", 1, CsvTable::Row::kMostCounted);
  run.job.training.dropout = stack->usual_dropout;
  constexpr std::int64_t kLarge = 8192;  // hidden, of a 70B model
  if (row.given("task") == "lora") {
    const AdapterRecipe& recipe = *adapters_of(row);
    run.job.training.lora = run.job.model.hidden >= kLarge ? recipe.large : recipe.small;
    if (recipe.document > 0) run.job.training.documents.lengths = {recipe.document};
  }
  const int stages = run.job.plan.chunks();
  if (stack->balances_by_cost && stages > 1 && stages <= run.job.model.layers) {
    run.job.plan.stage_layers = layers_by_cost(run.job.model, stages);
  }
  // Megatron counts embedding and loss as a layer each where a recipe says so (account_for_embedding_in_pipeline_split,
  // Llama 3.1 405B on 128 chunks), and equal chunks leave them alone in theirs.
  const std::vector<int> layout = noted_layout(row);
  if (!layout.empty() && static_cast<int>(layout.size()) == stages) {
    run.job.plan.stage_layers = layout;
  } else if (stages > 2 && stages == run.job.model.layers + 2) {
    run.job.plan.stage_layers.assign(static_cast<std::size_t>(stages), 1);
    run.job.plan.stage_layers.front() = run.job.plan.stage_layers.back() = 0;
  }
}

/// A row without a time did not run, unless it has another figure.
void read_figures(const CsvTable::Row& row, PublishedRun& run) {
  if (!row.text("measured_peak_gib").empty()) run.peak_bytes = row.positive("measured_peak_gib") * base::kGiB;
  if (!row.text("measured_iteration_s").empty()) {
    run.iteration_s = row.positive("measured_iteration_s");
    return;
  }
  run.ran = !row.given("model_tflops_per_gpu").empty() || !row.given("tokens_per_s_per_gpu").empty();
  if (run.ran && !run.unsupported) run.unsupported = "measured_iteration_s is not given";
}

}  // namespace

std::span<const std::string> published_columns() { return kColumns; }

PublishedRun read_published_run(const CsvTable::Row& row) {
  PublishedRun run;
  run.case_name = row.text("case");
  if (run.case_name.empty()) row.fail("case", "is empty; give the run a name");
  run.source = row.text("source");
  run.hardware = row.text("hardware");
  run.software = row.text("software");
  run.precision = row.text("precision");
  run.allocated = !row.given("software_version").empty();
  run.version = row.given("software_version");
  run.graphs = row.given("cuda_graph");
  run.dispatch = notes_deepep(row) ? "deepep" : notes_flex_dispatcher(row) ? "hybrid" : "all-to-all";
  run.tier = kTiers[row.one_of("tier", kTiers)];
  read_job(row, run);
  read_figures(row, run);
  run.sweep = join(row, {"source", "hardware", "software", "layers", "hidden", "heads", "seq", "vocab", "gpus",
                         "global_batch"}) +
              join_given(row, {"model", "kv_heads", "head_dim", "ffn", "experts", "topk", "moe_ffn", "task"});
  run.plan = join(row, {"micro_batch", "tp", "pp", "vpp", "dp", "sequence_parallel", "zero_stage", "recompute",
                        "precision", "attention", "dp_overlap", "reduce_dtype"}) +
             join_given(row, {"cp", "ep", "etp", "fsdp_shard", "fp8_recipe", "tp_comm_overlap", "cuda_graph"}) +
             (run.job.plan.overlap.expert ? " overlap.expert" : "") +
             (run.job.plan.recompute_modules.empty() ? "" : " " + text_of(run.job.plan, "recompute_modules")) +
             (notes_flex_dispatcher(row) ? " flex dispatcher" : "");
  return run;
}

}  // namespace trivium::calibration
