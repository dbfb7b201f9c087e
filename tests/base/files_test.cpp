#include "base/files.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace trivium::base {
namespace {

namespace fs = std::filesystem;

/// Sets an environment variable for one test and puts the old value back.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("trivium_files_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(FilesTest, WrittenContentReadsBackByteForByte) {
  const std::string content("line\n\0binary\xff", 13);
  write_file_atomically(folder_ / "new" / "deeper" / "out.bin", content);
  EXPECT_EQ(read_file(folder_ / "new" / "deeper" / "out.bin"), content);
}

TEST_F(FilesTest, OverwritingKeepsTheModeAndLeavesNoTemporary) {
  const fs::path path = folder_ / "plan.json";
  write_file_atomically(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomically(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FilesTest, WritingThroughALinkReplacesTheFileBehindIt) {
  write_file_atomically(folder_ / "real", "old");
  fs::create_symlink("real", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
}

TEST_F(FilesTest, DevicesAreWrittenNotReplaced) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FilesTest, FoldersAreNeitherReadNorWritten) {
  try {
    (void)read_file(folder_);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::kInput);
    EXPECT_EQ(failure.error().message, folder_.string() + ": cannot read: it is a folder; name a file");
  }
  try {
    write_file_atomically(folder_, "x");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::kRuntime);
    EXPECT_EQ(failure.error().message, folder_.string() + ": cannot write: it is a folder; name a file");
  }
}

TEST_F(FilesTest, AFileInTheWayOfAFolderIsARuntimeError) {
  write_file_atomically(folder_ / "file", "x");
  EXPECT_THROW(write_file_atomically(folder_ / "file" / "below", "y"), Failure);
  EXPECT_EQ(read_file(folder_ / "file"), "x");
}

TEST_F(FilesTest, ShippedDataComesFromTheChosenFolderFirst) {
  fs::create_directories(folder_ / "models");
  const Environment chosen("TRIVIUM_DATA_DIR", folder_.string());
  EXPECT_EQ(shipped_data("models"), folder_ / "models");
}

TEST_F(FilesTest, ShippedDataFallsBackToTheSourceTree) {
  const Environment chosen("TRIVIUM_DATA_DIR", (folder_ / "nowhere").string());
  EXPECT_EQ(shipped_data("models"), fs::path(TRIVIUM_SOURCE_DIR) / "models");
  EXPECT_THROW((void)shipped_data("no such data"), Failure);
}

TEST_F(FilesTest, UserDataFollowsXdgAndIgnoresRelativePaths) {
  const Environment home("HOME", "/home/someone");
  {
    const Environment data("XDG_DATA_HOME", "/data");
    EXPECT_EQ(user_data(), "/data/trivium");
  }
  const Environment data("XDG_DATA_HOME", "relative");
  EXPECT_EQ(user_data(), "/home/someone/.local/share/trivium");
}

}  // namespace
}  // namespace trivium::base
