// The pattern needs Unicode's classes of characters, which PCRE2 knows.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/words.h"

#include <pcre2.h>

#include <memory>
#include <stdexcept>

namespace trivium::runtime::text {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using Code = std::unique_ptr<pcre2_code, Free>;

// As in OpenAI's encoder (gpt-2, src/encoder.py).
constexpr const char* kPattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Code compile() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern), PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr));
  if (!code) throw std::runtime_error("the pattern of words does not compile");
  return code;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  static const Code kCode = compile();
  const std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create_from_pattern(kCode.get(), nullptr));
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const int found =
        pcre2_match(kCode.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0, match.get(), nullptr);
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    const std::size_t begin = found > 0 ? range[0] : text.size(), end = found > 0 ? range[1] : text.size();
    // The pattern takes every valid character, so what it jumps over is no UTF-8.
    for (; at < begin; ++at) words.push_back(text.substr(at, 1));
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

}  // namespace trivium::runtime::text
