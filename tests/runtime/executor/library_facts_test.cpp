#include "runtime/executor/library_facts.h"

#include <gtest/gtest.h>

namespace trivium::runtime {
namespace {

using Facts = std::map<std::string, std::string>;

// What the two kinds of kernel module write into /proc/driver/nvidia/version.
TEST(LibraryFacts, TheDriverIsTheKernelModulesVersion) {
  EXPECT_EQ(
      nvidia_driver_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.223.02  Sat Oct  7 15:39:11 UTC 2023\n"
                       "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
      "470.223.02");
  EXPECT_EQ(nvidia_driver_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  "
                             "(dvs-builder@U16)\n"),
            "570.86.15");
  EXPECT_EQ(nvidia_driver_in(""), "");
  EXPECT_EQ(nvidia_driver_in("GCC version:  gcc version 12.2.0 \n"), "");
}

TEST(LibraryFacts, OfAGpuAreTakenFromItsDescription) {
  Facts facts = gpu_facts("NVIDIA H200, sm_90, 139.8 GiB, driver for CUDA 13.0, runtime 12.9, NCCL 2.28.3");
  facts.erase("driver");  // of the machine that tests
  EXPECT_EQ(facts,
            (Facts{{"gpu", "NVIDIA H200, sm_90, 139.8 GiB"}, {"cuda", "CUDA 13.0, runtime 12.9"}, {"nccl", "2.28.3"}}));
  Facts bare = gpu_facts("cannot be asked");
  bare.erase("driver");
  EXPECT_EQ(bare, (Facts{{"gpu", "cannot be asked"}}));
}

// Nothing here opens MPI's module.
TEST(LibraryFacts, OfMpiAreThoseOfTheLoadedLibrary) { EXPECT_TRUE(mpi_facts().empty()); }

}  // namespace
}  // namespace trivium::runtime
