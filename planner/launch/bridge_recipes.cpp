#include "planner/launch/bridge_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <utility>

namespace trivium::planner::launch {
namespace {

struct Recipe {
  std::string_view name;   ///< without "_config"
  std::string_view model;  ///< shipped
  std::string_view precision;
  /// Tensor, pipeline, its chunks, context, expert, expert tensor (0: as tensor), sequence, batch, micro-batch.
  std::string_view sizes;
  std::string_view recompute;  ///< recompute_granularity; full: uniform, layer by layer
  std::string_view layout;     ///< of layers that chunks do not share evenly
  /// Which of these are on: s sequence_parallel, w grad_reduce_in_fp32, o overlap_grad_reduce and overlap_param_gather,
  /// t tp_comm_overlap, e overlap_moe_expert_parallel_comm, f the dispatcher hybridep.
  std::string_view switches;
  bool has(char letter) const { return switches.find(letter) != std::string_view::npos; }
};

// src/megatron/bridge/recipes/*/h100 (067f987df, 2026-08-22): the recipes for pre-training models that are shipped
// here, with the defaults of recipes/common.py. Layouts: deepseek_v3.py's own, and those that
// account_for_embedding_in_pipeline_split and its twin for the loss imply.
constexpr std::array<Recipe, 33> kBridgeRecipes{
    {{"deepseek_v2_lite_pretrain_8gpu_h100_bf16", "deepseek-v2-lite", "bf16_mixed", "1 1 1 1 8 0 4096 512 1", "full",
      "", "wo"},
     {"deepseek_v2_pretrain_128gpu_h100_bf16", "deepseek-v2", "bf16_mixed", "1 4 1 1 32 0 4096 512 1", "full", "",
      "wo"},
     {"deepseek_v3_pretrain_1024gpu_h100_bf16", "deepseek-v3", "bf16_mixed", "2 16 1 1 64 1 4096 4096 1", "none",
      "Et*4|(t*4|)*14tmL", "so"},
     {"gpt_oss_120b_pretrain_64gpu_h100_bf16", "gpt-oss-120b", "bf16_mixed", "2 4 1 1 16 1 4096 512 1", "none", "",
      "swo"},
     {"gpt_oss_20b_pretrain_16gpu_h100_bf16", "gpt-oss-20b", "bf16_mixed", "2 4 1 1 4 1 4096 512 1", "none", "", "swo"},
     {"gpt_oss_20b_pretrain_16gpu_h100_fp8cs", "gpt-oss-20b", "bf16_with_fp8_current_scaling_mixed",
      "2 4 1 1 4 1 4096 512 1", "none", "", "swo"},
     {"gpt_oss_20b_pretrain_16gpu_h100_fp8mx", "gpt-oss-20b", "bf16_with_mxfp8_mixed", "2 4 1 1 4 1 4096 512 1", "none",
      "", "swo"},
     {"llama31_405b_pretrain_256gpu_h100_bf16", "llama3.1-405b", "bf16_mixed", "8 8 2 4 1 0 131072 512 1", "none",
      "Et*7|(t*8|)*14t*7L", "swot"},
     {"llama31_70b_pretrain_32gpu_h100_bf16", "llama3.1-70b", "bf16_mixed", "4 4 5 2 1 0 131072 512 1", "none", "",
      "swot"},
     {"llama31_8b_pretrain_2gpu_h100_bf16", "llama3.1-8b", "bf16_mixed", "1 1 1 2 1 0 8192 512 1", "none", "", "wo"},
     {"llama32_1b_pretrain_1gpu_h100_bf16", "llama3.2-1b", "bf16_mixed", "1 1 1 1 1 0 8192 512 1", "none", "", "wo"},
     {"llama32_3b_pretrain_1gpu_h100_bf16", "llama3.2-3b", "bf16_mixed", "1 1 1 1 1 0 8192 512 1", "none", "", "wo"},
     {"llama3_70b_pretrain_256gpu_h100_bf16_64k", "llama3-70b", "bf16_mixed", "8 4 1 8 1 0 65536 512 1", "none", "",
      "swot"},
     {"llama3_70b_pretrain_32gpu_h100_bf16_16k", "llama3-70b", "bf16_mixed", "8 2 1 2 1 0 16384 512 1", "none", "",
      "swot"},
     {"llama3_70b_pretrain_32gpu_h100_bf16", "llama3-70b", "bf16_mixed", "4 4 5 2 1 0 8192 512 1", "none", "", "swot"},
     {"llama3_8b_pretrain_16gpu_h100_bf16_16k", "llama3-8b", "bf16_mixed", "4 2 1 2 1 0 16384 512 1", "none", "",
      "swo"},
     {"llama3_8b_pretrain_2gpu_h100_bf16", "llama3-8b", "bf16_mixed", "1 1 1 2 1 0 8192 512 1", "none", "", "wo"},
     {"llama3_8b_pretrain_2gpu_h100_fp8cs", "llama3-8b", "bf16_with_fp8_current_scaling_mixed",
      "1 1 1 2 1 0 8192 768 1", "none", "", "wo"},
     {"llama3_8b_pretrain_2gpu_h100_fp8mx", "llama3-8b", "bf16_with_mxfp8_mixed", "1 1 1 2 1 0 8192 768 1", "none", "",
      "wo"},
     {"llama3_8b_pretrain_2gpu_h100_nvfp4", "llama3-8b", "bf16_with_nvfp4_mixed", "1 1 1 2 1 0 8192 768 1", "none", "",
      "wo"},
     {"llama3_8b_pretrain_32gpu_h100_bf16_64k", "llama3-8b", "bf16_mixed", "4 2 1 4 1 0 65536 512 1", "none", "",
      "swo"},
     {"llama3_8b_pretrain_64gpu_h100_bf16_128k", "llama3-8b", "bf16_mixed", "4 2 1 8 1 0 131072 512 1", "none", "",
      "swo"},
     {"qwen25_32b_pretrain_16gpu_h100_bf16", "qwen2.5-32b", "bf16_mixed", "8 2 1 1 1 0 4096 32 2", "none", "", ""},
     {"qwen25_72b_pretrain_32gpu_h100_bf16", "qwen2.5-72b", "bf16_mixed", "8 4 1 1 1 0 4096 32 2", "none", "", ""},
     {"qwen25_7b_pretrain_2gpu_h100_bf16", "qwen2.5-7b", "bf16_mixed", "2 1 1 1 1 0 4096 32 2", "none", "", ""},
     {"qwen3_235b_a22b_pretrain_256gpu_h100_bf16", "qwen3-235b-a22b", "bf16_mixed", "4 16 1 2 8 1 4096 32 1", "none",
      "Et*5|(t*6|)*14t*5L", "swo"},
     {"qwen3_30b_a3b_pretrain_16gpu_h100_bf16", "qwen3-30b-a3b", "bf16_mixed", "1 1 1 1 16 1 4096 1024 1", "none", "",
      "otf"},
     {"qwen3_30b_a3b_pretrain_8gpu_gb200_fp8mx_functional", "qwen3-30b-a3b", "bf16_with_mxfp8_mixed",
      "1 1 1 1 8 1 4096 512 4", "none", "", "otef"},
     {"qwen3_30b_a3b_pretrain_8gpu_h100_bf16", "qwen3-30b-a3b", "bf16_mixed", "4 2 1 1 4 1 4096 32 2", "full", "",
      "swo"},
     {"qwen3_32b_pretrain_16gpu_h100_bf16", "qwen3-32b", "bf16_mixed", "8 2 1 1 1 0 4096 32 2", "full", "", "wo"},
     {"qwen3_600m_pretrain_1gpu_h100_bf16", "qwen3-0.6b", "bf16_mixed", "1 1 1 1 1 0 4096 32 2", "none", "", "wo"},
     {"qwen3_8b_pretrain_16gpu_h100_bf16", "qwen3-8b", "bf16_mixed", "1 1 1 1 1 0 4096 1024 1", "none", "", "o"},
     {"qwen3_8b_pretrain_4gpu_h100_bf16", "qwen3-8b", "bf16_mixed", "4 1 1 1 1 0 4096 32 2", "none", "", "wo"}}};

// The names without a machine, as recipes/*/__init__.py gives them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kShortNames{
    {{"deepseek_v2_lite_pretrain", "deepseek_v2_lite_pretrain_8gpu_h100_bf16"},
     {"deepseek_v2_pretrain", "deepseek_v2_pretrain_128gpu_h100_bf16"},
     {"deepseek_v3_pretrain", "deepseek_v3_pretrain_1024gpu_h100_bf16"},
     {"gpt_oss_120b_pretrain", "gpt_oss_120b_pretrain_64gpu_h100_bf16"},
     {"gpt_oss_20b_pretrain", "gpt_oss_20b_pretrain_16gpu_h100_bf16"},
     {"gpt_oss_20b_pretrain_fp8_current_scaling", "gpt_oss_20b_pretrain_16gpu_h100_fp8cs"},
     {"gpt_oss_20b_pretrain_mxfp8", "gpt_oss_20b_pretrain_16gpu_h100_fp8mx"},
     {"llama31_405b_pretrain", "llama31_405b_pretrain_256gpu_h100_bf16"},
     {"llama31_70b_pretrain", "llama31_70b_pretrain_32gpu_h100_bf16"},
     {"llama31_8b_pretrain", "llama31_8b_pretrain_2gpu_h100_bf16"},
     {"llama32_1b_pretrain", "llama32_1b_pretrain_1gpu_h100_bf16"},
     {"llama32_3b_pretrain", "llama32_3b_pretrain_1gpu_h100_bf16"},
     {"llama3_70b_16k_pretrain", "llama3_70b_pretrain_32gpu_h100_bf16_16k"},
     {"llama3_70b_64k_pretrain", "llama3_70b_pretrain_256gpu_h100_bf16_64k"},
     {"llama3_70b_pretrain", "llama3_70b_pretrain_32gpu_h100_bf16"},
     {"llama3_8b_128k_pretrain", "llama3_8b_pretrain_64gpu_h100_bf16_128k"},
     {"llama3_8b_16k_pretrain", "llama3_8b_pretrain_16gpu_h100_bf16_16k"},
     {"llama3_8b_64k_pretrain", "llama3_8b_pretrain_32gpu_h100_bf16_64k"},
     {"llama3_8b_low_precision_pretrain", "llama3_8b_pretrain_2gpu_h100_fp8cs"},
     {"llama3_8b_pretrain", "llama3_8b_pretrain_2gpu_h100_bf16"},
     {"qwen25_32b_pretrain", "qwen25_32b_pretrain_16gpu_h100_bf16"},
     {"qwen25_72b_pretrain", "qwen25_72b_pretrain_32gpu_h100_bf16"},
     {"qwen25_7b_pretrain", "qwen25_7b_pretrain_2gpu_h100_bf16"},
     {"qwen3_235b_a22b_pretrain", "qwen3_235b_a22b_pretrain_256gpu_h100_bf16"},
     {"qwen3_30b_a3b_pretrain", "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"},
     {"qwen3_32b_pretrain", "qwen3_32b_pretrain_16gpu_h100_bf16"},
     {"qwen3_600m_pretrain", "qwen3_600m_pretrain_1gpu_h100_bf16"},
     {"qwen3_8b_pretrain", "qwen3_8b_pretrain_16gpu_h100_bf16"}}};

/// Keywords of the functions and `--recipe`'s short names, and the members that they set.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kMembers{
    {{"tensor_model_parallel_size", "cfg.model."},
     {"pipeline_model_parallel_size", "cfg.model."},
     {"virtual_pipeline_model_parallel_size", "cfg.model."},
     {"context_parallel_size", "cfg.model."},
     {"expert_model_parallel_size", "cfg.model."},
     {"expert_tensor_parallel_size", "cfg.model."},
     {"sequence_parallel", "cfg.model."},
     {"recompute_granularity", "cfg.model."},
     {"global_batch_size", "cfg.train."},
     {"micro_batch_size", "cfg.train."},
     {"train_iters", "cfg.train."},
     {"seq_length", "cfg.dataset."},
     {"lr", "cfg.optimizer."},
     {"min_lr", "cfg.optimizer."},
     {"lr_warmup_iters", "cfg.scheduler."}}};

const Recipe* find_recipe(std::string_view name) {
  if (name.ends_with("_config")) name.remove_suffix(std::string_view("_config").size());
  const auto full = std::ranges::find(kShortNames, name, [](const auto& pair) { return pair.first; });
  if (full != kShortNames.end()) name = full->second;
  const auto found = std::ranges::find(kBridgeRecipes, name, &Recipe::name);
  return found == kBridgeRecipes.end() ? nullptr : &*found;
}

CalledRecipe settings_of(const Recipe& recipe) {
  CalledRecipe called{std::string(recipe.name), recipe.model, {}};
  called.settings.assigns = true;
  const auto set = [&](const char* name, std::string value) {
    called.settings.arguments.push_back({name, {std::move(value)}});
  };
  const auto flag = [&](const char* name, bool on) { set(name, on ? "True" : "False"); };
  set("cfg.mixed_precision", std::string(recipe.precision));
  constexpr std::array<const char*, 9> kSizes{"cfg.model.tensor_model_parallel_size",
                                              "cfg.model.pipeline_model_parallel_size",
                                              "cfg.model.virtual_pipeline_model_parallel_size",
                                              "cfg.model.context_parallel_size",
                                              "cfg.model.expert_model_parallel_size",
                                              "cfg.model.expert_tensor_parallel_size",
                                              "cfg.dataset.seq_length",
                                              "cfg.train.global_batch_size",
                                              "cfg.train.micro_batch_size"};
  std::istringstream sizes{std::string(recipe.sizes)};
  std::string tensor;
  for (const char* name : kSizes) {
    std::string size;
    sizes >> size;
    if (tensor.empty()) tensor = size;
    if (size != "0") set(name, size);
  }
  flag("cfg.model.sequence_parallel", recipe.has('s'));
  if (recipe.recompute != "none") {
    set("cfg.model.recompute_granularity", std::string(recipe.recompute));
    set("cfg.model.recompute_method", "uniform");
    set("cfg.model.recompute_num_layers", "1");
  }
  if (!recipe.layout.empty()) set("cfg.model.pipeline_model_parallel_layout", std::string(recipe.layout));
  if (recipe.layout.find('m') != std::string_view::npos) set("cfg.model.mtp_num_layers", "1");
  if (recipe.has('f')) {
    set("cfg.model.moe_token_dispatcher_type", "flex");
    set("cfg.model.moe_flex_dispatcher_backend", "hybridep");
  }
  flag("cfg.ddp.use_distributed_optimizer", true);
  flag("cfg.ddp.grad_reduce_in_fp32", recipe.has('w'));
  flag("cfg.ddp.overlap_grad_reduce", recipe.has('o'));
  flag("cfg.ddp.overlap_param_gather", recipe.has('o'));
  set("cfg.comm_overlap",
      fmt::format("CommOverlapConfig(tp_comm_overlap={}, overlap_moe_expert_parallel_comm={})",
                  recipe.has('t') && tensor != "1" ? "True" : "False", recipe.has('e') ? "True" : "False"));
  return called;
}

/// A layout is for one pipeline.
void override_with(const std::string& name, const std::string& value, CalledRecipe& called) {
  if (name.find("pipeline_model_parallel_size") != std::string::npos) {
    std::erase_if(called.settings.arguments,
                  [](const Argument& argument) { return argument.name == "cfg.model.pipeline_model_parallel_layout"; });
  }
  called.settings.arguments.push_back({name, {value}});
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool calls_recipe(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return has("_pretrain_config(") || (has("--recipe") && has("_pretrain_"));
}

std::optional<CalledRecipe> called_recipe(std::string_view text) {
  constexpr std::string_view kEnd = "_config(";
  for (std::size_t at = text.find(kEnd); at != std::string_view::npos; at = text.find(kEnd, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    const std::string name(text.substr(begin, at + kEnd.size() - 1 - begin));
    const Recipe* recipe = find_recipe(name);
    if (recipe == nullptr) continue;
    CalledRecipe called = settings_of(*recipe);
    for (const auto& [keyword, value] : keywords_of(text.substr(begin), name)) {
      const auto member = std::ranges::find(kMembers, keyword, [](const auto& pair) { return pair.first; });
      const bool known = member != kMembers.end();
      override_with(known ? std::string(member->second) + keyword : "recipe." + keyword, value, called);
    }
    return called;
  }
  return std::nullopt;
}

std::optional<CalledRecipe> recipe_of_command(const Script& command) {
  const auto named = std::ranges::find(command.arguments, "recipe", &Argument::name);
  if (named == command.arguments.end() || named->values.empty()) return std::nullopt;
  const Recipe* recipe = find_recipe(named->values.front());
  if (recipe == nullptr) return std::nullopt;
  CalledRecipe called = settings_of(*recipe);
  std::vector<std::string> pairs = command.overrides;
  for (const Argument& argument : command.arguments) {  // words after an option are taken as its values
    for (const std::string& value : argument.values) {
      if (value.find('=') != std::string::npos) pairs.push_back(value);
    }
  }
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    override_with("cfg." + pair.substr(0, equals), pair.substr(equals + 1), called);
  }
  return called;
}

}  // namespace trivium::planner::launch
