// Every importer on a sample of its format, and on one that was cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/units.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nccl_tests.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/topology.h"
#include "calibration/measurements/training_log.h"
#include "tests/calibration/samples.h"
#include "tests/input_error.h"

namespace trivium::calibration::imports {
namespace {

using program::OpKind;
using testing::HasSubstr;

TEST(NcclTests, TheCurrentTextForm) {
  const CollectiveTimes read = read_nccl_tests(sample("nccl_all_reduce.txt"), "f");
  ASSERT_EQ(read.times.size(), 11U);  // 1 KiB to 1 GiB by factors of four
  EXPECT_EQ(read.device, "NVIDIA H100 80GB HBM3");
  EXPECT_THAT(read.version, HasSubstr("nccl-library=22803"));
  EXPECT_EQ(read.times.front().kind, OpKind::kAllReduce);
  EXPECT_EQ(read.times.front().ranks, 8);
  EXPECT_EQ(read.times.front().hosts, 1);
  EXPECT_DOUBLE_EQ(read.times.front().bytes, 1024);
  EXPECT_DOUBLE_EQ(read.times.front().seconds, 30e-6);  // out of place
  EXPECT_FALSE(read.is_truncated);
}

TEST(NcclTests, TheFormOf2019BehindMpirunOverTwoHosts) {
  const CollectiveTimes read = read_nccl_tests(sample("nccl_all_gather_2019.txt"), "f");
  ASSERT_EQ(read.times.size(), 4U);
  EXPECT_EQ(read.times.front().kind, OpKind::kAllGather);
  EXPECT_EQ(read.times.front().ranks, 4);
  EXPECT_EQ(read.times.front().hosts, 2);
  EXPECT_DOUBLE_EQ(read.times.front().bytes, 33554432);
  EXPECT_NEAR(read.times.front().seconds, 200e-6 + .75 * 33554432 / 20e9, 1e-6);
}

TEST(NcclTests, Json) {
  const CollectiveTimes read = read_nccl_tests(sample("nccl_reduce_scatter.json"), "f");
  ASSERT_EQ(read.times.size(), 3U);
  EXPECT_EQ(read.times.back().kind, OpKind::kReduceScatter);
  EXPECT_EQ(read.times.back().ranks, 4);
  EXPECT_NEAR(read.times.back().seconds, 24e-6 + .75 * (1 << 28) / 400e9, 1e-8);
  EXPECT_EQ(read.version, "NCCL 22803");
}

TEST(NcclTests, WhatWasCutKeepsItsWholeRows) {
  const CollectiveTimes text = read_nccl_tests(beginning_of("nccl_all_reduce.txt", .7), "f");
  EXPECT_TRUE(text.is_truncated);
  EXPECT_GT(text.times.size(), 2U);
  EXPECT_LT(text.times.size(), 11U);
  const CollectiveTimes json = read_nccl_tests(beginning_of("nccl_reduce_scatter.json", .75), "f");
  EXPECT_TRUE(json.is_truncated);
  EXPECT_GE(json.times.size(), 1U);
  EXPECT_LT(json.times.size(), 3U);
  EXPECT_THAT(input_error([] { read_nccl_tests(beginning_of("nccl_all_reduce.txt", .3), "f"); }),
              HasSubstr("f: holds no complete row"));
}

TEST(NcclTests, WrongResultsAndUnknownCollectivesDoNotCount) {
  std::string text = sample("nccl_all_reduce.txt");
  const std::size_t row = text.find("        1024           256");
  const std::size_t wrong = text.find("       0", row + 60);
  text.replace(wrong, 8, "      17");
  EXPECT_EQ(read_nccl_tests(text, "f").times.size(), 10U);
  std::string nameless = sample("nccl_all_reduce.txt");
  for (std::size_t at = 0; (at = nameless.find("all_reduce_perf")) != std::string::npos;) {
    nameless.replace(at, 15, "some_other_test");
  }
  EXPECT_THAT(input_error([&] { read_nccl_tests(nameless, "f"); }), HasSubstr("the collective is not told"));
  EXPECT_EQ(read_nccl_tests(nameless, "logs/all_reduce_perf.txt").times.size(), 11U);
}

TEST(Topology, BehindASwitchEveryPairShowsAllLinks) {
  const GpuTopology read = read_topology(sample("topo_h100.txt"), "f");
  EXPECT_EQ(read.gpus, 4);
  EXPECT_EQ(read.adapters, 2);
  EXPECT_EQ(read.least_nvlinks(), 18);
  EXPECT_EQ(read.most_nvlinks(), 18);
}

TEST(Topology, ACubeMeshCopiedWithBlanks) {
  const GpuTopology read = read_topology(sample("topo_v100.txt"), "f");
  EXPECT_EQ(read.gpus, 8);
  EXPECT_EQ(read.adapters, 0);
  EXPECT_EQ(read.least_nvlinks(), 0);
  EXPECT_EQ(read.most_nvlinks(), 2);
  EXPECT_EQ(read.cells[0][3], "NV2");
  EXPECT_EQ(read.cells[0][5], "SYS");
}

// A capture: the escape stands before the tab, numbers have gaps.
TEST(Topology, CardsOnTwoSocketsWithoutNvlink) {
  const GpuTopology read = read_topology(sample("topo_pcie.txt"), "f");
  EXPECT_EQ(read.gpus, 4);
  EXPECT_EQ(read.adapters, 0);
  EXPECT_EQ(read.most_nvlinks(), 0);
  EXPECT_EQ(read.cells[0], (std::vector<std::string>{"X", "PIX", "SYS", "SYS"}));
  EXPECT_EQ(read.cells[3], (std::vector<std::string>{"SYS", "SYS", "PIX", "X"}));
  std::string skew = sample("topo_pcie.txt");
  skew.replace(skew.find("GPU5\tSYS") + 5, 3, "PXB");
  EXPECT_THAT(input_error([&] { read_topology(skew, "f"); }), HasSubstr("GPU5 to GPU0 is PXB, the way back SYS"));
}

TEST(Topology, RefusesACutMatrixAndGluedCells) {
  const std::string whole = sample("topo_h100.txt");
  EXPECT_THAT(input_error([&] { read_topology(whole.substr(0, whole.find("\nGPU2\t")), "f"); }),
              HasSubstr("the header names 4 GPUs, 2 rows follow"));
  EXPECT_THAT(input_error([&] { read_topology(whole.substr(0, whole.find("\nGPU3\t") + 11), "f"); }),
              HasSubstr("the row of GPU3 has 1 cells of 6"));
  std::string glued = sample("topo_v100.txt");
  glued.replace(glued.find("SYS     SYS"), 11, "SYSSYS");
  EXPECT_THAT(input_error([&] { read_topology(glued, "f"); }),
              HasSubstr("\"SYSSYS\", which says nothing of a connection"));
  std::string skew = sample("topo_v100.txt");
  skew.replace(skew.find("NV1"), 3, "NV2");
  EXPECT_THAT(input_error([&] { read_topology(skew, "f"); }), HasSubstr("the way back"));
}

TEST(Kineto, KernelsShapesCollectivesCopiesAndLaunches) {
  const KernelTrace read = read_kineto(read_chrome_trace(sample("kineto.pt.trace.json"), "f"));
  EXPECT_EQ(read.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(read.kernels.size(), 4U * 8 * 3);  // steps, layers, kernels
  EXPECT_EQ(read.steps, 2);                    // of four: a warm-up, and what may be cut
  const Kernel& product = read.kernels[0];
  EXPECT_EQ(product.kind, KernelClass::kProduct);
  EXPECT_DOUBLE_EQ(product.m, 8192);
  EXPECT_DOUBLE_EQ(product.n, 5120);
  EXPECT_DOUBLE_EQ(product.k, 5120);
  EXPECT_EQ(product.operand_bytes, 2);
  EXPECT_NEAR(product.seconds, 2.0 * 8192 * 5120 * 5120 / 620e12, 1e-9);
  EXPECT_EQ(read.kernels[1].kind, KernelClass::kPointwise);
  const Kernel& reduce = read.kernels[2];
  EXPECT_EQ(reduce.collective, OpKind::kAllReduce);
  EXPECT_EQ(reduce.ranks, 8);
  EXPECT_DOUBLE_EQ(reduce.bytes, 8192.0 * 5120 * 2);
  ASSERT_EQ(read.copies.size(), 4U);
  EXPECT_NEAR(read.copies[0].bytes / read.copies[0].seconds, 52e9, 1e6);
  EXPECT_EQ(read.launch_gaps_s.size(), 63U);
  EXPECT_FALSE(read.is_truncated);
}

TEST(Kineto, ACutTraceKeepsItsWholeEvents) {
  const KernelTrace read = read_kineto(read_chrome_trace(beginning_of("kineto.pt.trace.json", .6), "f"));
  EXPECT_TRUE(read.is_truncated);
  EXPECT_GT(read.kernels.size(), 40U);
  EXPECT_LT(read.kernels.size(), 96U);
  EXPECT_THAT(input_error([] { read_chrome_trace(beginning_of("kineto.pt.trace.json", .006), "f"); }),
              HasSubstr("f#/traceEvents: holds no complete event; the file ends early"));
  EXPECT_THAT(input_error([] { read_kineto(read_chrome_trace(beginning_of("kineto.pt.trace.json", .012), "f")); }),
              HasSubstr("holds no kernel of a GPU before it ends early"));
}

TEST(KernelNames, AttentionBuiltOnCutlassIsAttention) {
  EXPECT_EQ(class_of_kernel("void cutlass::device_kernel<flash::FlashAttnFwdSm90<…>>"), KernelClass::kAttention);
  EXPECT_EQ(class_of_kernel("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn"), KernelClass::kProduct);
  EXPECT_EQ(class_of_kernel("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*)"), KernelClass::kCollective);
  EXPECT_EQ(class_of_kernel("multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"),
            KernelClass::kOptimizer);
  EXPECT_EQ(class_of_kernel("layer_norm_kernel"), KernelClass::kPointwise);
  EXPECT_EQ(collective_named("_reduce_scatter_base"), OpKind::kReduceScatter);
  EXPECT_EQ(collective_named("ncclDevKernel_AllGather_RING_LL"), OpKind::kAllGather);
  EXPECT_FALSE(collective_named("ncclDevKernel_SendRecv"));
}

TEST(Nsight, TheBusiestProcessOfAnExport) {
  const KernelTrace read = read_nsight(sample_path("nsight.sqlite"));
  EXPECT_EQ(read.kernels.size(), 180U);
  EXPECT_EQ(read.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(read.tool, "Nsight Systems, schema 3.25.0");
  EXPECT_EQ(read.kernels[0].kind, KernelClass::kProduct);
  EXPECT_NEAR(read.kernels[0].seconds, 700e-6, 1e-12);
  EXPECT_EQ(read.kernels[2].collective, OpKind::kAllReduce);
  EXPECT_EQ(read.steps, 2);
  EXPECT_NEAR(read.steps_end_s - read.steps_begin_s, .099, 1e-9);
  ASSERT_EQ(read.copies.size(), 4U);
  EXPECT_NEAR(read.copies[0].bytes / read.copies[0].seconds, 50e9, 1e6);
  EXPECT_EQ(read.launch_gaps_s.size(), 179U);
}

TEST(Nsight, RefusesACutDatabaseAndOneWithoutKernels) {
  const std::filesystem::path cut = std::filesystem::path(testing::TempDir()) / "cut.sqlite";
  std::ofstream(cut, std::ios::binary) << beginning_of("nsight.sqlite", .5);
  EXPECT_THAT(input_error([&] { read_nsight(cut); }), HasSubstr("is cut or damaged"));
  std::ofstream(cut, std::ios::binary).close();  // an empty database is a valid one
  EXPECT_THAT(input_error([&] { read_nsight(cut); }), HasSubstr("has no table CUPTI_ACTIVITY_KIND_KERNEL"));
  std::filesystem::remove(cut);
}

// Sorted, after the warm-up: 3008.8, 3009.5, 3010.0 (printed twice, the last counts), 3010.2, 3012.7.
TEST(TrainingLog, MegatronWithMemoryAndSizes) {
  const TrainingLog log = read_training_log(sample("megatron.log"), "f");
  EXPECT_EQ(log.trainer, "Megatron-LM");
  ASSERT_EQ(log.iteration_s.size(), 10U);
  EXPECT_DOUBLE_EQ(log.typical_iteration_s(), 3.0100);
  EXPECT_EQ(log.flops_per_s.size(), 10U);
  EXPECT_EQ(log.global_batch, 64);
  EXPECT_EQ(log.tensor, 8);
  EXPECT_EQ(log.pipeline, 2);
  EXPECT_EQ(log.data, 1);
  EXPECT_EQ(log.context, 1);
  EXPECT_DOUBLE_EQ(*log.peak_bytes, 36113.48 * base::kMiB);
  EXPECT_DOUBLE_EQ(*log.reserved_bytes, 38330 * base::kMiB);
  EXPECT_FALSE(log.perturbed);
}

TEST(TrainingLog, MegatronOf2021WithTimers) {
  const TrainingLog log = read_training_log(sample("megatron_2021.log"), "f");
  EXPECT_THAT(log.iteration_s, testing::Pointwise(testing::DoubleEq(), {13.2482, 13.2509, 13.2417}));
  EXPECT_DOUBLE_EQ(log.typical_iteration_s(), (13.2509 + 13.2417) / 2);
  EXPECT_EQ(log.global_batch, 1024);
  EXPECT_TRUE(log.perturbed);
}

TEST(TrainingLogs, TorchtitansStepsAreTakenFromTheTimeOfDay) {
  const TrainingLog log = read_training_log(sample("torchtitan.log"), "f");
  EXPECT_EQ(log.trainer, "torchtitan");
  ASSERT_EQ(log.iteration_s.size(), 6u);  // intervals between seven logged steps, one over midnight
  EXPECT_NEAR(log.iteration_s[0], 18.5 / 9, 1e-6);
  EXPECT_NEAR(log.iteration_s[1], 2.06, 1e-6);
  EXPECT_NEAR(log.typical_iteration_s(), 2.06, 1e-6);
  EXPECT_NEAR(log.reserved_bytes.value(), 47.38 * 1024 * 1024 * 1024, 1);
  EXPECT_NEAR(log.flops_per_s.back(), 408.6e12, 1e6);
}

TEST(TrainingLog, DeepSpeedByThroughputAndByPipelineSteps) {
  const TrainingLog throughput = read_training_log(sample("deepspeed.log"), "f");
  EXPECT_EQ(throughput.trainer, "DeepSpeed");
  ASSERT_EQ(throughput.iteration_s.size(), 7U);
  EXPECT_DOUBLE_EQ(throughput.iteration_s.front(), 256 / 100.1);
  EXPECT_DOUBLE_EQ(*throughput.peak_bytes, 41.25 * base::kGiB);
  const TrainingLog pipeline = read_training_log(sample("deepspeed_pipeline.log"), "f");
  EXPECT_THAT(pipeline.iteration_s, testing::ElementsAre(2.51, 2.52, 2.53, 2.54, 2.55));
  EXPECT_EQ(pipeline.global_batch, 192);
}

// Its dump of settings names a max_train_batch_size and a min_train_batch_size of 1 as well.
TEST(TrainingLog, DeepSpeedAsItWasRecorded) {
  const TrainingLog log = read_training_log(sample("deepspeed_cpu.log"), "f");
  EXPECT_EQ(log.trainer, "DeepSpeed");
  EXPECT_EQ(log.global_batch, 8);
  ASSERT_EQ(log.iteration_s.size(), 5U);  // of steps 4, 6, 8, 10, 12: the first two are not timed
  EXPECT_DOUBLE_EQ(log.iteration_s.front(), 8 / 86.08397733515707);
  EXPECT_DOUBLE_EQ(log.iteration_s.back(), 8 / 169.25381269669546);
  EXPECT_DOUBLE_EQ(*log.peak_bytes, .71 * base::kGiB);
  EXPECT_FALSE(log.is_truncated);
  const TrainingLog elastic = read_training_log(
      "  \"train_batch_size\": 8, \n  \"min_train_batch_size\": 1, \nglobal_step=4, CurrSamplesPerSec=16, \n", "f");
  EXPECT_DOUBLE_EQ(elastic.iteration_s.front(), .5);
}

TEST(TrainingLog, ACutLogLosesItsLastLineAlone) {
  const std::string whole = sample("megatron.log");
  const TrainingLog log = read_training_log(whole.substr(0, whole.find("3009.9") + 3), "f");
  EXPECT_TRUE(log.is_truncated);
  EXPECT_THAT(log.iteration_s, testing::Pointwise(testing::DoubleEq(), {9.1204, 3.3001, 3.0120}));
  EXPECT_THAT(input_error([&] { read_training_log(whole.substr(0, 300), "f"); }),
              HasSubstr("names no whole iteration"));
}

}  // namespace
}  // namespace trivium::calibration::imports
