// The token file formats: which one a file has, where its tokens lie and how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace trivium::runtime::data {

/// Where the tokens lie in a file. Little-endian, packed.
struct TokenLayout {
  std::string kind;        ///< "bytes", "llm.c tokens", "raw uint16 tokens"
  std::size_t header = 0;  ///< bytes before the first token
  std::size_t token_bytes = 1;
  std::int64_t tokens = 0;
  bool is_text = false;  ///< bytes: the vocabulary is 256 whatever the text uses
};

/// By content: llm.c's magic number wherever the file has it; else raw uint16 for `*.bin` (nanoGPT); else bytes.
/// Errors: base::Failure(kInput) naming `path` for a header that is cut off, of an unknown version or at odds with the
/// size, and for raw tokens of odd size.
TokenLayout layout_of(const std::filesystem::path& path, std::span<const std::byte> content);

}  // namespace trivium::runtime::data
