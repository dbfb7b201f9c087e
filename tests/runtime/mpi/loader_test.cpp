// What the loader says where there is no MPI: this program has no path to the module.
#include "runtime/mpi/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace trivium::runtime::mpi {
namespace {

TEST(MpiLoader, AMissingModuleIsOneClearLine) {
  const auto connected = connect_mpi();
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().kind, base::ErrorKind::kHardware);
  EXPECT_THAT(connected.error().message, testing::StartsWith("cannot load MPI: libtrivium_mpi.so: "));
  EXPECT_THAT(connected.error().message, testing::HasSubstr("TRIVIUM_MPI=ON"));
}

TEST(MpiLoader, LaunchersAreKnownByTheirEnvironment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) ::unsetenv(name);
  EXPECT_FALSE(launched_by_mpi());
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    ::setenv(name, "2", 1);
    EXPECT_TRUE(launched_by_mpi()) << name;
    ::unsetenv(name);
  }
}

}  // namespace
}  // namespace trivium::runtime::mpi
