// What fuzzing began with and what it found, read again in every test run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/readers.h"

namespace trivium::fuzz {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(FuzzCorpus, EveryReaderTakesOrRefusesEveryFile) {
  for (const NamedReader& reader : readers()) {
    const fs::path folder = fs::path(TRIVIUM_SOURCE_DIR) / "tests/fuzz/corpus" / reader.name;
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string content = content_of(entry.path());
      // Whole, and cut off everywhere for what is short, at a hundred places for what is not.
      const std::size_t step = std::max<std::size_t>(1, content.size() / 100);
      for (std::size_t size = content.size() % step; size <= content.size(); size += step) {
        EXPECT_NO_THROW(reader.read(std::as_bytes(std::span(content).first(size))))
            << entry.path() << " up to byte " << size;
      }
      ++files;
    }
    EXPECT_GT(files, 0) << folder;
  }
}

}  // namespace
}  // namespace trivium::fuzz
