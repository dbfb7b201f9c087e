#include "runtime/cpu/clear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trivium::runtime::cpu {
namespace {

/// Clears `bytes` bytes that begin `shift` bytes after a cache line's start, and checks every byte in and around them.
void expect_cleared(std::size_t shift, std::size_t bytes) {
  constexpr std::size_t kMargin = 128;
  std::vector<std::byte> memory(bytes + 2 * kMargin, std::byte{0xA5});
  const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(kMargin + shift);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
  clear(&*begin, bytes);
  EXPECT_TRUE(std::all_of(begin, end, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(std::all_of(memory.begin(), begin, [](std::byte b) { return b == std::byte{0xA5}; }));
  EXPECT_TRUE(std::all_of(end, memory.end(), [](std::byte b) { return b == std::byte{0xA5}; }));
}

TEST(Clear, WritesZerosWhereItIsToldAndNowhereElse) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, (std::size_t{4} << 20) - 1,
                                  std::size_t{4} << 20, (std::size_t{5} << 20) + 13}) {
    for (const std::size_t shift : {0U, 4U, 62U}) expect_cleared(shift, bytes);
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
