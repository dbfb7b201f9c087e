// Buffers as CUPTI fills them, made by hand.
#include "runtime/cuda/cupti_records.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace trivium::runtime::cuda {
namespace {

/// Records one after another, as the library lays them out.
struct Buffer {
  alignas(8) std::uint8_t bytes[4096] = {};
  std::size_t valid = 0;
  std::vector<std::size_t> starts;

  template <class Record>
  void add(const Record& record) {
    starts.push_back(valid);
    std::memcpy(bytes + valid, &record, sizeof record);
    valid += sizeof record;
  }
};

Buffer* walked = nullptr;

/// In the place of cuptiActivityGetNextRecord: steps through `walked`.
CUptiResult next_record(std::uint8_t* buffer, std::size_t, CUpti_Activity** record) {
  std::size_t next = 0;
  if (*record != nullptr) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer);
    while (next < walked->starts.size() && walked->starts[next] <= at) ++next;
  }
  if (next == walked->starts.size()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + walked->starts[next]);
  return CUPTI_SUCCESS;
}

template <class Record>
Record work(CUpti_ActivityKind kind, std::uint32_t call, std::uint64_t start, std::uint64_t end) {
  Record record{};
  record.kind = kind;
  record.correlationId = call;
  record.start = start, record.end = end;
  return record;
}

CUpti_ActivityExternalCorrelation tag(std::uint32_t call, std::uint64_t number) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  record.correlationId = call, record.externalId = number;
  return record;
}

// The newest layouts, of which the reader knows only the beginning; a call's own record, which has the number of its
// kernel, is passed over.
TEST(CuptiRecords, AreReadOfEveryKindThatIsWork) {
  Buffer buffer;
  buffer.add(tag(1, 40));
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME, call.correlationId = 1, call.start = 1, call.end = 9000;
  buffer.add(call);
  buffer.add(work<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1, 100, 130));
  buffer.add(tag(2, 41));
  buffer.add(work<CUpti_ActivityMemcpy4>(CUPTI_ACTIVITY_KIND_MEMCPY, 2, 200, 260));
  buffer.add(tag(3, 42));
  buffer.add(work<CUpti_ActivityMemset3>(CUPTI_ACTIVITY_KIND_MEMSET, 3, 300, 301));
  walked = &buffer;
  ActivityLog log;
  read_records(buffer.bytes, buffer.valid, next_record, log);
  const std::uint64_t wanted[3][2] = {{100, 130}, {200, 260}, {300, 301}};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto span = log.span_of(40 + i);
    ASSERT_TRUE(span) << i;
    EXPECT_EQ(span->start_ns, wanted[i][0]);
    EXPECT_EQ(span->end_ns, wanted[i][1]);
  }
}

#if CUPTI_API_VERSION >= 130000  // whose layouts these are
// The library's own step from record to record needs no driver.
TEST(CuptiRecords, AreReadWhereTheLibraryWalksThem) {
  void* const library = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << ::dlerror();
  const auto next = reinterpret_cast<NextRecord>(::dlsym(library, "cuptiActivityGetNextRecord"));
  ASSERT_NE(next, nullptr);
  Buffer buffer;
  buffer.add(tag(1, 40));
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_DRIVER, call.correlationId = 1;
  buffer.add(call);
  buffer.add(work<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1, 100, 130));
  buffer.add(work<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 1, 140, 150));
  buffer.add(work<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 1, 151, 170));
  ActivityLog log;
  read_records(buffer.bytes, buffer.valid, next, log);
  const auto span = log.span_of(40);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->start_ns, 100U);
  EXPECT_EQ(span->end_ns, 170U);
}
#else
TEST(CuptiRecords, AreReadWhereTheLibraryWalksThem) {
  GTEST_SKIP() << "the buffers are laid out as in CUPTI 13.0; this is API version " << CUPTI_API_VERSION;
}
#endif

}  // namespace
}  // namespace trivium::runtime::cuda
