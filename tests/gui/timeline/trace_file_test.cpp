#include "gui/timeline/spans/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "gui/timeline/spans/critical_path.h"
#include "gui/timeline/spans/op_totals.h"
#include "gui/timeline/spans/selection.h"
#include "tests/input_error.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  return input_error([&] { parse_trace(text, "t.json"); }, "no error");
}

TEST(TraceFile, ReadsCompleteEventsToThePicosecond) {
  const Trace trace = parse_trace(R"({"displayTimeUnit":"ns","traceEvents":[
    {"ph":"M","name":"process_name","pid":3,"args":{"name":"rank 3"}},
    {"ph":"M","name":"thread_name","pid":3,"tid":1,"args":{"name":"tensor"}},
    {"ph":"M","name":"thread_name","pid":3,"tid":0,"args":{"name":"compute"}},
    {"ph":"X","name":"forward mb0 layer 2 matmul","cat":"matmul","pid":3,"tid":0,"ts":1.000001,"dur":2.5,"args":{"wait_us":0.000000}},
    {"ph":"X","name":"forward mb0 layer 2 all reduce","cat":"all_reduce","pid":3,"tid":1,"ts":4,"dur":3,"args":{"wait_us":1}}
    ]})",
                                  "t.json");
  const SpanStore& store = *trace.spans;
  ASSERT_EQ(store.size(), 3U);
  EXPECT_EQ(store.start_of(0), 1'000'001);
  EXPECT_EQ(store.end_of(0), 3'500'001);
  EXPECT_EQ(store.name_of(0), "forward mb0 layer 2 matmul");
  EXPECT_EQ(store.categories()[static_cast<std::size_t>(store.category_of(0))].name, "forward");
  EXPECT_TRUE(store.is_waiting(1));
  EXPECT_EQ(store.end_of(1), 5'000'000);
  EXPECT_EQ(store.categories()[static_cast<std::size_t>(store.category_of(2))].name, "tensor parallel");
  ASSERT_EQ(store.rows().size(), 4U);
  EXPECT_EQ(store.rows()[0].name, "t.json");
  EXPECT_EQ(store.rows()[1].name, "rank 3");
  EXPECT_EQ(store.rows()[2].name, "compute");
  EXPECT_TRUE(store.rows()[2].primary);
  EXPECT_FALSE(store.rows()[3].primary);  // concurrent with compute
}

TEST(TraceFile, ReadsWhatOtherProgramsWrite) {
  const Trace trace = parse_trace(R"([
    {"ph":"B","name":"outer","cat":"cpu","pid":"trainer","tid":"main","ts":1e3},
    {"ph":"B","name":"inner \"quoted\" \u00e9","pid":"trainer","tid":"main","ts":1100},
    {"ph":"E","pid":"trainer","tid":"main","ts":1200},
    {"ph":"E","pid":"trainer","tid":"main","ts":1300},
    {"ph":"E","pid":"trainer","tid":"main","ts":1400},
    {"ph":"B","name":"never ends","pid":"trainer","tid":"main","ts":1500},
    {"ph":"C","name":"memory","pid":"trainer","ts":1,"args":{"bytes":7}},
    {"name":"no phase"}
    ])",
                                  "t.json");
  const SpanStore& store = *trace.spans;
  ASSERT_EQ(store.size(), 3U);
  EXPECT_EQ(store.rows().back().tracks, 2U);  // the inner span lies inside the outer one
  EXPECT_EQ(store.end_of(0), 1'300'000'000);
  EXPECT_EQ(store.name_of(2), "inner \"quoted\" \u00e9");
  EXPECT_EQ(store.categories()[static_cast<std::size_t>(store.category_of(0))].name, "cpu");
  EXPECT_EQ(trace.ignored, 2U);
  EXPECT_EQ(trace.unfinished, 2U);
}

std::string category(const SpanStore& store, std::uint32_t span) {
  return store.categories()[static_cast<std::size_t>(store.category_of(span))].name;
}

// As torch.profiler writes them, kernels of one stream in the order of time.
TEST(TraceFile, TellsForeignKernelsByTheirNames) {
  const std::vector<std::pair<std::string, std::string>> kernels{
      {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", "matrix product"},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", "attention"},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "normalization"},
      {"void at::native::vectorized_elementwise_kernel<4>", "elementwise"},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "collective"},
      {"void multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimizer"}};
  std::string text = R"([{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH","pid":0,"tid":7,"ts":0,"dur":1})";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += R"(,{"ph":"X","cat":"kernel","pid":0,"tid":7,"dur":1,"ts":)" + std::to_string(i + 1) + R"(,"name":")" +
            kernels[i].first + R"("})";
  }
  text += R"(,{"ph":"X","cat":"cpu_op","pid":9,"tid":1,"ts":0,"dur":1,"name":"aten::mm"}])";
  const Trace trace = parse_trace(text, "t.json");
  EXPECT_EQ(category(*trace.spans, 0), "copy");
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(category(*trace.spans, static_cast<std::uint32_t>(i + 1)), kernels[i].second) << kernels[i].first;
  }
  EXPECT_EQ(category(*trace.spans, 7), "host operator");  // it only launches the product
}

TEST(TraceFile, OperatorsOfCoresAreTheWorkWhereThereIsNoDevice) {
  const Trace trace = parse_trace(R"([{"ph":"X","cat":"cpu_op","pid":9,"tid":1,"ts":0,"dur":1,"name":"aten::mm"},
    {"ph":"X","pid":9,"tid":1,"ts":1,"dur":1,"name":"all_reduce"},
    {"ph":"X","pid":9,"tid":1,"ts":2,"dur":1,"name":"norm"},
    {"ph":"X","pid":9,"tid":1,"ts":3,"dur":1,"name":"norm reduce"}])",
                                  "t.json");
  EXPECT_EQ(category(*trace.spans, 0), "matrix product");
  EXPECT_EQ(category(*trace.spans, 1), "collective");
  EXPECT_EQ(category(*trace.spans, 2), "normalization");
  EXPECT_EQ(category(*trace.spans, 3), "optimizer");  // the step of this program's own that joins norms
}

// A GPU of which one stream multiplies for 65 of 100 us, another one communicates; the host only launches.
constexpr const char* kAnnotatedGpu = R"([
  {"ph":"X","cat":"user_annotation","pid":9,"tid":1,"ts":0,"dur":100,"name":"ProfilerStep#3"},
  {"ph":"X","cat":"gpu_user_annotation","pid":0,"tid":7,"ts":0,"dur":100,"name":"ProfilerStep#3"},
  {"ph":"X","cat":"python_function","pid":9,"tid":1,"ts":0,"dur":99,"name":"train.py(7): step"},
  {"ph":"X","cat":"cpu_op","pid":9,"tid":1,"ts":0,"dur":98,"name":"aten::mm"},
  {"ph":"X","cat":"cuda_runtime","pid":9,"tid":1,"ts":1,"dur":90,"name":"cudaDeviceSynchronize"},
  {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7"}},
  {"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":5,"dur":65,"name":"ampere_bf16_s16816gemm_bf16_128x128_tn"},
  {"ph":"X","cat":"kernel","pid":0,"tid":20,"ts":70,"dur":20,"name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}])";

TEST(TraceFile, AnnotationsAreRowsOfTheirOwnAndNeverWork) {
  const Trace trace = parse_trace(kAnnotatedGpu, "t.json");
  const SpanStore& store = *trace.spans;
  const Breakdown whole = break_down(store, store.begin(), store.end());
  ASSERT_EQ(whole.tracks, 1U);  // the stream that computes
  ASSERT_EQ(whole.shares.size(), 1U);
  EXPECT_EQ(store.categories()[static_cast<std::size_t>(whole.shares[0].category)].name, "matrix product");
  EXPECT_EQ(whole.shares[0].ps, 65'000'000);
  EXPECT_EQ(whole.idle_ps, 35'000'000);
  ASSERT_EQ(whole.beside.size(), 1U);  // the collective; nothing of the host
  for (const OpTotal& op : op_totals(store, {store.begin(), store.end(), std::nullopt}, {})) {
    EXPECT_THAT(op.name, testing::AnyOf(HasSubstr("gemm"), HasSubstr("AllReduce")));
  }
  for (const std::uint32_t span : critical_path(store).spans) {
    EXPECT_THAT(store.name_of(span), testing::AnyOf(HasSubstr("gemm"), HasSubstr("AllReduce")));
  }
  bool named = false;
  for (const Row& row : store.rows()) named = named || row.name == "ranges of stream 7";
  EXPECT_TRUE(named);
}

// The row itself still says what is on it.
TEST(TraceFile, ARowOfRangesIsSummedWhereItIsSelected) {
  const Trace trace = parse_trace(kAnnotatedGpu, "t.json");
  const SpanStore& store = *trace.spans;
  for (std::size_t r = 0; r < store.rows().size(); ++r) {
    if (store.rows()[r].name != "ranges of stream 7") continue;
    const Breakdown breakdown = break_down(store, static_cast<std::int32_t>(r), store.begin(), store.end());
    ASSERT_EQ(breakdown.shares.size(), 1U);
    EXPECT_EQ(breakdown.shares[0].ps, 100'000'000);
    return;
  }
  FAIL() << "no row of ranges";
}

TEST(TraceFile, JoinsFlowEventsToTheSpansAroundThem) {
  const Trace trace = parse_trace(R"([
    {"ph":"X","name":"send","pid":0,"tid":0,"ts":0,"dur":10},
    {"ph":"X","name":"recv","pid":1,"tid":0,"ts":5,"dur":10},
    {"ph":"s","id":7,"pid":0,"tid":0,"ts":3},
    {"ph":"f","id":7,"pid":1,"tid":0,"ts":12},
    {"ph":"f","id":8,"pid":1,"tid":0,"ts":12}
    ])",
                                  "t.json");
  ASSERT_EQ(trace.spans->flows().size(), 1U);
  EXPECT_EQ(trace.spans->name_of(trace.spans->flows()[0].from), "send");
  EXPECT_EQ(trace.spans->name_of(trace.spans->flows()[0].to), "recv");
}

TEST(TraceFile, CountsFromTheFirstEventWhereTheClockCountsFrom1970) {
  const Trace trace = parse_trace(R"([{"ph":"X","name":"a","pid":0,"tid":0,"ts":1700000000000000,"dur":10},
    {"ph":"X","name":"b","pid":0,"tid":0,"ts":1700000000000020,"dur":10}])",
                                  "t.json");
  EXPECT_EQ(trace.spans->begin(), 0);
  EXPECT_EQ(trace.spans->end(), 30'000'000);
}

TEST(TraceFile, ReadsAnEmptyTrace) {
  EXPECT_EQ(parse_trace("[]", "t.json").spans->size(), 0U);
  EXPECT_EQ(parse_trace(R"({"traceEvents":[]})", "t.json").spans->size(), 0U);
}

TEST(TraceFile, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of(""), HasSubstr("t.json#: is empty"));
  EXPECT_THAT(error_of("7"), HasSubstr("is no trace"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no \"traceEvents\""));
  EXPECT_THAT(error_of(R"({"schema":"trivium.plan/1"})"), HasSubstr("no \"traceEvents\""));
  EXPECT_THAT(error_of(R"({"traceEvents":7})"), HasSubstr("t.json#"));
  EXPECT_THAT(error_of(R"([{"ph":"X"},7])"), HasSubstr("t.json#/0: has no time"));
  EXPECT_THAT(error_of(R"([{"ph":"i"},7])"), HasSubstr("t.json#/1: is no event"));
  EXPECT_THAT(error_of(R"({"traceEvents":[{"ph":"X","ts":"soon"}]})"), HasSubstr("t.json#/traceEvents/0: is not what"));
  EXPECT_THAT(error_of(R"([{"ph":"X","ts":1,"dur":-4}])"), HasSubstr("t.json#/0: lasts less than nothing"));
  EXPECT_THAT(error_of(R"([{"ph":"X","ts":1,"dur":4e15}])"), HasSubstr("t.json#/0: lies too far"));
  EXPECT_THAT(error_of("\x1f\x8b\x08\xff\xfe"), HasSubstr("UTF-8"));
}

// Wherever a trace is cut off, reading says so; it never crashes and never shows half a trace as a whole one.
TEST(TraceFile, RefusesATraceCutOffAnywhere) {
  const std::string whole =
      R"({"traceEvents":[{"ph":"X","name":"a","cat":"c","pid":0,"tid":0,"ts":1.5,"dur":2,"args":{"step":1}},
    {"ph":"X","name":"b","pid":0,"tid":0,"ts":4,"dur":2}]})";
  ASSERT_EQ(parse_trace(whole, "t.json").spans->size(), 2U);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error_of(whole.substr(0, length)), "no error") << "cut off at " << length;
  }
}

TEST(TraceFile, SurvivesAnyByteChanged) {
  const std::string whole = R"([{"ph":"X","name":"a","cat":"c","pid":0,"tid":0,"ts":1.5,"dur":2,"args":{"name":"n"}}])";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'"', '{', '}', ']', ',', '9', '\\', '\0', '\xff'}) {
      std::string broken = whole;
      broken[i] = c;
      error_of(broken);  // an error or a trace, never a crash
    }
  }
}

TEST(TraceFile, MissingFilesAndFoldersAreErrors) {
  EXPECT_THROW(read_trace("/nowhere/t.json"), base::Failure);
  EXPECT_THROW(read_trace(testing::TempDir()), base::Failure);
}

TEST(TraceFile, ReadsALargeFileAndStopsWhenAsked) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "large-trace.json";
  {
    std::ofstream file(path);
    file << "[";
    for (int i = 0; i < 200'000; ++i) {
      file << (i > 0 ? ",\n" : "") << R"({"ph":"X","name":"forward mb)" << i % 64 << R"( layer 3 matmul","pid":)"
           << i % 8 << R"(,"tid":0,"ts":)" << i << R"(,"dur":6.5})";
    }
    file << "]";
  }
  EXPECT_EQ(read_trace(path).spans->size(), 200'000U);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(read_trace(path, stop.get_token()), base::Failure);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trivium::gui
