#include "planner/launch/torchtitan_flavors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace trivium::planner::launch {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// torchtitan/models/*/__init__.py, of v0.2.2 and of b5bcd76c6 (2026-08-21).
constexpr std::array<Pair, 20> kShipped{{{"llama3/1B", "llama3.2-1b"},
                                         {"llama3/3B", "llama3.2-3b"},
                                         {"llama3/8B", "llama3.1-8b"},
                                         {"llama3/70B", "llama3.1-70b"},
                                         {"llama3/405B", "llama3.1-405b"},
                                         {"llama4/17bx16e", "llama4-scout"},
                                         {"llama4/17bx128e", "llama4-maverick"},
                                         {"deepseek_v3/16B", "deepseek-v2-lite"},
                                         {"deepseek_v3/236B", "deepseek-v2"},
                                         {"deepseek_v3/671B", "deepseek-v3"},
                                         {"deepseek_v3/671B_mtp", "deepseek-v3"},
                                         {"kimi_k2_7/Kimi-K2.5", "kimi-k2"},
                                         {"gpt_oss/20b", "gpt-oss-20b"},
                                         {"gpt_oss/120b", "gpt-oss-120b"},
                                         {"qwen3/0.6B", "qwen3-0.6b"},
                                         {"qwen3/8B", "qwen3-8b"},
                                         {"qwen3/32B", "qwen3-32b"},
                                         {"qwen3/30B-A3B", "qwen3-30b-a3b"},
                                         {"qwen3/235B-A22B", "qwen3-235b-a22b"},
                                         {"llama3_ft/8B", "llama3.1-8b"}}};

// The calls as v0.2.2 writes them; of moonlight-16B-A3B (b5bcd76c6) as it would.
constexpr std::array<Pair, 10> kCalls{
    {{"llama3/debugmodel", "TransformerModelArgs(dim=256, n_layers=6, n_heads=16, vocab_size=2048, rope_theta=500000)"},
     {"llama3_ft/debugmodel",
      "TransformerModelArgs(dim=256, n_layers=6, n_heads=16, vocab_size=2048, rope_theta=500000)"},
     {"llama4/debugmodel",
      "TransformerModelArgs(dim=256, n_layers=6, n_heads=16, vocab_size=2048, rope_theta=500000, "
      "rope_scaling_args=RoPEScalingArgs(scaling_factor=16), moe_args=MoEArgs(num_experts=8))"},
     {"qwen3/debugmodel",
      "Qwen3ModelArgs(vocab_size=2048, head_dim=128, dim=256, n_layers=8, n_heads=16, n_kv_heads=8, hidden_dim=3072, "
      "rope_theta=1000000, max_seq_len=4096, enable_weight_tying=True)"},
     {"qwen3/debugmodel_moe",
      "Qwen3ModelArgs(vocab_size=2048, max_seq_len=4096, head_dim=128, dim=256, n_layers=8, n_heads=16, n_kv_heads=8, "
      "qk_norm=True, hidden_dim=3072, rope_theta=1000000, moe_enabled=True, moe_inter_dim=768, "
      "moe_args=MoEArgs(num_experts=64, num_shared_experts=0, top_k=8, score_func=\"softmax\", route_norm=True, "
      "route_scale=1.0, score_before_experts=False))"},
     {"qwen3/1.7B",
      "Qwen3ModelArgs(vocab_size=151936, head_dim=128, dim=2048, n_layers=28, n_heads=16, n_kv_heads=8, "
      "hidden_dim=6144, rope_theta=1000000, max_seq_len=4096, enable_weight_tying=True)"},
     {"qwen3/4B",
      "Qwen3ModelArgs(vocab_size=151936, head_dim=128, dim=2560, n_layers=36, n_heads=32, n_kv_heads=8, "
      "hidden_dim=9728, rope_theta=1000000, max_seq_len=4096, enable_weight_tying=True)"},
     {"qwen3/14B",
      "Qwen3ModelArgs(vocab_size=151936, head_dim=128, dim=5120, n_layers=40, n_heads=40, n_kv_heads=8, "
      "hidden_dim=17408, rope_theta=1000000, max_seq_len=4096)"},
     {"deepseek_v3/debugmodel",
      "DeepSeekV3ModelArgs(vocab_size=2048, dim=256, inter_dim=1024, moe_inter_dim=256, n_layers=6, n_dense_layers=1, "
      "n_heads=16, moe_args=MoEArgs(num_experts=8, num_shared_experts=2, top_k=3, score_func=\"softmax\", "
      "route_norm=False, score_before_experts=False), q_lora_rank=0, kv_lora_rank=512, qk_nope_head_dim=128, "
      "qk_rope_head_dim=64, v_head_dim=128, mscale=0.70)"},
     {"kimi_k2_7/moonlight-16B-A3B",
      "DeepSeekV3ModelArgs(vocab_size=163840, dim=2048, inter_dim=11264, moe_inter_dim=1408, n_layers=27, "
      "n_dense_layers=1, n_heads=16, moe_args=MoEArgs(num_experts=64, num_shared_experts=2, top_k=6, "
      "score_func=\"sigmoid\", route_norm=True, route_scale=2.446, score_before_experts=False), q_lora_rank=0, "
      "kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, rope_theta=50000, "
      "max_seq_len=8192, original_seq_len=8192)"}}};

std::string_view find_in(std::span<const Pair> table, std::string_view flavor) {
  for (const std::string_view kind :
       {"", "_flex_attn", "_varlen_attn", "_flex", "_varlen", "_irope", "_non_fused_qkv"}) {
    if (!flavor.ends_with(kind)) continue;
    const std::string_view shape = flavor.substr(0, flavor.size() - kind.size());
    const auto found = std::ranges::find(table, shape, &Pair::first);
    if (found != table.end()) return found->second;
  }
  return {};
}

/// How activations are recomputed, what is compiled, which products are in 8 bits.
enum class Saves { kNone, kSelective, kFull };
enum class Compiles { kNone, kLoss, kAll };

struct Registered {
  std::string_view name, flavor;
  int slots, context, steps;  ///< slots: tokens of a micro-batch
  double rate;                ///< learning
  int warmup;
  Saves saves;
  Compiles compiles = Compiles::kNone;
  int tensor = 1, expert = 1;
  std::string_view converter{};
  bool overlaps = false;  ///< tensor parallelism
};

// torchtitan/models/*/config_registry.py of b5bcd76c6 (2026-08-21): those of language models.
constexpr std::array<Registered, 34> kRegistered{{
    {"llama3_debugmodel", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"llama3_debugmodel_varlen_attn", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"llama3_debugmodel_dist_gemm", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"llama3_debugmodel_ce_loss", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"llama3_debugmodel_float8", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective, Compiles::kNone, 1,
     1, "quantize.linear.float8"},
    {"sft_debugmodel", "llama3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"llama3_8b", "llama3/8B", 8192, 8192, 1000, 3e-4, 200, Saves::kSelective},
    {"llama3_8b_mxfp8", "llama3/8B", 8192, 8192, 1000, 3e-4, 200, Saves::kSelective, Compiles::kAll, 1, 1,
     "quantize.linear.mx"},
    {"llama3_70b", "llama3/70B", 65536, 8192, 1000, 1.5e-4, 200, Saves::kFull, Compiles::kNone, 8},
    {"llama3_405b", "llama3/405B", 16384, 8192, 3000, 8e-5, 600, Saves::kFull, Compiles::kAll, 8, 1,
     "quantize.linear.float8", true},
    {"qwen3_debugmodel", "qwen3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"qwen3_debugmodel_flex_flash", "qwen3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"qwen3_debugmodel_non_fused_qkv", "qwen3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"qwen3_0_6b", "qwen3/0.6B", 16384, 4096, 10, 3e-4, 2, Saves::kSelective},
    {"qwen3_1_7b", "qwen3/1.7B", 16384, 4096, 100, 8e-4, 20, Saves::kSelective},
    {"qwen3_14b", "qwen3/14B", 16384, 4096, 3000, 8e-4, 600, Saves::kFull},
    {"qwen3_32b", "qwen3/32B", 8192, 4096, 3000, 8e-4, 600, Saves::kFull},
    {"qwen3_30b_a3b", "qwen3/30B-A3B", 8192, 4096, 3000, 8e-4, 600, Saves::kFull},
    {"qwen3_moe_debug", "qwen3/debugmodel_moe", 16384, 4096, 10, 3e-4, 2, Saves::kSelective},
    {"qwen3_debugmodel_moe_param_groups", "qwen3/debugmodel_moe", 16384, 4096, 10, 3e-4, 2, Saves::kSelective},
    {"qwen3_moe_deepep", "qwen3/debugmodel_moe", 1024, 512, 10, 3e-4, 2, Saves::kSelective, Compiles::kNone, 1, 4},
    {"sft_qwen3_8b_math", "qwen3/8B", 2048, 2048, 180, 2e-5, 15, Saves::kSelective},
    {"deepseek_v3_debugmodel", "deepseek_v3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"deepseek_v3_debugmodel_hybridep", "deepseek_v3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective},
    {"deepseek_v3_debugmodel_mxfp8", "deepseek_v3/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kSelective,
     Compiles::kNone, 1, 1, "quantize.linear.mx"},
    {"deepseek_v3_16b", "deepseek_v3/16B", 16384, 4096, 1000, 2.2e-4, 200, Saves::kSelective, Compiles::kLoss, 1, 8},
    {"deepseek_v3_16b_hybridep", "deepseek_v3/16B", 16384, 4096, 1000, 2.2e-4, 200, Saves::kSelective, Compiles::kLoss,
     1, 8},
    {"deepseek_v3_671b", "deepseek_v3/671B", 16384, 4096, 10000, 2.2e-4, 2000, Saves::kSelective, Compiles::kLoss, 1,
     2},
    {"deepseek_v3_671b_float8", "deepseek_v3/671B", 16384, 4096, 10000, 2.2e-4, 2000, Saves::kSelective,
     Compiles::kLoss, 1, 2, "quantize.linear.float8"},
    {"gpt_oss_debugmodel", "gpt_oss/debugmodel", 16384, 2048, 10, 8e-4, 2, Saves::kNone},
    {"gpt_oss_20b", "gpt_oss/20b", 8192, 8192, 10000, 8e-4, 2000, Saves::kFull},
    {"gpt_oss_120b", "gpt_oss/120b", 8192, 8192, 10000, 8e-4, 2000, Saves::kFull},
    {"moonlight_16b_a3b", "kimi_k2_7/moonlight-16B-A3B", 16384, 4096, 10000, 8e-4, 2000, Saves::kFull, Compiles::kNone,
     1, 8},
    {"kimi_k2_5", "kimi_k2_7/Kimi-K2.5", 16384, 4096, 10000, 8e-4, 2000, Saves::kFull, Compiles::kLoss, 1, 8},
}};

std::int64_t whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= kMost ? value : 0;
}

class RegisteredScript {
 public:
  RegisteredScript(const Registered& row, const Script& command) {
    script_.assigns = true;
    const std::size_t slash = row.flavor.find('/');
    set("model.name", std::string(row.flavor.substr(0, slash)));
    set("model.flavor", std::string(row.flavor.substr(slash + 1)));
    set("training.steps", std::to_string(row.steps));
    set("optimizer.lr", fmt::format("{:g}", row.rate));
    set("lr_scheduler.warmup_steps", std::to_string(row.warmup));
    constexpr std::array<const char*, 3> kModes{"none", "selective", "full"};
    set("activation_checkpoint.mode", kModes[static_cast<std::size_t>(row.saves)]);
    set("parallelism.tensor_parallel_degree", std::to_string(row.tensor));
    set("parallelism.expert_parallel_degree", std::to_string(row.expert));
    set("compile.enable", row.compiles == Compiles::kNone ? "false" : "true");
    set("compile.components", row.compiles == Compiles::kLoss ? "[\"loss\"]" : "[\"model\", \"loss\"]");
    if (!row.converter.empty()) set("model.converters", fmt::format("[\"{}\"]", row.converter));
    if (row.overlaps) set("parallelism.enable_async_tensor_parallel", "true");
    take_overrides(command, script_);
    batch(row);
  }
  Script take() { return std::move(script_); }

 private:
  void set(const char* name, std::string value) { script_.arguments.push_back({name, {std::move(value)}}); }

  /// The last value of a setting, which is then no longer there.
  std::int64_t taken(const std::string& name, std::int64_t otherwise) {
    std::erase_if(script_.arguments, [&](const Argument& argument) {
      if (argument.name != name || argument.values.empty()) return false;
      const std::int64_t value = whole(argument.values.front());
      if (value > 0) otherwise = value;
      return value > 0 || argument.values.front() == "-1";
    });
    return otherwise;
  }

  // Batches there are counted in tokens, and those of a pipeline in micro-batches.
  void batch(const Registered& row) {
    const std::int64_t context = taken("training.max_context_length", row.context);
    const std::int64_t slots = taken("training.num_tokens_per_microbatch_per_dp_rank", row.slots);
    const std::int64_t parts = taken("parallelism.num_pp_microbatches", 1);
    const std::int64_t step = taken("training.num_tokens_per_train_step", 0);
    const std::int64_t samples = std::max<std::int64_t>(1, slots / context);
    set("training.seq_len", std::to_string(context));
    set("training.local_batch_size", std::to_string(samples * std::min<std::int64_t>(parts, 1 << 16)));
    set("parallelism.pipeline_parallel_microbatch_size", std::to_string(samples));
    if (step > 0) set("training.global_batch_size", std::to_string(std::max<std::int64_t>(1, step / context)));
  }

  Script script_;
};

}  // namespace

std::string_view shipped_flavor(std::string_view flavor) { return find_in(kShipped, flavor); }
std::string_view call_of_flavor(std::string_view flavor) { return find_in(kCalls, flavor); }

void take_overrides(const Script& command, Script& settings) {
  for (Argument argument : command.arguments) {
    const bool counts = argument.name == "nnodes" || argument.name == "nproc-per-node";
    if (!counts && argument.name.find('.') == std::string::npos) continue;
    if (argument.name.starts_with("job.config")) continue;
    if (!counts) std::ranges::replace(argument.name, '-', '_');
    if (argument.values.empty()) argument.values.emplace_back("true");
    settings.arguments.push_back(std::move(argument));
  }
  settings.command = command.command;
  settings.prefix = command.prefix;
  settings.batch = command.batch;
  settings.assumptions = command.assumptions;
}

std::optional<Script> registered_config(const std::string& name, const Script& command) {
  const auto found = std::ranges::find(kRegistered, name, &Registered::name);
  if (found == kRegistered.end()) return std::nullopt;
  return RegisteredScript(*found, command).take();
}

}  // namespace trivium::planner::launch
