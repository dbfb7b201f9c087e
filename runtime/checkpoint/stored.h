// The tensors of a checkpoint, wherever their pieces lie in its files.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/pieces.h"
#include "runtime/checkpoint/safetensors.h"

namespace trivium::runtime::checkpoint {

/// "value/h.0.attn.c_attn.weight@0+32,64+32": a piece's name in a file.
std::string piece_name(State state, const std::string& tensor, const Box& box);

/// The tensor a piece is saved as: its own, or with residuals "2:h.0.attn.c_attn.weight", that of replica 2.
std::string stored_name(const Piece& piece);

/// One tensor, put together from pieces of files. Pieces do not overlap and cover the tensor whole.
struct StoredTensor {
  std::int64_t rows = 0, columns = 0;
  struct Part {
    Box box;
    Number number{};
    const std::byte* values = nullptr;  ///< packed row-major, in a mapped file
  };
  std::vector<Part> parts;
};

/// Immutable; safe to share between threads.
class StoredTensors {
 public:
  /// Opens shard files whose pieces carry the names of `piece_name`. Errors: Failure(kInput) for names that are none,
  /// shapes other than the name's box, pieces that overlap or leave a gap.
  explicit StoredTensors(const std::vector<std::filesystem::path>& files);
  /// Values of parameters from elsewhere: (rows, columns, packed fp32), which must outlive this.
  struct Borrowed {
    std::int64_t rows = 0, columns = 0;
    const float* values = nullptr;
  };
  StoredTensors(const std::map<std::string, Borrowed>& values, std::string where);

  /// All tensors of one state by global name.
  const std::map<std::string, StoredTensor>& of(State state) const { return tensors_[static_cast<std::size_t>(state)]; }

  /// Fills the piece's memory; numbers are widened exactly or rounded to nearest. Moments that were never saved
  /// (weights from elsewhere) are zero. An adapter that was never saved stays as it is. Replica r of R takes the
  /// residuals of the saved replicas r, r + R, …: what all of them have not sent stays what it was. Errors:
  /// Failure(kInput) naming the tensor that is missing or of another shape.
  void fill(const Piece& piece) const;

 private:
  const StoredTensor& find(const Piece& piece, const std::string& name) const;
  void fill_residual(const Piece& piece) const;

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::array<std::map<std::string, StoredTensor>, kStates> tensors_;
  std::string where_;
};

/// Packs a piece's values row by row for a file and hands them to the writer.
void write_piece(const Piece& piece, SafetensorsWriter& writer);
/// How a file holds values of a piece's type.
Number number_of(program::DType type);

}  // namespace trivium::runtime::checkpoint
