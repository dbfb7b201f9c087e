// Records of the device's work, as CUPTI would deliver them, joined to the stamps between which it was issued.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/cuda/activity_log.h"
#include "runtime/cuda/kernel_clock.h"

namespace trivium::runtime::cuda {
namespace {

TEST(ActivityLog, JoinsWorkToTheTagOfItsCallInWhateverOrderTheyCome) {
  ActivityLog log;
  log.add_work(7, {100, 140});  // before its tag
  log.add_tag(8, 1);
  log.add_tag(7, 1);
  EXPECT_EQ(log.span_of(1)->start_ns, 100U);
  log.add_work(8, {90, 95});  // asked before it came
  log.add_work(9, {10, 20});  // of a call without a tag
  ASSERT_TRUE(log.span_of(1));
  EXPECT_EQ(log.span_of(1)->start_ns, 90U);
  EXPECT_EQ(log.span_of(1)->end_ns, 140U);
  EXPECT_FALSE(log.span_of(2));
  log.forget();
  EXPECT_FALSE(log.span_of(1));
}

TEST(ActivityLog, PassesOverWorkThatWasFlushedBeforeItEnded) {
  ActivityLog log;
  log.add_tag(3, 1);
  log.add_work(3, {0, 0});
  log.add_work(3, {50, 0});
  EXPECT_FALSE(log.span_of(1));
}

/// In CUPTI's place: every launch is a call of its own that keeps the device busy for a given time. Records are held
/// back until a flush, newest first.
class FakeSource {
 public:
  void tag(std::uint64_t number) { tag_ = number; }
  void untag() { tag_ = 0; }
  std::uint64_t now_ns() const { return now_; }
  ActivityLog& log() { return log_; }
  void flush() {
    ++flushes;
    std::reverse(held_.begin(), held_.end());
    for (const Record& each : held_) {
      log_.add_work(each.call, each.span);
      if (each.tag != 0) log_.add_tag(each.call, each.tag);
    }
    held_.clear();
  }
  void launch(std::uint64_t ns) {
    held_.push_back({++calls_, tag_, {now_, now_ + ns}});
    now_ += ns;
  }
  void idle(std::uint64_t ns) { now_ += ns; }
  int flushes = 0;

 private:
  struct Record {
    std::uint32_t call;
    std::uint64_t tag;
    WorkSpan span;
  };
  ActivityLog log_;
  std::vector<Record> held_;
  std::uint64_t tag_ = 0, now_ = 1000;
  std::uint32_t calls_ = 0;
};

// The rank starts 5 ns after the shared start, at 1000 of the records' clock: 0 of the step is 995. Stamps 0 and 1
// have a kernel of 10 between them that begins 30 later than the stamp, at 1030: 35 to 45. Then 4 ns of nobody's.
// Stamps 2 and 3: two kernels of 7 from 1044 on, with 2 between them: 49 to 65.
TEST(KernelClock, TellsWhenTheKernelsRanAndNotWhenTheyWereIssued) {
  FakeSource source;
  KernelClock clock(source);
  clock.start(5);
  clock.stamped(0);
  source.idle(30);
  source.launch(10);
  clock.stamped(1);
  source.idle(4);
  clock.stamped(2);
  source.launch(7);
  source.idle(2);
  source.launch(7);
  clock.stamped(3);
  ASSERT_TRUE(clock.between(0, 1));
  EXPECT_EQ(clock.between(0, 1)->start_ns, 35);
  EXPECT_EQ(clock.between(0, 1)->end_ns, 45);
  ASSERT_TRUE(clock.between(2, 3));
  EXPECT_EQ(clock.between(2, 3)->start_ns, 49);
  EXPECT_EQ(clock.between(2, 3)->end_ns, 65);
  ASSERT_TRUE(clock.between(1, 2)) << "nothing was issued, after a kernel";
  EXPECT_EQ(clock.between(1, 2)->start_ns, 45);
  EXPECT_EQ(clock.between(1, 2)->end_ns, 45);
  EXPECT_FALSE(clock.between(0, 3)) << "no neighbours: what lies between is of several ops";
  EXPECT_EQ(source.flushes, 1);
}

// A collective's kernel is launched by NCCL's thread, which has no tag; this thread's copy issued along with it is not
// all of it. What follows the next stamp is reported again.
TEST(KernelClock, LeavesToEventsWhatOthersIssueAPartOf) {
  FakeSource source;
  KernelClock clock(source);
  clock.start(0);
  clock.stamped(0);
  clock.disown();
  source.launch(2);
  clock.stamped(1);
  clock.stamped(2);
  source.launch(7);
  clock.stamped(3);
  EXPECT_FALSE(clock.between(0, 1));
  ASSERT_TRUE(clock.between(2, 3));
  EXPECT_EQ(clock.between(2, 3)->start_ns, 2);
  EXPECT_EQ(clock.between(2, 3)->end_ns, 9);
}

// Stamps are numbered from 0 in every step: a record of the step before that comes late is not taken for this step's.
TEST(KernelClock, KeepsStepsApart) {
  FakeSource source;
  KernelClock clock(source);
  clock.start(0);
  clock.stamped(0);
  source.launch(10);
  clock.stamped(1);
  clock.start(0);
  clock.stamped(0);
  clock.stamped(1);
  source.launch(3);
  clock.stamped(2);
  EXPECT_FALSE(clock.between(0, 1));
  ASSERT_TRUE(clock.between(1, 2));
  EXPECT_EQ(clock.between(1, 2)->end_ns, 3);
}

}  // namespace
}  // namespace trivium::runtime::cuda
