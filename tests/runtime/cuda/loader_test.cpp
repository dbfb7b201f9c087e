#include "runtime/cuda/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trivium::runtime::cuda {
namespace {

// Without the module, a driver or a GPU it is one line that says which, as a hardware error; nothing is thrown.
TEST(CudaLoader, SaysWhatIsMissing) {
  const auto devices = describe_devices();
  if (devices) GTEST_SKIP() << "there is a GPU: " << devices.value().front();
  const auto opened = open_device(0);
  ASSERT_FALSE(opened);
  for (const base::Error& error : {devices.error(), opened.error()}) {
    EXPECT_EQ(error.kind, base::ErrorKind::kHardware);
    EXPECT_THAT(error.message, ::testing::MatchesRegex("cannot use a GPU: .+"));
    EXPECT_THAT(error.message, ::testing::Not(::testing::HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
