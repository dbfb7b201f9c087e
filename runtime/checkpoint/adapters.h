// Low-rank adapters (program::Lora) in the form of PEFT: adapter_model.safetensors, and adapter_config.json next to it.
// Names and shapes: peft, tuners/lora/layer.py and utils/save_and_load.py.
#pragma once

#include <filesystem>

#include "models/model.h"
#include "program/plan/training.h"
#include "runtime/checkpoint/whole.h"

namespace trivium::runtime::checkpoint {

inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";

/// Writes the adapters among `tensors` to `path`, A as (rank, in) and B as (out, rank), in fp32. Queries, keys and
/// values share their A, as gate and value of an MLP do, and latents: where the model's files have them apart, each has
/// it. Experts have adapters of their own. Errors: Failure(kUsage) for tensors without adapters, of a model without
/// names in Hugging Face's files, or of experts that these have in one tensor; Failure(kRuntime) where a file cannot be
/// written.
void write_adapters(const WholeTensors& tensors, const models::Model& model, const program::Lora& lora,
                    const std::filesystem::path& path);

struct Adapters {
  program::Lora lora;
  WholeTensors tensors;  ///< "h.0.attn.c_attn.lora_a", …
};

/// Reads PEFT's adapters of a model from a folder, or from its file of weights. Of queries, keys and values whose A
/// differ, these lie side by side and the rank is so many times the file's; what has fewer is filled up with zeros.
/// Errors: Failure(kInput) naming what is missing, of another shape, not finite or unknown, and members of
/// adapter_config.json that have no equivalent here.
Adapters read_adapters(const std::filesystem::path& path, const models::Model& model);

}  // namespace trivium::runtime::checkpoint
