// What other programs' measurements teach a profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "calibration/fit/calibrate.h"
#include "calibration/fit/gpu_models.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/run_events.h"
#include "calibration/measurements/trivium_trace.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/record/chrome_trace.h"
#include "simulator/collectives/node_curve.h"
#include "simulator/cost/gemm.h"
#include "simulator/predict/predict.h"
#include "tests/calibration/samples.h"
#include "tests/calibration/synthetic_run.h"

namespace trivium::calibration {
namespace {

using testing::Contains;
using testing::HasSubstr;

const FittedNumber& number(const Fit& fit, const std::string& pointer) {
  for (const FittedNumber& each : fit.numbers) {
    if (each.pointer == pointer) return each;
  }
  throw std::out_of_range(pointer);
}

TEST(Measurements, NcclTestsSetTheCurveOfAGroup) {
  Measurements all;
  all.collectives.push_back(imports::read_nccl_tests(sample("nccl_all_reduce.txt"), "bench.txt"));
  const hardware::Node base = hardware::load_node("dgx-h100-80gb");
  const Fit fit = calibrate(base, all);
  EXPECT_NEAR(fit.node.allreduce_latency.at(8).value(), 30e-6, .2e-6);
  EXPECT_NEAR(fit.node.allreduce_bus.at(8).value(), 440e9, 2e9);
  EXPECT_THAT(fit.node.sources.at("/allreduce_bus/8"), HasSubstr("nccl-tests in bench.txt"));
  EXPECT_EQ(number(fit, "/allreduce_bus/8").samples, 3);  // 64 MiB, 256 MiB, 1 GiB
  // The profile that was given stays as it was; what is written is one.
  EXPECT_NE(base.allreduce_bus, fit.node.allreduce_bus);
  EXPECT_EQ(hardware::node_from_json(hardware::to_json(fit.node), "fit").allreduce_bus, fit.node.allreduce_bus);
}

TEST(Measurements, NothingIsExtrapolatedInSilence) {
  Measurements all;
  imports::CollectiveTimes times = imports::read_nccl_tests(sample("nccl_all_reduce.txt"), "bench.txt");
  std::erase_if(times.times, [](const auto& time) { return time.bytes > 2e6; });
  all.collectives.push_back(times);
  const hardware::Node base = hardware::load_node("dgx-h100-80gb");
  const Fit fit = calibrate(base, all);
  EXPECT_EQ(fit.node.allreduce_bus, base.allreduce_bus);
  EXPECT_FALSE(number(fit, "/allreduce_bus/8").determined);
  EXPECT_THAT(fit.report, Contains(HasSubstr("no message of 64 MiB or more")));
  EXPECT_TRUE(number(fit, "/allreduce_latency/8").determined);
}

// All-gathers of 33 to 268 MB: 200 us and 20 GB/s over one adapter of 25 GB/s.
TEST(Measurements, TestsOverHostsSetTheNetwork) {
  Measurements all;
  all.collectives.push_back(imports::read_nccl_tests(sample("nccl_all_gather_2019.txt"), "bench.txt"));
  hardware::Node base = hardware::load_node("dgx1-v100-32gb");
  base.adapters = 1;
  base.network = {base::BytesPerSecond(25e9), base::Seconds(10e-6), .5};
  const Fit fit = calibrate(base, all);
  // Two ranks a node drive the one adapter: 20 of 25, less what 200 us is more than the rule's own latency.
  EXPECT_NEAR(fit.node.network.efficiency, .8, .05);
  EXPECT_EQ(fit.node.allreduce_bus, base.allreduce_bus);
}

TEST(Measurements, TheTopologySaysWhatThereIs) {
  Measurements all;
  all.topologies.push_back(imports::read_topology(sample("topo_h100.txt"), "topo.txt"));
  hardware::Node base = hardware::load_node("dgx-h100-80gb");
  base.intra.bandwidth = base::BytesPerSecond(300e9);
  const Fit fit = calibrate(base, all);
  EXPECT_TRUE(number(fit, "/intra/bandwidth").determined);
  EXPECT_EQ(fit.node.devices, 4);
  EXPECT_EQ(fit.node.topology, hardware::Topology::kNvswitch);
  EXPECT_EQ(fit.node.adapters, 2);
  EXPECT_DOUBLE_EQ(fit.node.intra.bandwidth.value(), 18 * 25e9);  // NVLink 4
  EXPECT_TRUE(fit.node.allreduce_bus.empty() || fit.node.allreduce_bus.rbegin()->first <= 4);
  (void)hardware::node_from_json(hardware::to_json(fit.node), "fit");
  Measurements mesh;
  mesh.topologies.push_back(imports::read_topology(sample("topo_v100.txt"), "topo.txt"));
  const Fit cube = calibrate(hardware::load_node("dgx1-v100-32gb"), mesh);
  EXPECT_EQ(cube.node.topology, hardware::Topology::kCubeMesh);
  EXPECT_FALSE(number(cube, "/intra/bandwidth").determined);
}

TEST(Measurements, AProfilersTraceSetsTheDevice) {
  Measurements all;
  all.traces.push_back(
      {imports::read_kineto(imports::read_chrome_trace(sample("kineto.pt.trace.json"), "trace.json")), std::nullopt});
  const hardware::Node base = hardware::load_node("dgx-h100-80gb");
  const Fit fit = calibrate(base, all);
  const simulator::GemmRates rates = simulator::gemm_rates(fit.node.device, program::DType::kBf16, 1);
  const double measured = 2.0 * 8192 * 5120 * 5120 / 620e12;
  EXPECT_NEAR(simulator::gemm_time({8192, 5120, 5120, 1}, rates).value() / measured, 1, .01);
  EXPECT_NEAR(fit.node.host_link.value(), 52e9, 1e7);
  EXPECT_NEAR(fit.node.device.kernel_issue.value(), 12e-6, 1e-9);
  // The fastest of 2 7/8 of 84 MB took 30 us and 400 GB/s; the trace has no small ones, so the base's latency is taken
  // off.
  const double wire = 1.75 * 8192 * 5120 * 2, fastest = 30e-6 + wire / 400e9;
  EXPECT_NEAR(fit.node.allreduce_bus.at(8).value(), wire / (fastest - simulator::node_curve(base, 8).latency.value()),
              1e8);
  EXPECT_FALSE(number(fit, "/allreduce_latency/8").determined);
}

TEST(Measurements, AnNsightExportWithoutShapesKeepsTheProducts) {
  Measurements all;
  all.traces.push_back({imports::read_nsight(sample_path("nsight.sqlite")), std::nullopt});
  const hardware::Node base = hardware::load_node("dgx-h100-80gb");
  const Fit fit = calibrate(base, all);
  EXPECT_FALSE(number(fit, "/device/gemm_efficiency").determined);
  EXPECT_DOUBLE_EQ(fit.node.device.gemm_efficiency, base.device.gemm_efficiency);
  EXPECT_NEAR(fit.node.host_link.value(), 50e9, 1e7);
  EXPECT_NEAR(fit.node.device.kernel_issue.value(), 9e-6, 1e-9);
}

program::Job gpu_job(int tensor, int data, int micro_batch) {
  program::Job job;
  job.model = models::load_model("gpt3-1.3b");
  job.training.sequence = 2048;
  job.training.global_batch = 16;
  job.plan.tensor = tensor;
  job.plan.data = data;
  job.plan.micro_batch = micro_batch;
  job.plan.precision = program::DType::kBf16;
  job.plan.attention = program::Attention::kFlash;
  return job;
}

TEST(Measurements, IterationsOfOthersSetWhatOnlyTheyShow) {
  const hardware::Node base = hardware::load_node("dgx-a100-80gb");
  hardware::Node truth = base;
  truth.device.compute_scale = base.device.compute_scale * .88;
  Measurements all;
  for (const program::Job& job : {gpu_job(1, 1, 4), gpu_job(2, 1, 4), gpu_job(1, 2, 8), gpu_job(1, 1, 8)}) {
    const hardware::Cluster cluster{"c", {{truth, 1}}};
    const auto predicted = simulator::predict(job, cluster).value_or_throw();
    all.jobs.push_back({job, predicted.simulation.iteration_s, std::nullopt, "a log"});
  }
  const Fit fit = calibrate(base, all);
  EXPECT_NEAR(fit.node.device.compute_scale / truth.device.compute_scale, 1, .03);
  EXPECT_TRUE(number(fit, "/device/compute_scale").determined);
  // One node: its network is in none of them.
  EXPECT_FALSE(number(fit, "/network/efficiency").determined);
  EXPECT_DOUBLE_EQ(fit.node.network.efficiency, base.network.efficiency);
}

TEST(Measurements, OneGpuSaysNothingAboutAnother) {
  Measurements all;
  all.collectives.push_back(imports::read_nccl_tests(sample("nccl_all_reduce.txt"), "bench.txt"));  // of an H100
  try {
    (void)calibrate(hardware::load_node("dgx-a100-80gb"), all);
    FAIL() << "an A100 was fitted to an H100";
  } catch (const base::Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "calibrate: bench.txt was measured on NVIDIA H100 80GB HBM3, which says nothing about a100-sxm-80gb; "
                 "give --base a profile of its machine");
  }
  all.collectives.front().device = "a card that nobody knows";
  (void)calibrate(hardware::load_node("dgx-a100-80gb"), all);
}

TEST(GpuModels, AreFoundInNamesOfAnyStyle) {
  EXPECT_EQ(gpu_model_in("h100-sxm-80gb")->name, "H100");
  EXPECT_EQ(gpu_model_in("NVIDIA H100 80GB HBM3"), gpu_model_in("h100-sxm-80gb"));
  EXPECT_EQ(gpu_model_in("NVIDIA GB200")->name, "GB200");
  EXPECT_EQ(gpu_model_in("Tesla V100-SXM2-32GB"), gpu_model_in("v100-sxm-32gb"));
  EXPECT_EQ(gpu_model_in("cpu-core"), nullptr);
}

TEST(Measurements, GpusSayNothingAboutCores) {
  Measurements all;
  all.topologies.push_back(imports::read_topology(sample("topo_h100.txt"), "topo.txt"));
  EXPECT_THROW(calibrate(hardware::load_node("generic-cpu"), all), base::Failure);
  EXPECT_THROW(calibrate(hardware::load_node("generic-cpu"), Measurements{}), base::Failure);
}

TEST(Measurements, ATraceOfOurOwnTeachesWhatItsRecordDoes) {
  const hardware::Node truth = rated_node(2.5), base = rated_node(1);
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), truth);
  const std::string text = program::chrome_trace(program_of(record), record.timeline, &record);
  const imports::ChromeTrace trace = imports::read_chrome_trace(text, "trace.json");
  ASSERT_TRUE(imports::is_run_trace(trace));
  const program::RunRecord back = imports::run_record_of(trace);
  EXPECT_EQ(program::to_json(back), program::to_json(record));
  const Fit native = calibrate(base, std::span(&record, 1)), imported = calibrate(base, std::span(&back, 1));
  EXPECT_EQ(hardware::to_json(imported.node).dump(), hardware::to_json(native.node).dump());
  EXPECT_EQ(imported.report, native.report);
}

TEST(Measurements, ACutTraceOfOurOwnLosesItsLastStep) {
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), rated_node(1));
  const std::string text = program::chrome_trace(program_of(record), record.timeline, &record);
  const imports::ChromeTrace trace = imports::read_chrome_trace(text.substr(0, text.size() * 8 / 10), "trace.json");
  EXPECT_TRUE(trace.is_truncated);
  const program::RunRecord back = imports::run_record_of(trace);
  int last = 0;
  for (const program::Event& event : back.timeline.events) last = std::max(last, event.step);
  EXPECT_EQ(last, 1);  // of 0 to 2
  const imports::ChromeTrace first = imports::read_chrome_trace(text.substr(0, text.size() * 2 / 10), "trace.json");
  EXPECT_THROW(imports::run_record_of(first), base::Failure);
}

/// A profile in which products are twice as fast and the link half as wide as they are.
hardware::Node wrong_profile() {
  hardware::Node wrong = rated_node(1);
  for (const char* kind : {"matmul", "matmul_dgrad", "matmul_wgrad"}) {
    hardware::OpRate& rate = wrong.device.op_rates.at(kind);
    rate.seconds_per_flop /= 2;
    rate.seconds_per_byte /= 2;
    rate.overhead = rate.overhead / 2;
  }
  wrong.intra.bandwidth = wrong.intra.bandwidth / 2;
  return wrong;
}

TEST(Measurements, AWrongProfileIsPutRightByThreeRuns) {
  const hardware::Node truth = rated_node(1);
  const program::RunRecord records[] = {synthetic_run(small_job(2, 1, 1, 1), truth),
                                        synthetic_run(small_job(1, 1, 2, 4), truth),
                                        synthetic_run(small_job(1, 2, 1, 2), truth)};
  const Fit fit = calibrate(wrong_profile(), records);
  EXPECT_NEAR(fit.node.intra.bandwidth / truth.intra.bandwidth, 1, .05);
  EXPECT_NEAR(fit.node.intra.latency / truth.intra.latency, 1, .05);
  for (const char* kind : {"matmul", "matmul_dgrad", "matmul_wgrad"}) {
    const hardware::OpRate &found = fit.node.device.op_rates.at(kind), &is = truth.device.op_rates.at(kind);
    EXPECT_NEAR(found.seconds_per_flop / is.seconds_per_flop, 1, .05) << kind;
    EXPECT_NEAR(found.seconds_per_byte / is.seconds_per_byte, 1, .05) << kind;
  }
  // Whatever is called determined is right.
  for (const FittedNumber& each : fit.numbers) {
    const bool rate = each.pointer.starts_with("/device/op_rates/");
    if (!each.determined || !rate) continue;
    const double is = each.pointer.ends_with("overhead")           ? 1e-6
                      : each.pointer.ends_with("seconds_per_flop") ? 2e-11
                                                                   : 1e-10;
    EXPECT_NEAR(each.after / is, 1, .05) << each.pointer;
  }
  // Rotary embeddings are in no run, and nothing was claimed of them.
  EXPECT_THAT(fit.report, Contains("rotary: in no run, kept from the base"));
}

// One run of one shape tells how long its products take, but not what of it is overhead and what is work.
TEST(Measurements, OneShapeDoesNotTellItsTermsApart) {
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 2), rated_node(1));
  const Fit fit = calibrate(wrong_profile(), std::span(&record, 1));
  EXPECT_FALSE(number(fit, "/device/op_rates/loss/overhead").determined);
  EXPECT_THAT(fit.report, Contains(HasSubstr("undetermined: overhead")));
}

TEST(Measurements, RunsWhoseRanksTakeTurnsArePassedOver) {
  hardware::Node four = rated_node(1);
  four.devices = 4;
  const program::RunRecord record = synthetic_run(small_job(2, 1, 2, 1), four);
  const hardware::Node base = rated_node(1);  // two cores
  EXPECT_THROW(calibrate(base, std::span(&record, 1)), base::Failure);
  const program::RunRecord both[] = {record, synthetic_run(small_job(2, 1, 1, 2), rated_node(2))};
  const Fit fit = calibrate(base, both);
  EXPECT_THAT(fit.report, Contains("run 1: passed over: 4 ranks took turns on 2 cores"));
  EXPECT_NEAR(fit.node.intra.latency.value(), 20e-6, .5e-6);
}

TEST(Measurements, SaysWhichOpsOfAPlanLieBeyondWhatWasMeasured) {
  const program::RunRecord record = synthetic_run(small_job(2, 1, 1, 1), rated_node(1));
  const Fit fit = calibrate(rated_node(1), std::span(&record, 1));
  EXPECT_TRUE(extrapolations(fit, small_job(2, 1, 1, 1)).empty());
  EXPECT_TRUE(extrapolations(fit, small_job(2, 1, 1, 2)).empty());
  // Eight samples at once and not split: sixteen times the products.
  EXPECT_THAT(extrapolations(fit, small_job(1, 1, 1, 8)),
              Contains(HasSubstr("matmul: the plan's largest is 16.0 times")));
}

}  // namespace
}  // namespace trivium::calibration
