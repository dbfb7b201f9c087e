#include "gui/model/sample_text.h"

#include <array>
#include <cstdint>

namespace trivium::gui {
namespace {

constexpr std::uint32_t kLargest = 60;  // of the two that are added

std::string in_words(std::uint32_t n) {
  static constexpr std::array<const char*, 20> kSmall{
      "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
      "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::array<const char*, 10> kTens{"",      "",      "twenty",  "thirty", "forty",
                                                     "fifty", "sixty", "seventy", "eighty", "ninety"};
  if (n >= 100) return "one hundred" + (n % 100 == 0 ? std::string() : " and " + in_words(n % 100));
  if (n < kSmall.size()) return kSmall[n];
  return kTens[n / 10] + (n % 10 == 0 ? std::string() : std::string("-") + kSmall[n % 10]);
}

}  // namespace

std::string sample_text(std::size_t bytes) {
  std::string text;
  std::uint32_t state = 1;
  const auto next = [&] {  // Park and Miller's generator: all numbers but 0 before one comes again
    state = static_cast<std::uint32_t>(std::uint64_t{state} * 48271 % 2147483647);
    return state % (kLargest + 1);
  };
  while (true) {
    const std::uint32_t a = next(), b = next();
    const std::string line = in_words(a) + " and " + in_words(b) + " make " + in_words(a + b) + ".\n";
    if (text.size() + line.size() > bytes) return text;
    text += line;
  }
}

}  // namespace trivium::gui
