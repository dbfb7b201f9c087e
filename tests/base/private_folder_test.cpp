#include "base/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace trivium::base {
namespace {

namespace fs = std::filesystem;

TEST(PrivateFolder, IsEnteredByItsOwnerAloneAndGoesWithItsContent) {
  fs::path path;
  {
    const PrivateFolder folder(testing::TempDir(), "trivium-test-"), other(testing::TempDir(), "trivium-test-");
    path = folder.path();
    EXPECT_NE(path, other.path());
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U);
    std::ofstream(path / "file") << "content";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(PrivateFolder, ThoseOfKilledProcessesAreRemovedAndNoOthers) {
  const PrivateFolder base(testing::TempDir(), "trivium-test-");
  const PrivateFolder lives(base.path(), "run-");
  fs::create_directory(base.path() / "run-strange");  // somebody else's: it has no lock
  fs::create_directory_symlink(base.path() / "run-strange", base.path() / "run-link");
  const pid_t child = ::fork();
  if (child == 0) {
    const PrivateFolder left(base.path(), "run-");
    ::_exit(0);  // as if killed: nothing is destroyed
  }
  ::waitpid(child, nullptr, 0);
  const auto folders = [&] { return std::distance(fs::directory_iterator(base.path()), fs::directory_iterator()); };
  EXPECT_EQ(folders(), 5);  // with the lock of the base
  remove_abandoned_folders(base.path(), "run-");
  EXPECT_EQ(folders(), 4);
  EXPECT_TRUE(fs::exists(lives.path()));
}

TEST(TemporaryFolder, NamesTheVariableThatIsWrong) {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nonexistent", 1);
  try {
    temporary_folder();
    ADD_FAILURE() << "it was taken";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().message, "TMPDIR=/nonexistent: there is no such folder; create it, or unset TMPDIR");
  }
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", saved.c_str(), 1);
}

}  // namespace
}  // namespace trivium::base
