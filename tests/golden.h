// Expected texts that lie in files, held against what is made now or written anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace trivium {

/// Whether this run writes expected texts instead of holding them: TRIVIUM_UPDATE_GOLDENS=1.
inline bool golden_update() {
  const char* update = std::getenv("TRIVIUM_UPDATE_GOLDENS");
  return update != nullptr && std::string(update) == "1";
}

/// Holds a text against its file. Where goldens are updated it is written there first, and what then lies there held.
inline void expect_golden(const std::filesystem::path& path, const std::string& text) {
  if (golden_update()) std::ofstream(path, std::ios::binary) << text;
  std::ostringstream expected;
  std::ifstream file(path, std::ios::binary);
  if (file.peek() != std::ifstream::traits_type::eof()) expected << file.rdbuf();
  EXPECT_TRUE(file.is_open()) << path << " cannot be read";
  EXPECT_EQ(text, expected.str()) << path << "; if this is meant, run again with TRIVIUM_UPDATE_GOLDENS=1";
}

}  // namespace trivium
