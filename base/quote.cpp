#include "base/quote.h"

#include <fmt/format.h>

namespace trivium::base {
namespace {

constexpr std::size_t kLongestQuote = 60;
constexpr std::size_t kMostListed = 12;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Bytes of the UTF-8 character that `text` begins with (Unicode 15, table 3-7); 0 where it begins with none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

/// The controls of ISO 8859-1, U+0080 to U+009F: terminals take some of them for escape sequences.
bool is_high_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
}

template <class Stays>
std::string escaped(std::string_view text, Stays stays) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character(text), taken = length == 0 ? 1 : length;
    const std::string_view bytes = text.substr(0, taken);
    const bool acts = length == 0 || is_high_control(bytes) || (is_control(bytes[0]) && !stays(bytes[0]));
    if (!acts) safe += bytes;
    for (const char c : acts ? bytes : std::string_view()) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(taken);
  }
  return safe;
}

/// True for the second and later bytes of a UTF-8 character: a cut must not fall before one.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string one_line(std::string_view text) {
  return escaped(text, [](char) { return false; });
}

std::string printable(std::string_view text) {
  return escaped(text, [](char c) { return c == '\n' || c == '\t'; });
}

std::string quote(std::string_view text) {
  if (text.size() <= kLongestQuote) return '"' + one_line(text) + '"';
  std::size_t cut = kLongestQuote;
  while (cut > 0 && continues_character(text[cut])) --cut;
  return '"' + one_line(text.substr(0, cut)) + "…\"";
}

std::string listed(std::span<const std::string> names) {
  if (names.size() <= kMostListed) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(kMostListed), ", "), names.size() - kMostListed);
}

}  // namespace trivium::base
