// Training text as tokens, and which sample a step reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace trivium::runtime::data {

/// Tokens of a file. Told apart by content: llm.c `.bin` (256 int32 header, magic 20240520, uint16; magic 20240801
/// version 7, uint32), nanoGPT raw uint16 (`.bin` without header), anything else is text read as bytes (vocabulary
/// 256). Immutable; safe to share between threads.
class Corpus {
 public:
  virtual ~Corpus() = default;
  virtual std::int64_t tokens() const = 0;
  virtual std::int64_t vocabulary() const = 0;  ///< 256 for bytes, else highest token + 1
  virtual std::int32_t token(std::int64_t position) const = 0;
  virtual std::string description() const = 0;  ///< "bytes of bible.txt (4,404,445 tokens)"
};

/// Errors: base::Failure(kInput) for a missing or corrupt file (bad magic version, length that disagrees with the
/// header, odd size of raw uint16, fewer than `sequence + 1` tokens, a token outside `model_vocabulary`).
std::unique_ptr<Corpus> open_corpus(const std::filesystem::path& path, std::int64_t sequence,
                                    std::int64_t model_vocabulary);

/// Sample number of the whole training (step * global_batch + index within the batch) -> start position in the corpus.
/// One global seeded permutation of non-overlapping windows, free of the layout, so any plan reads the same samples.
class Sampler {
 public:
  Sampler(std::int64_t tokens, std::int64_t sequence, std::uint64_t seed);
  std::int64_t start_of(std::int64_t sample) const;
  std::int64_t samples_per_epoch() const;

 private:
  std::int64_t windows_ = 0, sequence_ = 0;
  std::uint64_t seed_ = 0;
};

/// Fills ids (sequence) and labels (sequence, the next tokens) of one sample.
void read_sample(const Corpus& corpus, std::int64_t start, std::span<std::int32_t> ids, std::span<std::int32_t> labels);

}  // namespace trivium::runtime::data
