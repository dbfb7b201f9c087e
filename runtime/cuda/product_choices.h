// Algorithms of matrix products that were timed, as files keep them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace trivium::runtime::cuda {

/// By shape (GemmEngine's word for it) an algorithm of cuBLASLt's. Another algorithm may give other bits, so what is
/// timed is never used by the run that times it: all ranks of a later one read the same files, and a run that goes on
/// from a checkpoint reads them again. Files are text, one a rank that timed: a line that names the device and the
/// library, the only ones for which an algorithm is valid, then a line a shape.
class ProductChoices {
 public:
  using Algorithm = std::array<std::uint64_t, 8>;  ///< cublasLtMatmulAlgo_t, which may be kept
  struct Choice {
    Algorithm algorithm{};
    double microseconds = 0, first_microseconds = 0;  ///< of the fastest, and of the one that cuBLASLt names first
  };

  explicit ProductChoices(std::string machine) : machine_(std::move(machine)) {}
  /// What the ranks' files of a folder hold; where several have a shape, that of the lowest rank. Throws Aborted where
  /// there is none, or one is of another machine or no such file.
  static ProductChoices read(const std::filesystem::path& folder, const std::string& machine);

  const Choice* find(const std::string& shape) const;
  void add(const std::string& shape, const Choice& choice) { all_.insert_or_assign(shape, choice); }
  std::size_t size() const { return all_.size(); }
  /// The rank's file of the folder, which is made where it is not there. Errors: Failure(kRuntime).
  void write(const std::filesystem::path& folder, int rank) const;

 private:
  void read_file(const std::filesystem::path& file);

  std::string machine_;
  std::map<std::string, Choice> all_;
};

}  // namespace trivium::runtime::cuda
