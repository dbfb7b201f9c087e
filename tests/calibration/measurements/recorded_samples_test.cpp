// Samples that the programs themselves wrote (tests/data/README.md): read whole, with values looked up in the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "base/error.h"
#include "calibration/fit/calibrate.h"
#include "calibration/measurements/importer.h"
#include "calibration/measurements/nccl_tests.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/training_log.h"
#include "hardware_profiles/load.h"
#include "tests/calibration/samples.h"
#include "tests/input_error.h"

namespace trivium::calibration::imports {
namespace {

using program::OpKind;
using testing::HasSubstr;

TEST(RecordedSamples, AreToldApart) {
  for (const char* name : {"nccl_all_reduce_b200.txt", "nccl_all_reduce_nebius.txt", "nccl_all_gather_perf_h100.txt"}) {
    EXPECT_EQ(importer_of(sample(name), name).name, "nccl-tests") << name;
  }
  for (const char* name : {"megatron_cpu.log", "megatron_cpu_timers.log"}) {
    EXPECT_EQ(importer_of(sample(name), name).name, "logs of Megatron-LM, DeepSpeed or torchtitan") << name;
  }
  for (const char* name : {"nsight_cpu.sqlite", "nsight_cpu_all_tables.sqlite"}) {
    EXPECT_EQ(importer_of(sample(name), name).name, "Nsight Systems exports (SQLite)") << name;
  }
}

// 8 B to 2 GiB by factors of two. The marks before the tests' own lines and the list of ranks are not in the copy.
TEST(RecordedSamples, AnAllReduceOverTwoNodesOfB200) {
  const CollectiveTimes read = read_nccl_tests(sample("nccl_all_reduce_b200.txt"), "f");
  ASSERT_EQ(read.times.size(), 29U);
  EXPECT_EQ(read.version, "nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602");
  for (const CollectiveTime& time : read.times) {
    EXPECT_EQ(time.kind, OpKind::kAllReduce);
    EXPECT_EQ(time.ranks, 16);
    EXPECT_EQ(time.hosts, 0);
  }
  EXPECT_DOUBLE_EQ(read.times.front().bytes, 8);
  EXPECT_DOUBLE_EQ(read.times.front().seconds, 36.50e-6);
  EXPECT_DOUBLE_EQ(read.times[16].seconds, 240.71e-6);
  EXPECT_DOUBLE_EQ(read.times.back().bytes, 2147483648);
  EXPECT_DOUBLE_EQ(read.times.back().seconds, 5784.75e-6);
}

// Its collective is named at its end alone.
TEST(RecordedSamples, AnAllReduceWhoseBeginningWasNotKept) {
  const std::string whole = sample("nccl_all_reduce_nebius.txt");
  const CollectiveTimes read = read_nccl_tests(whole, "f");
  ASSERT_EQ(read.times.size(), 31U);
  EXPECT_EQ(read.times.front().kind, OpKind::kAllReduce);
  EXPECT_EQ(read.times.front().ranks, 16);
  EXPECT_DOUBLE_EQ(read.times.back().bytes, 8589934592);
  EXPECT_DOUBLE_EQ(read.times.back().seconds, 34448.4e-6);
  EXPECT_THAT(input_error([&] { read_nccl_tests(whole.substr(0, whole.find("Collective test concluded")), "f"); }),
              HasSubstr("the collective is not told"));
}

// Results were not checked, so that #wrong is N/A; the collective is told by the file's name alone.
TEST(RecordedSamples, AnAllGatherOverTwoNodesOfH100) {
  const std::string whole = sample("nccl_all_gather_perf_h100.txt");
  const CollectiveTimes read = read_nccl_tests(whole, "nccl_all_gather_perf_h100.txt");
  ASSERT_EQ(read.times.size(), 11U);
  EXPECT_EQ(read.times.front().kind, OpKind::kAllGather);
  EXPECT_EQ(read.times.front().ranks, 16);
  EXPECT_DOUBLE_EQ(read.times.front().bytes, 8388608);
  EXPECT_DOUBLE_EQ(read.times.front().seconds, 166.6e-6);
  EXPECT_DOUBLE_EQ(read.times.back().seconds, 42713e-6);
  EXPECT_THAT(input_error([&] { read_nccl_tests(whole, "f"); }), HasSubstr("the collective is not told"));
}

// 0.19 and 0.36 GB/s are anything from ten ranks to more than there are.
TEST(RecordedSamples, RanksAreNotGuessedFromSmallSizes) {
  const std::string whole = sample("nccl_all_reduce_b200.txt");
  EXPECT_THAT(input_error([&] { read_nccl_tests(whole.substr(0, whole.find("       16384 ")), "f"); }),
              HasSubstr("does not tell how many ranks took part"));
}

TEST(RecordedSamples, HostsThatAreNotNamedAreWholeNodesOfTheBase) {
  Measurements all;
  all.collectives.push_back(read_nccl_tests(sample("nccl_all_gather_perf_h100.txt"), "all_gather_perf.txt"));
  const hardware::Node base = hardware::load_node("dgx-h100-80gb");
  const Fit fit = calibrate(base, all);
  EXPECT_THAT(fit.report, testing::Contains(HasSubstr("hosts of its 16 ranks are not named; taken as 2 of 8 devices")));
  // 188.5 GB/s of eight adapters of 50 GB/s.
  EXPECT_NEAR(fit.node.network.efficiency, .47, .05);
  EXPECT_EQ(fit.node.allreduce_bus, base.allreduce_bus);
}

// The last seven of twelve: 227.4, 240.2, 265.0, 266.6, 286.2, 307.4, 336.3. Memory and rate are printed as zero.
TEST(RecordedSamples, MegatronOnTwoCores) {
  std::string text = sample("megatron_cpu.log");
  const auto expect_all = [](const TrainingLog& log) {
    EXPECT_EQ(log.trainer, "Megatron-LM");
    ASSERT_EQ(log.iteration_s.size(), 12U);
    EXPECT_DOUBLE_EQ(log.iteration_s.front(), .9999);
    EXPECT_DOUBLE_EQ(log.iteration_s.back(), .2274);
    EXPECT_DOUBLE_EQ(log.typical_iteration_s(), .2666);
    EXPECT_EQ(log.global_batch, 16);
    EXPECT_EQ(log.tensor, 2);
    EXPECT_EQ(log.pipeline, 1);
    EXPECT_EQ(log.context, 1);
    EXPECT_EQ(log.data, 1);
    EXPECT_EQ(log.peak_bytes, std::nullopt);
    EXPECT_EQ(log.reserved_bytes, std::nullopt);
    EXPECT_TRUE(log.flops_per_s.empty());
    EXPECT_FALSE(log.perturbed);
    EXPECT_FALSE(log.is_truncated);
  };
  expect_all(read_training_log(text, "f"));
  // The dump of arguments tells the sizes as well.
  const std::size_t sizes = text.find("using world size");
  text.erase(sizes, text.find('\n', sizes) + 1 - sizes);
  expect_all(read_training_log(text, "f"));
}

TEST(RecordedSamples, MegatronsTimersPerturb) {
  const TrainingLog log = read_training_log(sample("megatron_cpu_timers.log"), "f");
  EXPECT_THAT(log.iteration_s, testing::Pointwise(testing::DoubleEq(), {.5293, .5397, .5609}));
  EXPECT_TRUE(log.perturbed);
}

// Of cores: 8 iterations, each with forward, backward and optimizer.
TEST(RecordedSamples, AnNsightExportWithoutAGpuSaysWhatItHolds) {
  EXPECT_THAT(
      input_error([] { read_nsight(sample_path("nsight_cpu.sqlite")); }),
      HasSubstr("nsight_cpu.sqlite: has no table CUPTI_ACTIVITY_KIND_KERNEL, only 32 NVTX ranges on the host (8 "
                "iterations, 14.5 ms at the median); "));
  EXPECT_THAT(input_error([] { read_nsight(sample_path("nsight_cpu_all_tables.sqlite")); }),
              HasSubstr("lists no kernel of a GPU, only 32 NVTX ranges on the host"));
}

/// A copy of a database with more in it.
class Filled {
 public:
  Filled(const std::string& name, const char* rows)
      : path_(std::filesystem::path(testing::TempDir()) / ("filled_" + name)) {
    std::filesystem::copy_file(sample_path(name), path_, std::filesystem::copy_options::overwrite_existing);
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, rows, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  ~Filled() { std::filesystem::remove(path_); }
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The tables are those that nsys made, the GPU's rows are not: no GPU was there.
TEST(RecordedSamples, TablesOfNsight2022WithAKernelInThem) {
  const Filled filled("nsight_cpu_all_tables.sqlite", R"(
    INSERT INTO StringIds VALUES (900, 'ampere_sgemm_128x64_tn'), (901, 'cudaLaunchKernel_v7000');
    INSERT INTO TARGET_INFO_GPU (vmId, id, name) VALUES (0, 0, 'NVIDIA A100-SXM4-80GB');
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid,
      demangledName, shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,
      dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId)
      VALUES (30300000000, 30300002500, 1, 1, 7, 1, 281801545220096, 900, 900, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, globalPid, bytes, copyKind)
      VALUES (30300010000, 30300020000, 1, 1, 7, 281801545220096, 4000000, 1);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, nameId, returnValue)
      VALUES (30299990000, 30299991000, 0, 281801545239561, 901, 0), (30299995000, 30299996000, 0, 281801545239561, 901, 0);
  )");
  const KernelTrace read = read_nsight(filled.path());
  EXPECT_EQ(read.tool, "Nsight Systems, schema 3.0.0");
  EXPECT_EQ(read.device, "NVIDIA A100-SXM4-80GB");
  ASSERT_EQ(read.kernels.size(), 1U);
  EXPECT_EQ(read.kernels.front().kind, KernelClass::kProduct);
  EXPECT_EQ(read.kernels.front().device, 1);
  EXPECT_NEAR(read.kernels.front().seconds, 2.5e-6, 1e-12);
  ASSERT_EQ(read.copies.size(), 1U);
  EXPECT_NEAR(read.copies.front().seconds, 10e-6, 1e-12);
  EXPECT_THAT(read.launch_gaps_s, testing::ElementsAre(testing::DoubleNear(5e-6, 1e-12)));
  EXPECT_EQ(read.steps, 6);  // of eight: a warm-up, and what may be cut
  EXPECT_NEAR(read.steps_begin_s, 30.255493096, 1e-9);
  EXPECT_NEAR(read.steps_end_s, 30.345733468, 1e-9);
}

}  // namespace
}  // namespace trivium::calibration::imports
