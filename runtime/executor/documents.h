// Where the documents of packed samples begin.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/ir/settings.h"

namespace trivium::runtime {

/// Of every position of a sample the one at which its document begins. Lengths are drawn by seed and number of the
/// sample in the whole training, so that every plan sees the same documents.
std::vector<std::int32_t> document_starts(const program::Documents& documents, std::uint64_t seed, std::int64_t sample,
                                          std::int64_t sequence);

/// Those of the micro-batches of a step, drawn when they are first asked for. Not safe to share between threads.
class StepDocuments {
 public:
  explicit StepDocuments(const program::Settings& settings) : settings_(settings) {}
  /// (count, sequence) of the samples from `first` on, good until `forget`; null where samples are not packed.
  const std::int32_t* of(std::int64_t first, std::int64_t count);
  void forget() { known_.clear(); }

 private:
  const program::Settings& settings_;
  std::map<std::int64_t, std::vector<std::int32_t>> known_;  // by first sample
};

}  // namespace trivium::runtime
