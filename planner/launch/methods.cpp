// How weights are trained where AdamW does not step all of them: Muon and LoRA in other trainers' files.
//
// Megatron-LM d98e8a64ddf3, megatron/training/arguments.py: muon with --use-distributed-optimizer becomes the
// layer-wise distributed optimizer (dist_muon is its older name); Megatron-FSDP has no Muon, and its Muon no fp16
// (megatron/core/optimizer/__init__.py). scale_mode spectral is sqrt(max(rows, columns)), so that an extra factor of
// 0.2 is ours. Megatron-Bridge 067f987df has dist_muon (recipes/utils/optimizer_utils.py), and LoRA as cfg.peft
// (peft/lora.py), which wants a pretrained checkpoint (training/config.py).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/quote.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/import_parts.h"

namespace trivium::planner::launch {
namespace {

using program::Update;

constexpr double kUpdateSize = 0.2;  // runtime/cpu/muon.cpp
constexpr const char *kScale = "muon_extra_scale_factor", *kMode = "muon_scale_mode", *kTensor = "muon_tp_mode";

std::string muon_unsaid(const program::Job& job, Trainer trainer) {
  if (trainer != Trainer::kMegatron && trainer != Trainer::kMegatronBridge) {
    return fmt::format(
        "optimizer: muon is not written for {}, and the file would train with AdamW; use optimizer adamw, or run it "
        "here",
        version_of(trainer).name);
  }
  if (job.plan.zero_stage > 1) {
    return fmt::format(
        "optimizer: muon is not written with zero_stage {}, as Megatron-FSDP has none; use zero_stage 0 or 1",
        job.plan.zero_stage);
  }
  if (job.plan.precision == program::DType::kFp16) {
    return "optimizer: muon is not written with precision fp16, which Megatron-Core's has not; use precision bf16";
  }
  return "";
}

std::string lora_unsaid(const program::Job& job, Trainer trainer) {
  if (trainer != Trainer::kMegatronBridge) {
    return fmt::format(
        "lora_rank: adapters are not written for {}, and without them the file would train all weights; use lora_rank "
        "0, export to megatron-bridge, or run it here",
        version_of(trainer).name);
  }
  const double alpha = job.training.lora.alpha;
  if (alpha != std::floor(alpha)) {
    return fmt::format("lora_alpha: {:g} is no whole number, as Megatron-Bridge wants it; use one", alpha);
  }
  return "";
}

/// "muon_momentum" as the file has it: an option of Megatron-LM, or a member of Megatron-Bridge's configuration.
std::string spelled(const std::string& name, bool bridge) {
  if (bridge) return "cfg.optimizer." + name;
  std::string option = name;
  std::ranges::replace(option, '_', '-');
  return option;
}

}  // namespace

std::string unsaid_training(const program::Job& job, Trainer trainer) {
  if (job.training.lora.used()) return lora_unsaid(job, trainer);
  return job.training.optimizer.kind == Update::kMuon ? muon_unsaid(job, trainer) : "";
}

std::vector<std::pair<std::string, std::string>> muon_settings(const program::Job& job, std::vector<Loss>& losses) {
  const program::Optimizer& o = job.training.optimizer;
  if (o.kind != Update::kMuon) return {};
  if (job.model.gated()) {
    losses.push_back({"optimizer", "muon: gate and value of an MLP are one matrix there, and two here"});
  }
  return {{"muon_momentum", fmt::format("{:g}", o.muon_momentum)},
          {"muon_num_ns_steps", std::to_string(o.muon_iterations)},
          {kMode, "spectral"},
          {kScale, fmt::format("{:g}", kUpdateSize)},
          {kTensor, "duplicated"}};
}

void read_muon(Settings& settings, bool bridge, Imported& imported) {
  const auto text = [&](const char* name) {
    const std::string full = spelled(name, bridge);
    return settings.text({full.c_str()});
  };
  const auto number = [&](const char* name, double usual) {
    const std::string full = spelled(name, bridge);
    return settings.number({full.c_str()}).value_or(usual);
  };
  const auto lose = [&](const char* name, const std::string& what) {
    imported.losses.push_back({settings.spelled(spelled(name, bridge)), what});
  };
  const std::string kind = text("optimizer").value_or("adam");
  if (kind != "muon" && kind != "dist_muon") {
    if (kind != "adam") lose("optimizer", base::one_line(kind) + " taken as AdamW");
    return;
  }
  program::Optimizer& o = imported.job.training.optimizer;
  o.kind = Update::kMuon;
  if (kind == "dist_muon" && imported.job.plan.zero_stage == 0) imported.job.plan.zero_stage = 1;
  o.muon_momentum = number("muon_momentum", bridge ? 0.95 : 0.9);
  if (o.muon_momentum >= 1) settings.fail(fmt::format("{} must be below 1", spelled("muon_momentum", bridge)));
  const std::string steps = spelled("muon_num_ns_steps", bridge), nesterov = spelled("muon_nesterov", bridge);
  o.muon_iterations = settings.count({steps.c_str()}, 1, 100).value_or(5);
  if (settings.is_on({nesterov.c_str()})) lose("muon_nesterov", "taken without, which costs the same");
  const std::string mode = text(kMode).value_or("spectral");
  const double scale = number(kScale, 1);
  if (mode != "spectral" || std::abs(scale - kUpdateSize) > 1e-9) {
    lose(kScale,
         fmt::format("{} times {:g} taken as spectral times 0.2, which costs the same", base::one_line(mode), scale));
  }
  const std::string tensor = text(kTensor).value_or("duplicated");
  if (tensor != "duplicated" && imported.job.plan.tensor > 1) {
    lose(kTensor, base::one_line(tensor) + " taken as duplicated: every tensor rank iterates on whole matrices");
  }
  for (const char* other : {"muon_fp32_matmul_prec", "muon_coefficient_type", "muon_scalar_optimizer"}) text(other);
}

std::string peft_of(const program::Job& job, std::vector<Loss>& losses) {
  const program::Lora& lora = job.training.lora;
  const auto& latent = job.model.latent;
  const bool down = latent && latent->query_rank > 0;
  std::vector<std::string> names;
  for (const auto& [on, name] : {std::pair{lora.qkv && !latent, "linear_qkv"},
                                 {lora.qkv && latent && !down, "linear_q_proj"},
                                 {lora.qkv && down, "linear_q_down_proj"},
                                 {lora.qkv && down, "linear_q_up_proj"},
                                 {lora.qkv && latent, "linear_kv_down_proj"},
                                 {lora.qkv && latent, "linear_kv_up_proj"},
                                 {lora.projection, "linear_proj"},
                                 {lora.fc1, "linear_fc1"},
                                 {lora.fc2, "linear_fc2"}}) {
    if (on) names.push_back(fmt::format("\"{}\"", name));
  }
  if (lora.qkv && down) {
    losses.push_back({"lora_targets", "the two down projections of latent attention have an A each there, one here"});
  }
  if (job.model.experts && (lora.fc1 || lora.fc2)) {
    losses.push_back({"lora_targets",
                      "every expert has adapters of its own here; releases differ in whether the "
                      "experts of a rank share one"});
  }
  const double alpha = lora.alpha > 0 ? lora.alpha : static_cast<double>(lora.rank);
  return fmt::format("LoRA(target_modules=[{}], dim={}, alpha={:.0f})", fmt::join(names, ", "), lora.rank, alpha);
}

void read_peft(Settings& settings, Imported& imported) {
  const auto text = settings.text({"cfg.peft"});
  settings.find({"cfg.checkpoint.pretrained_checkpoint"});
  if (!text || *text == "None") return;
  if (!text->starts_with("LoRA(")) {
    imported.losses.push_back({"cfg.peft", base::one_line(*text) + " is no LoRA; all weights are taken as trained"});
    return;
  }
  constexpr std::int64_t kMost = 100'000;
  const auto whole = [&](const std::string& name, std::int64_t usual) {
    const std::size_t at = text->find(name + "=");
    if (at == std::string::npos) return usual;
    std::int64_t value = 0;
    for (std::size_t i = at + name.size() + 1; i < text->size() && value < kMost; ++i) {
      const auto c = static_cast<unsigned char>((*text)[i]);
      if (std::isdigit(c) == 0) break;
      value = 10 * value + (c - '0');
    }
    return value;
  };
  program::Lora& lora = imported.job.training.lora;
  lora.rank = whole("dim", 32);
  const std::int64_t alpha = whole("alpha", 32);
  lora.alpha = alpha == lora.rank ? 0 : static_cast<double>(alpha);
  if (lora.rank < 1 || lora.rank > 4096) settings.fail("cfg.peft: dim must be a whole number from 1 to 4096");
  const auto& latent = imported.job.model.latent;
  if (text->find("target_modules=") == std::string::npos) {
    lora.qkv = !latent;  // by default linear_qkv, which latent attention has not
    return;
  }
  const auto names = [&](const char* module) { return text->find(module) != std::string::npos; };
  lora.qkv = !latent && names("linear_qkv");
  if (latent) {
    int named = 0;
    const bool down = latent->query_rank > 0;
    const std::vector<const char*> all =
        down ? std::vector{"linear_q_down_proj", "linear_q_up_proj", "linear_kv_down_proj", "linear_kv_up_proj"}
             : std::vector{"linear_q_proj", "linear_kv_down_proj", "linear_kv_up_proj"};
    for (const char* module : all) named += names(module) ? 1 : 0;
    lora.qkv = named > 0;
    if (named > 0 && named < std::ssize(all)) {
      imported.losses.push_back({"cfg.peft", fmt::format("adapters of some projections of latent attention alone; all "
                                                         "of {} are taken to have them",
                                                         fmt::join(all, ", "))});
    }
  }
  lora.projection = names("linear_proj");
  lora.fc1 = names("linear_fc1"), lora.fc2 = names("linear_fc2");
  if (!lora.qkv && !lora.projection && !lora.fc1 && !lora.fc2) {
    settings.fail(
        "cfg.peft: target_modules names none of linear_qkv, the projections of latent attention (linear_q_down_proj "
        "and others), linear_proj, linear_fc1, linear_fc2");
  }
}

}  // namespace trivium::planner::launch
