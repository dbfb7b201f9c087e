// Tensors of a model whole in memory, as other programs keep them in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
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

/// Modules of multi-token prediction in files of a model of so many layers: those that follow, each with an `eh_proj`.
std::int64_t modules_in(std::span<const SafetensorsFile> files, std::int64_t layers);

/// A Hugging Face file of a GPT-2 or llama-style model, or of a mixture (families.h), as our tensors. GPT-2's Conv1D
/// matrices are (in, out) like ours, llama's Linear ones are transposed and q|k|v, gate|up joined, unless the file has
/// them fused. A tied head may be there or not. Errors: Failure(kInput) naming the tensor that is missing, of another
/// shape, unknown, or in two shards.
/// `files`: one, or all shards of a model. Modules of multi-token prediction that the model does not have are left out;
/// copies of embedding and output matrix that a module has must be equal to the model's own.
WholeTensors from_hugging_face(std::span<const SafetensorsFile> files, const models::Model& model,
                               const std::string& where, Stored stored = Stored::kWeights);
WholeTensors from_hugging_face(const SafetensorsFile& file, const models::Model& model, const std::string& where,
                               Stored stored = Stored::kWeights);

/// The same way back: writes names, shapes and order as transformers does, in fp32, into `path` or its shards
/// (WeightsWriter). Errors: Failure(kUsage) for a model whose tensors have no names there; Failure(kRuntime) where the
/// file cannot be written.
void write_hugging_face(const WholeTensors& tensors, const models::Model& model, const std::filesystem::path& path,
                        std::int64_t shard_bytes = 0);

/// config.json of the model, for transformers.
nlohmann::json hugging_face_config(const models::Model& model);

}  // namespace trivium::runtime::checkpoint
