// What happens to checkpoints when a run dies at any moment.
#include "runtime/checkpoint/directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "runtime/checkpoint/checkpoint.h"
#include "tests/input_error.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Two checkpoints, of steps 1 and 2.
void two_checkpoints(const fs::path& folder) {
  program::Plan plan;
  plan.pipeline = 2;
  train(small_job(plan), folder, 2, false, 0, 1);
}

TEST(CheckpointFolder, TheNewestWholeOneIsFound) {
  const Folder folder;
  two_checkpoints(folder.path());
  const Newest found = newest(folder.path());
  EXPECT_EQ(found.path, folder.path() / "step-00000002");
  EXPECT_TRUE(found.passed_over.empty());
  EXPECT_EQ(newest(folder.path() / "step-00000001").path, folder.path() / "step-00000001");
}

TEST(CheckpointFolder, AHalfWrittenFolderIsReportedAndIgnoredAndLaterRemoved) {
  const Folder folder;
  two_checkpoints(folder.path());
  fs::create_directories(folder.path() / ".step-00000003.tmp");
  std::ofstream(folder.path() / ".step-00000003.tmp" / "rank-00000.safetensors") << "torn";
  const Newest found = newest(folder.path());
  EXPECT_EQ(found.path, folder.path() / "step-00000002");
  ASSERT_EQ(found.passed_over.size(), 1u);
  EXPECT_NE(found.passed_over.front().find(".step-00000003.tmp: half-written, ignored"), std::string::npos);
  program::Plan plan;
  plan.pipeline = 2;
  train(small_job(plan), folder.path(), 3, true);
  EXPECT_FALSE(fs::exists(folder.path() / ".step-00000003.tmp"));
}

// Killed between the rename and the writing of `latest`: the renamed folder is whole, yet the older one is what counts.
TEST(CheckpointFolder, LatestNamesTheOneThatCounts) {
  const Folder folder;
  two_checkpoints(folder.path());
  base::write_file_atomically(folder.path() / "latest", "step-00000001\n");
  EXPECT_EQ(newest(folder.path()).path, folder.path() / "step-00000001");
  base::write_file_atomically(folder.path() / "latest", "nonsense");
  EXPECT_EQ(newest(folder.path()).path, folder.path() / "step-00000002");
}

// Opening a pipe that nobody reads waits for ever; the training would have been lost by then.
TEST(CheckpointFolder, ALatestThatIsNoFileIsRefusedBeforeAStep) {
  const Folder folder;
  two_checkpoints(folder.path());
  fs::remove(folder.path() / "latest");
  ASSERT_EQ(::mkfifo((folder.path() / "latest").c_str(), 0600), 0);
  program::Plan plan;
  plan.pipeline = 2;
  const std::string why = input_error([&] { train(small_job(plan), folder.path(), 3, true); }, "no error");
  EXPECT_NE(why.find("latest: is no file"), std::string::npos) << why;
}

TEST(CheckpointFolder, ATornOrAlteredFileIsPassedOverForTheOneBefore) {
  const Folder folder;
  two_checkpoints(folder.path());
  const fs::path shard = folder.path() / "step-00000002" / "rank-00001.safetensors";
  const auto size = fs::file_size(shard);
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size - 9));
    const int old = file.peek();
    file.put(static_cast<char>(old ^ 1));
  }
  Newest found = newest(folder.path());
  EXPECT_EQ(found.path, folder.path() / "step-00000001");
  ASSERT_EQ(found.passed_over.size(), 1u);
  EXPECT_NE(found.passed_over.front().find("rank-00001.safetensors: altered or torn"), std::string::npos);
  fs::resize_file(shard, size / 2);
  found = newest(folder.path());
  EXPECT_EQ(found.path, folder.path() / "step-00000001");
  EXPECT_NE(found.passed_over.front().find("torn: "), std::string::npos);
  fs::remove(shard);
  EXPECT_NE(newest(folder.path()).passed_over.front().find("lacks it"), std::string::npos);
}

TEST(CheckpointFolder, AMissingFolderHoldsNothing) {
  const Folder folder;
  EXPECT_FALSE(newest(folder.path() / "nowhere").path.has_value());
  EXPECT_THROW(newest_or_throw(folder.path() / "nowhere"), base::Failure);
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
