#include "edge/quote.h"

#include <fmt/format.h>

namespace trivium::edge {
namespace {

constexpr std::size_t kLongestQuote = 60;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// True for the second and later bytes of a UTF-8 character: a cut must not fall before one.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    if (is_control(c)) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  return line;
}

std::string quote(std::string_view text) {
  if (text.size() <= kLongestQuote) return '"' + one_line(text) + '"';
  std::size_t cut = kLongestQuote;
  while (cut > 0 && continues_character(text[cut])) --cut;
  return '"' + one_line(text.substr(0, cut)) + "…\"";
}

}  // namespace trivium::edge
