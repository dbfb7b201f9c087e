// llm.c and nanoGPT token files.
// llm.c (dev/data/data_common.py, write_datafile): 256 int32 {magic, version, tokens, 0 …}, then the tokens.
#include "runtime/data/token_files.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/refuse.h"

namespace trivium::runtime::data {
namespace {

using base::refuse;

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read in place");

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::uint32_t);

struct HeaderKind {
  std::uint32_t magic, version;
  std::size_t token_bytes;
};
constexpr std::array kHeaderKinds{
    HeaderKind{20240520, 1, sizeof(std::uint16_t)},  // GPT-2 tokens
    HeaderKind{20240801, 7, sizeof(std::uint32_t)},  // Llama 3 tokens
};

std::uint32_t header_word(std::span<const std::byte> content, std::size_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, content.data() + index * sizeof(word), sizeof(word));
  return word;
}

const HeaderKind* header_kind_of(std::span<const std::byte> content) {
  if (content.size() < sizeof(std::uint32_t)) return nullptr;
  for (const HeaderKind& kind : kHeaderKinds) {
    if (header_word(content, 0) == kind.magic) return &kind;
  }
  return nullptr;
}

TokenLayout with_header(const std::filesystem::path& path, std::span<const std::byte> content, const HeaderKind& kind) {
  if (content.size() < kHeaderBytes) {
    refuse(path, fmt::format("the header of llm.c tokens is cut off: {} of {} bytes", content.size(), kHeaderBytes));
  }
  const std::uint32_t version = header_word(content, 1), tokens = header_word(content, 2);
  if (version != kind.version) {
    refuse(path, fmt::format("llm.c tokens of version {}; version {} is read", version, kind.version));
  }
  const std::size_t expected = kHeaderBytes + tokens * kind.token_bytes;
  if (content.size() != expected) {
    refuse(path, fmt::format("the header says {} tokens, so {} bytes, but the file has {}; it may be cut off", tokens,
                             expected, content.size()));
  }
  return {.kind = "llm.c tokens", .header = kHeaderBytes, .token_bytes = kind.token_bytes, .tokens = tokens};
}

}  // namespace

TokenLayout layout_of(const std::filesystem::path& path, std::span<const std::byte> content) {
  if (const HeaderKind* const kind = header_kind_of(content)) return with_header(path, content, *kind);
  const auto size = static_cast<std::int64_t>(content.size());
  if (path.extension() != ".bin") return {.kind = "bytes", .tokens = size, .is_text = true};
  if (size % 2 != 0) {
    refuse(path,
           fmt::format("a .bin file without llm.c header is read as uint16 tokens, but has an odd size of {} bytes;"
                       " name text files otherwise",
                       size));
  }
  return {.kind = "raw uint16 tokens", .token_bytes = sizeof(std::uint16_t), .tokens = size / 2};
}

}  // namespace trivium::runtime::data
