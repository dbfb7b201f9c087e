// Splitting text into the words that byte-pair encoding never merges across.
#pragma once

#include <string_view>
#include <vector>

namespace trivium::runtime::text {

/// GPT-2's words: contractions ('s 't 're 've 'm 'll 'd), letters, digits, or other signs, each with the space before
/// it, and runs of white space. Together they are the text again. Bytes that are no UTF-8 are words of their own.
std::vector<std::string_view> words_of(std::string_view text);

}  // namespace trivium::runtime::text
