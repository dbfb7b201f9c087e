// Corpora over mapped files.
#include "runtime/data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/quote.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/token_files.h"

namespace trivium::runtime::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kByteVocabulary = 256;

/// 4404445 as "4,404,445".
std::string with_commas(std::int64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// Tokens of one width in place in the mapped file.
template <class Token>
class MappedCorpus final : public Corpus {
 public:
  MappedCorpus(const fs::path& path, std::unique_ptr<MappedFile> file, const TokenLayout& layout)
      : file_(std::move(file)),
        first_(file_->bytes().data() + layout.header),
        tokens_(layout.tokens),
        description_(fmt::format("{} of {} ({} tokens)", layout.kind, base::one_line(path.filename().string()),
                                 with_commas(layout.tokens))) {
    if (layout.is_text) {
      vocabulary_ = kByteVocabulary;
      return;
    }
    Token highest = 0;
    for (std::int64_t i = 0; i < tokens_; ++i) highest = std::max(highest, raw(i));
    vocabulary_ = std::int64_t{highest} + 1;
  }

  std::int64_t tokens() const override { return tokens_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int32_t token(std::int64_t position) const override {
    assert(position >= 0 && position < tokens_);
    return static_cast<std::int32_t>(raw(position));
  }
  std::string description() const override { return description_; }

  /// Position of the first token that is `limit` or more.
  std::optional<std::int64_t> first_beyond(std::int64_t limit) const {
    for (std::int64_t i = 0; i < tokens_; ++i) {
      if (std::int64_t{raw(i)} >= limit) return i;
    }
    return std::nullopt;
  }
  std::int64_t wide_token(std::int64_t position) const { return raw(position); }

 private:
  Token raw(std::int64_t position) const {
    Token value;
    std::memcpy(&value, first_ + position * static_cast<std::int64_t>(sizeof(Token)), sizeof(Token));
    return value;
  }

  std::unique_ptr<MappedFile> file_;
  const std::byte* first_;
  std::int64_t tokens_, vocabulary_ = 0;
  std::string description_;
};

template <class Token>
std::unique_ptr<Corpus> checked_corpus(const fs::path& path, std::unique_ptr<MappedFile> file,
                                       const TokenLayout& layout, std::int64_t model_vocabulary) {
  auto corpus = std::make_unique<MappedCorpus<Token>>(path, std::move(file), layout);
  // Text says 256 without looking; a smaller model may still know every byte the text uses.
  if (corpus->vocabulary() <= model_vocabulary) return corpus;
  if (const auto position = corpus->first_beyond(model_vocabulary)) {
    throw base::Failure(
        base::ErrorKind::kInput,
        fmt::format(
            "{}: token {} at position {} is outside the model's vocabulary of {}; use a model with a vocabulary of "
            "{} or more, or another corpus",
            base::one_line(path.string()), corpus->wide_token(*position), *position, model_vocabulary,
            corpus->vocabulary()));
  }
  return corpus;
}

}  // namespace

std::unique_ptr<Corpus> open_corpus(const fs::path& path, std::int64_t sequence, std::int64_t model_vocabulary) {
  auto file = std::make_unique<MappedFile>(path);
  const TokenLayout layout = layout_of(path, file->bytes());
  if (layout.tokens < sequence + 1) {
    throw base::Failure(
        base::ErrorKind::kInput,
        fmt::format("{}: {} tokens are fewer than one sample needs (sequence {} + 1); use a longer corpus or a "
                    "shorter sequence",
                    base::one_line(path.string()), layout.tokens, sequence));
  }
  switch (layout.token_bytes) {
    case sizeof(std::uint8_t):
      return checked_corpus<std::uint8_t>(path, std::move(file), layout, model_vocabulary);
    case sizeof(std::uint16_t):
      return checked_corpus<std::uint16_t>(path, std::move(file), layout, model_vocabulary);
    default:
      return checked_corpus<std::uint32_t>(path, std::move(file), layout, model_vocabulary);
  }
}

void read_sample(const Corpus& corpus, std::int64_t start, std::span<std::int32_t> ids,
                 std::span<std::int32_t> labels) {
  assert(ids.size() == labels.size());
  if (ids.empty()) return;
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = corpus.token(start + static_cast<std::int64_t>(i));
  std::copy(ids.begin() + 1, ids.end(), labels.begin());
  labels.back() = corpus.token(start + static_cast<std::int64_t>(ids.size()));
}

}  // namespace trivium::runtime::data
