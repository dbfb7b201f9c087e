// Every sample, cut at many lengths: what was whole is read as it stands in the whole file, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/importer.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nccl_tests.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/topology.h"
#include "calibration/measurements/training_log.h"
#include "tests/calibration/samples.h"

namespace trivium::calibration::imports {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

/// The numbers that one importer makes of a text, in the order of the file, and whether it says that it was cut.
struct Numbers {
  std::vector<double> values;
  bool is_truncated = false;
};
using Read = std::function<Numbers(const std::string&)>;

Numbers collectives(const std::string& text) {
  const CollectiveTimes read = read_nccl_tests(text, "f");
  Numbers numbers{{}, read.is_truncated};
  for (const CollectiveTime& time : read.times) numbers.values.push_back(time.seconds);
  return numbers;
}

Numbers kernels(const std::string& text) {
  const KernelTrace read = read_kineto(read_chrome_trace(text, "f"));
  Numbers numbers{{}, read.is_truncated};
  for (const Kernel& kernel : read.kernels) numbers.values.push_back(kernel.seconds);
  return numbers;
}

Numbers events(const std::string& text) {
  const ChromeTrace read = read_chrome_trace(text, "f");
  Numbers numbers{{}, read.is_truncated};
  for (const ChromeEvent& event : read.events) numbers.values.push_back(event.duration_us);
  return numbers;
}

Numbers iterations(const std::string& text) {
  const TrainingLog read = read_training_log(text, "f");
  return {read.iteration_s, read.is_truncated};
}

/// Empty where `read` succeeds; any other exception than a Failure(kInput) that names the file fails the test.
std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kInput);
    EXPECT_THAT(failure.what(), AnyOf(StartsWith("f: "), StartsWith("f#"))) << failure.what();
    EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos);
    return failure.what();
  }
  return "";
}

constexpr std::size_t kCuts = 80;

/// Reads `whole` cut at many lengths. Returns how many of them gave numbers.
std::size_t read_cut(const std::string& whole, const Read& read, bool a_line_end_may_hide_it,
                     std::size_t cuts = kCuts) {
  const Numbers all = read(whole);
  EXPECT_FALSE(all.is_truncated);
  std::size_t with_numbers = 0;
  for (std::size_t i = 1; i < cuts; ++i) {
    const std::string cut = whole.substr(0, (whole.size() - 2) * i / cuts);
    SCOPED_TRACE(cut.size());
    Numbers some;
    const std::string refused = refusal([&] {
      (void)importer_of(cut, "f");
      some = read(cut);
    });
    if (!refused.empty()) continue;
    ++with_numbers;
    const bool hidden = a_line_end_may_hide_it && cut.back() == '\n';
    EXPECT_TRUE(some.is_truncated || hidden);
    EXPECT_LE(some.values.size(), all.values.size());
    some.values.resize(std::min(some.values.size(), all.values.size()));
    EXPECT_TRUE(std::equal(some.values.begin(), some.values.end(), all.values.begin()));
  }
  return with_numbers;
}

TEST(CutSamples, NcclTests) {
  EXPECT_GT(read_cut(sample("nccl_all_reduce.txt"), collectives, true), kCuts / 4);
  EXPECT_GT(read_cut(sample("nccl_all_gather_2019.txt"), collectives, true), 10U);
  EXPECT_GT(read_cut(sample("nccl_reduce_scatter.json"), collectives, false), 10U);
  // The ranks of these are told by their larger sizes, the collective of the third by its last line.
  EXPECT_GT(read_cut(sample("nccl_all_reduce_b200.txt"), collectives, true), 20U);
  EXPECT_GT(read_cut("$ all_gather_perf\n" + sample("nccl_all_gather_perf_h100.txt"), collectives, true), kCuts / 3);
  EXPECT_EQ(read_cut(sample("nccl_all_reduce_nebius.txt"), collectives, true), 0U);
}

TEST(CutSamples, Kineto) {
  EXPECT_GT(read_cut(sample("kineto.pt.trace.json"), kernels, false), kCuts / 2);
  EXPECT_GT(read_cut(unpacked(sample("kineto_cpu.pt.trace.json.gz"), "f"), events, false, 16), 8U);
}

TEST(CutSamples, TrainingLogs) {
  // An iteration that is printed twice counts with its last print: the sample without the second.
  std::string megatron = sample("megatron.log");
  megatron.resize(megatron.rfind('\n', megatron.size() - 2) + 1);
  EXPECT_GT(read_cut(megatron, iterations, true), kCuts / 3);
  EXPECT_GT(read_cut(sample("megatron_2021.log"), iterations, true), kCuts / 3);
  EXPECT_GT(read_cut(sample("megatron_cpu.log"), iterations, true), 5U);
  EXPECT_GT(read_cut(sample("megatron_cpu_timers.log"), iterations, true), kCuts / 2);
  EXPECT_GT(read_cut(sample("deepspeed.log"), iterations, true), kCuts / 3);
  EXPECT_GT(read_cut(sample("deepspeed_cpu.log"), iterations, true), 5U);
  EXPECT_GT(read_cut(sample("deepspeed_pipeline.log"), iterations, true), kCuts / 3);
}

// A matrix is whole or it is none.
TEST(CutSamples, Topologies) {
  for (const char* name : {"topo_h100.txt", "topo_pcie.txt", "topo_v100.txt"}) {
    const std::string whole = sample(name);
    const std::size_t matrix = whole.find("\n\nLegend");
    const GpuTopology all = read_topology(whole, "f");
    for (std::size_t i = 1; i < kCuts; ++i) {
      const std::string cut = whole.substr(0, whole.size() * i / kCuts);
      SCOPED_TRACE(std::string(name) + " " + std::to_string(cut.size()));
      GpuTopology some;
      const std::string refused = refusal([&] { some = read_topology(cut, "f"); });
      if (cut.size() > matrix) {
        EXPECT_EQ(refused, "");
      }
      if (refused.empty()) {
        EXPECT_EQ(some.cells, all.cells);
      }
    }
  }
}

// A page that is missing may hold nothing that is asked for; else it is refused.
TEST(CutSamples, Nsight) {
  const std::filesystem::path folder = testing::TempDir();
  const std::string whole = sample("nsight.sqlite");
  const std::size_t kernels_in_all = read_nsight(sample_path("nsight.sqlite")).kernels.size();
  for (std::size_t i = 1; i < 24; ++i) {
    const std::filesystem::path cut = folder / "cut_at_many.sqlite";
    std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() * i / 24);
    try {
      EXPECT_EQ(read_nsight(cut).kernels.size(), kernels_in_all) << i;
    } catch (const base::Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("cut_at_many.sqlite")) << i;
    }
    std::filesystem::remove(cut);
  }
}

// It lists no kernel; whole it is refused for that, cut for one of the two.
TEST(CutSamples, NsightWithoutAGpu) {
  const std::filesystem::path cut = std::filesystem::path(testing::TempDir()) / "cut_cpu.sqlite";
  const std::string whole = sample("nsight_cpu.sqlite");
  for (std::size_t i = 0; i < 36; ++i) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, whole.size() * i / 36 + 100);
    try {
      read_nsight(cut);
      ADD_FAILURE() << i;
    } catch (const base::Failure& failure) {
      EXPECT_THAT(failure.what(), AnyOf(HasSubstr("cut_cpu.sqlite: has no table CUPTI_ACTIVITY_KIND_KERNEL"),
                                        HasSubstr("is cut or damaged")));
    }
  }
  std::filesystem::remove(cut);
}

TEST(CutSamples, Gzip) {
  const std::string whole = sample("kineto_cpu.pt.trace.json.gz");
  ASSERT_TRUE(is_gzip(whole));
  EXPECT_THAT(unpacked(whole, "f"), HasSubstr("\"traceEvents\""));
  for (std::size_t i = 1; i < kCuts; ++i) {
    const std::string cut = whole.substr(0, 2 + (whole.size() - 3) * i / kCuts);
    EXPECT_THAT(refusal([&] { unpacked(cut, "f"); }), StartsWith("f: is compressed and ends early, after ")) << i;
  }
}

// Its checksum stands at the end of every member.
TEST(Gzip, ChangedBytesAreNoticed) {
  const std::string whole = sample("kineto_cpu.pt.trace.json.gz");
  for (std::size_t at = whole.size() / 4; at < whole.size(); at += 211) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_THAT(refusal([&] { unpacked(changed, "f"); }), StartsWith("f: is compressed and ")) << at;
  }
}

// Made by `printf A | gzip -n` and `printf B | gzip -n`.
TEST(Gzip, MembersFollowEachOther) {
  const std::string_view a("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x73\x04\x00\x8b\x9e\xd9\xd3\x01\x00\x00\x00", 21),
      b("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x73\x02\x00\x31\xcf\xd0\x4a\x01\x00\x00\x00", 21);
  EXPECT_EQ(unpacked(a, "f"), "A");
  const std::string both = std::string(a) + std::string(b);
  EXPECT_EQ(unpacked(both, "f"), "AB");
  EXPECT_EQ(unpacked(both + std::string(512, '\0'), "f"), "AB");
  EXPECT_THAT(refusal([&] { unpacked(both + "more", "f"); }), HasSubstr("something else follows its end"));
  EXPECT_FALSE(is_gzip("\x1f"));
}

// What PyTorch recorded of a small GPT's training on cores (tests/data/README.md).
TEST(Kineto, ATraceOfCoresSaysWhatItLacks) {
  const ChromeTrace trace = read_chrome_trace(unpacked(sample("kineto_cpu.pt.trace.json.gz"), "f"), "f");
  EXPECT_FALSE(trace.is_truncated);
  EXPECT_GT(trace.events.size(), 500U);
  EXPECT_THAT(refusal([&] { read_kineto(trace); }),
              testing::MatchesRegex("f#/traceEvents: holds no kernel of a GPU, only [0-9]+ operators on the host: .*"));
}

}  // namespace
}  // namespace trivium::calibration::imports
