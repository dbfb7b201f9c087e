// Tensors of a model whole in memory, as other programs keep them in files.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/model.h"
#include "runtime/checkpoint/stored.h"

namespace trivium::runtime::checkpoint {

struct WholeTensor {
  std::int64_t rows = 0, columns = 0;  ///< vectors are (1, n)
  std::vector<float> values;           ///< row-major
};

/// By global name, matrices as (in, out): "h.3.attn.c_attn.weight".
using WholeTensors = std::map<std::string, WholeTensor>;

/// The values of all parameters of a checkpoint, fp64 rounded to fp32.
WholeTensors whole_values(const StoredTensors& stored);

/// Adds adapters (program::Lora) to the weights that they adapt, W + scale A B, and takes them out. In fp32.
void merge_adapters(WholeTensors& tensors, double scale);

/// What a file of tensors has: gradients are not offset where weights are.
enum class Stored { kWeights, kGradients };

/// A Hugging Face file of a GPT-2 or llama-style model (model_type gpt2, llama, mistral, qwen2, qwen3, phi3, nemotron)
/// as our tensors. GPT-2's
/// Conv1D matrices are (in, out) like ours, llama's Linear ones are transposed and q|k|v, gate|up joined, unless the
/// file has them fused. A tied head may be there or not. Errors: Failure(kInput) naming the tensor that is missing, of
/// another shape, or unknown.
WholeTensors from_hugging_face(const SafetensorsFile& file, const models::Model& model, const std::string& where,
                               Stored stored = Stored::kWeights);

/// The same way back: writes names, shapes and order as transformers does, in fp32. Errors: Failure(kUsage) for a model
/// that is neither GPT-2 nor llama-style; Failure(kRuntime) where the file cannot be written.
void write_hugging_face(const WholeTensors& tensors, const models::Model& model, const std::filesystem::path& path);

/// config.json of the model, for transformers.
nlohmann::json hugging_face_config(const models::Model& model);

}  // namespace trivium::runtime::checkpoint
