// Weights in one safetensors file, or in several (shards) and an index of them, as transformers writes both:
// model.safetensors, or model-00001-of-00002.safetensors, … and model.safetensors.index.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/private_folder.h"
#include "runtime/checkpoint/safetensors.h"

namespace trivium::runtime::checkpoint {

inline constexpr const char* kWeightsEnd = ".safetensors";
inline constexpr const char* kIndexEnd = ".safetensors.index.json";

/// Whether the path is that of weights of another program: a .safetensors file, an index, or a folder that has
/// model.safetensors or an index of its shards, and no checkpoints.
bool holds_weights(const std::filesystem::path& path);

/// The folder in which such weights are, where their config.json is, too.
std::filesystem::path folder_of_weights(const std::filesystem::path& path);

/// The file, or all shards that the index names. Of a folder model.safetensors, where there is one, else its index's.
/// Errors: Failure(kInput) naming the file that is missing or not of the form, the name that is none of a file next to
/// the index, and the tensor that is not in the shard where the index has it.
std::vector<SafetensorsFile> open_weights(const std::filesystem::path& path);

/// Writes tensors, in the order in which they are declared, into one file, or into shards and their index.
class WeightsWriter {
 public:
  /// `path`: PLACE/NAME.safetensors; shards are PLACE/NAME-00001-of-00002.safetensors, …. `shard_bytes`: most bytes of
  /// tensors in a shard, but for a tensor that is larger; 0: one file. Errors: Failure(kUsage) where shards are to be
  /// written next to a file `path`, which readers would take for all of the weights; Failure(kRuntime) as those of
  /// SafetensorsWriter.
  WeightsWriter(std::filesystem::path path, std::vector<TensorEntry> tensors, std::int64_t shard_bytes);

  /// All bytes of the next tensor.
  void write(std::span<const std::byte> bytes);
  /// Flushes all to the disk and gives the files their names, the index last.
  void finish();

 private:
  struct Shard {
    std::string name;
    std::vector<TensorEntry> tensors;
  };
  void write_index() const;

  std::filesystem::path path_, folder_;
  base::PrivateFolder unfinished_;  // files of a name that nobody can foresee, in a folder that goes with what is left
  std::vector<Shard> shards_;
  std::int64_t bytes_ = 0;  // of all tensors
  std::optional<SafetensorsWriter> writer_;
  std::size_t shard_ = 0, written_ = 0;  // the shard in work, its tensors that are written
};

}  // namespace trivium::runtime::checkpoint
