// Text as tokens and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::runtime::text {

/// Immutable; safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Bytes, not always whole characters: a token may be a part of one. Tokens that are none become U+FFFD.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
  virtual std::int64_t vocabulary() const = 0;
};

/// A token is a byte: what a text corpus is read as.
std::unique_ptr<Tokenizer> bytes_tokenizer();

/// GPT-2's byte-pair encoding with the files it was published with: `vocabulary` (vocab.json: token -> number) and
/// `merges` (merges.txt: pairs, most frequent first, after a line that begins with "#version").
/// Radford et al. 2019, §2.2; Sennrich et al. 2016 (arXiv 1508.07909); the split into words and the printable stand-ins
/// of bytes are those of OpenAI's encoder. Errors: base::Failure(kInput) naming file and line: a vocabulary that is no
/// object of distinct numbers from 0 on or that lacks a byte, a merge that is no pair or whose result is no token.
std::unique_ptr<Tokenizer> open_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

}  // namespace trivium::runtime::text
