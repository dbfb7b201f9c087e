// Source trees that tests make up, to see that rules find what breaks them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace trivium::structure {

/// A small tree of files that lives as long as one test.
class MadeUpTree : public testing::Test {
 protected:
  MadeUpTree() {
    std::string name = (std::filesystem::path(testing::TempDir()) / "trivium-tree-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder in " + testing::TempDir());
    root_ = name;
  }
  ~MadeUpTree() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void write(const std::filesystem::path& file, const std::string& content) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << content;
  }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace trivium::structure
