// Which tensors of a Hugging Face file make which of ours.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/model.h"

namespace trivium::runtime::checkpoint {

/// One of our tensors and the tensors of the file that make it, side by side.
struct Correspondence {
  std::string ours;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::string> theirs;
  std::vector<std::int64_t> widths;  ///< columns of each of them
  bool transposed = false;
  std::string fused;  ///< the name under which a file may have all of them as one
  float offset = 0;   ///< that the file's weights are stored less of (norms of Nemotron, LayerNorm1P, and Gemma)
  std::int64_t blocks =
      1;  ///< of rows that lie one under the other, each made of so many of theirs side by side: experts
  std::vector<std::int64_t> places = {};  ///< where their columns, counted side by side, lie in ours; empty: in order
  std::vector<std::int64_t> shape = {};   ///< of theirs, where it is not rows and columns
  bool interleaved = false;               ///< their columns are one of our first half and one of our second in turn
  std::string below = {};  ///< another of ours, of as many rows, whose rows follow those of the first; `rows`: of both
  bool copy = false;       ///< of a tensor that the file has elsewhere, too; it may lack this one

  std::int64_t block_rows() const { return rows / blocks; }
  /// Element of ours that is theirs number `part` at (row, column).
  std::int64_t ours_at(std::size_t part, std::int64_t row, std::int64_t column) const;
};

/// Of all tensors of the model, in the order of the file. Errors: Failure(kUsage) for a model of no family that has
/// such files.
std::vector<Correspondence> correspondences(const models::Model& model);

/// Ours of `in` rows, or `blocks` times as many, that the file has the other way round: (out, in).
Correspondence matrix_of(std::string ours, std::int64_t in, std::vector<std::string> theirs,
                         std::vector<std::int64_t> widths, std::int64_t blocks = 1);
Correspondence vector_of(std::string ours, std::string theirs, std::int64_t length);

/// The type whose files hold a mixture of experts like the model's ("mixtral", "qwen3_moe", "deepseek_v2", …); empty
/// where none does.
std::string mixture_type(const models::Model& model);

/// Tensors of one layer: what latent attention has before its output projection, and a mixture's MLP.
void add_latents(std::vector<Correspondence>& rows, const models::Model& model, std::int64_t layer);
void add_mixture(std::vector<Correspondence>& rows, const models::Model& model, std::int64_t layer);

/// What a module of multi-token prediction, `layer` of the file, has in addition to its layer
/// (hugging_face_modules.cpp).
void add_module(std::vector<Correspondence>& rows, const models::Model& model, std::int64_t layer);
/// The copies of embedding and output matrix that the files have for every module.
void add_shared_of_modules(std::vector<Correspondence>& rows, const models::Model& model);
/// Whether the type's files have modules of multi-token prediction.
bool names_modules(const std::string& mixture_type);

/// In the file, rotated components follow the others, in interleaved pairs; here they come first, the first ones of the
/// pairs before the second ones. Appends the places of one head that begins at `begin`.
void place_head(std::vector<std::int64_t>& places, std::int64_t begin, std::int64_t plain, std::int64_t turning);

/// All tensors of Grok-1, and its config.json (hugging_face_grok.cpp).
void add_grok(std::vector<Correspondence>& rows, const models::Model& model);
nlohmann::json grok_config(const models::Model& model);

/// Members of config.json that models without experts do not have, or spell otherwise.
void describe_mixture(nlohmann::json& config, const models::Model& model);

}  // namespace trivium::runtime::checkpoint
