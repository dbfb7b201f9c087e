// Pickles, dumps of PyTorch's Flight Recorder and snapshots of its allocator.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "calibration/foreign/flight_recorder.h"
#include "calibration/foreign/memory_snapshot.h"
#include "calibration/foreign/rank_in_name.h"
#include "calibration/measurements/pickle.h"
#include "tests/calibration/foreign/made_pickle.h"
#include "tests/calibration/samples.h"

namespace trivium::calibration::foreign {
namespace {

using imports::read_pickle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Pickles, HoldNumbersTextsListsAndDictionaries) {
  // {'a': [1, -2, 2.5, None, True], 'b': ('x', 300)} by protocol 2
  const std::string bytes = std::string("\x80\x02}(X\x01\x00\x00\x00", 9) + "a](" + "K\x01J\xfe\xff\xff\xff" +
                            std::string("G\x40\x04\x00\x00\x00\x00\x00\x00", 9) + "N\x88" + "e" +
                            std::string("X\x01\x00\x00\x00", 5) + "b" + std::string("X\x01\x00\x00\x00", 5) +
                            "xM\x2c\x01\x86u.";
  const imports::Pickle pickle = read_pickle(bytes, "f");
  const imports::PickleNode* a = pickle.root().member("a");
  ASSERT_NE(a, nullptr);
  ASSERT_EQ(a->elements().size(), 5u);
  EXPECT_EQ(a->elements()[0]->integer(), 1);
  EXPECT_EQ(a->elements()[1]->integer(), -2);
  EXPECT_EQ(std::get<double>(a->elements()[2]->value), 2.5);
  EXPECT_EQ(a->elements()[4]->flag(), true);
  EXPECT_EQ(pickle.root().member("b")->elements()[1]->integer(), 300);
}

TEST(Pickles, CallNothing) {
  // os.system('true')
  const std::string bytes =
      std::string("\x80\x02", 2) + "cposix\nsystem\nX\x04" + std::string("\0\0\0", 3) + "true\x85R.";
  try {
    read_pickle(bytes, "evil");
    FAIL();
  } catch (const base::Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("evil: not a pickle of plain data"));
  }
}

// Cut anywhere, or with any byte another, it is read or refused.
TEST(Pickles, DamagedOnesAreRefused) {
  const std::string whole = sample("flight_missing_rank_0");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_THROW(read_pickle(whole.substr(0, i), "f"), base::Failure) << i;
    for (const char other : {'\0', '(', 'a', 'u', '\x94', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = other;
      try {
        read_flight_dump(damaged, "f");
      } catch (const base::Failure&) {
        continue;
      }
    }
  }
}

std::vector<FlightDump> recorded(const std::string& which) {
  std::vector<FlightDump> dumps;
  for (const char* rank : {"0", "1"}) {
    const std::string name = "flight_" + which + "_rank_" + rank;
    EXPECT_TRUE(is_flight_dump(sample(name)));
    dumps.push_back(read_flight_dump(sample(name), name));
  }
  return dumps;
}

TEST(FlightDumps, NameTheRankThatIsMissing) {
  const std::vector<Stall> stalls = stalls_of(recorded("missing"));
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].group, "1 second");
  EXPECT_EQ(stalls[0].call.name, "gloo:all_reduce");
  EXPECT_EQ(stalls[0].call.sequence, 2);
  EXPECT_EQ(stalls[0].call.shape, "1000 Float");
  EXPECT_THAT(stalls[0].call.at, HasSubstr("record_flight.py:"));
  EXPECT_THAT(stalls[0].waiting, ElementsAre(0));
  EXPECT_THAT(stalls[0].missing, ElementsAre(1));
  EXPECT_THAT(stalls[0].what, HasSubstr("rank 0 waits in gloo:all_reduce number 2 of 1000 Float"));
  EXPECT_THAT(stalls[0].what, HasSubstr("the last that rank 1 began there is gloo:all_gather number 1"));
}

TEST(FlightDumps, SayWhereRanksDoNotAgree) {
  const std::vector<Stall> stalls = stalls_of(recorded("disagree"));
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_TRUE(stalls[0].disagree);
  EXPECT_THAT(stalls[0].what, HasSubstr("rank 0 is in gloo:all_reduce number 3 of 1000 Float"));
  EXPECT_THAT(stalls[0].what, HasSubstr("rank 1 is in gloo:broadcast number 3 of 500 Float"));
}

RecordedCall call(const std::string& name, std::int64_t sequence, bool done, std::int64_t at) {
  RecordedCall made;
  made.name = name;
  made.sequence = sequence;
  made.done = done;
  made.created_ns = at;
  return made;
}

// Rank 2 stands outside every collective; rank 1 waits for it, and rank 0 for rank 1.
TEST(FlightDumps, PutCausesBeforeConsequences) {
  std::vector<FlightDump> dumps(3);
  for (int rank = 0; rank < 3; ++rank) dumps[static_cast<std::size_t>(rank)].rank = rank;
  dumps[0].calls[{"tensor", {}}] = {call("all_reduce", 1, true, 10), call("all_reduce", 2, false, 20)};
  dumps[1].calls[{"tensor", {}}] = {call("all_reduce", 1, true, 10)};
  dumps[1].calls[{"data", {}}] = {call("reduce_scatter", 1, false, 30)};
  dumps[2].calls[{"data", {}}] = {};
  const std::vector<Stall> stalls = stalls_of(dumps);
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[0].group, "data");
  EXPECT_THAT(stalls[0].missing, ElementsAre(2));
  EXPECT_FALSE(stalls[0].follows);
  EXPECT_EQ(stalls[1].group, "tensor");
  EXPECT_TRUE(stalls[1].follows);
  EXPECT_THAT(to_text(dumps, stalls), HasSubstr("in consequence, rank 0 waits"));
}

// As `split_group` names them: both halves are "2 tensor".
TEST(FlightDumps, KeepGroupsOfOneNameApart) {
  std::vector<FlightDump> dumps;
  for (int rank = 0; rank < 4; ++rank) {
    const bool late = rank == 3;
    const std::string ranks = rank < 2 ? "[0, 1]" : "[2, 3]";
    const std::string entry = fmt::format(
        R"({{"process_group": ["2", "tensor"], "collective_seq_id": {}, "profiling_name": "nccl:all_reduce",
            "input_sizes": [[{}]], "input_dtypes": ["Float"], "state": "{}", "time_created_ns": 5}})",
        rank < 2 ? 7 : 1, rank < 2 ? 10 : 20, rank < 2 ? "completed" : "started");
    dumps.push_back(read_flight_dump(
        fmt::format(R"({{"pg_config": {{"2": {{"ranks": "{}"}}}}, "entries": [{}]}})", ranks, late ? "" : entry),
        fmt::format("dump_rank_{}", rank)));
  }
  const std::vector<Stall> stalls = stalls_of(dumps);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].group, "2 tensor");
  EXPECT_THAT(stalls[0].waiting, ElementsAre(2));
  EXPECT_THAT(stalls[0].missing, ElementsAre(3));
}

TEST(FlightDumps, MayBeNestedDeeply) {
  constexpr std::size_t kDeep = 1'000'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  const FlightDump dump = read_flight_dump(R"({"pg_config": {}, "entries": [], "other": )" + deep + "}", "f");
  EXPECT_TRUE(dump.calls.empty());
}

TEST(FlightDumps, SayNothingOfRunsThatEnded) {
  std::vector<FlightDump> dumps = recorded("missing");
  for (FlightDump& dump : dumps) {
    for (auto& [group, calls] : dump.calls) {
      for (RecordedCall& call : calls) call.done = true;
    }
  }
  EXPECT_TRUE(stalls_of(dumps).empty());
  EXPECT_THAT(to_text(dumps, {}), HasSubstr("nobody waits"));
}

TEST(Ranks, AreTheLastNumberOfAName) {
  EXPECT_EQ(rank_in_name("/some/12/nccl_trace_rank_7"), 7);
  EXPECT_EQ(rank_in_name("snapshot.13.pickle"), 13);
  EXPECT_EQ(rank_in_name("snapshot"), std::nullopt);
}

constexpr std::int64_t kMiB = 1 << 20;

TEST(MemorySnapshots, AreOfTheMomentWhenMostWasAllocated) {
  MadeSnapshot made;
  made.before(100 * kMiB, {"__init__", "/job/model.py"});
  made.alloc(200 * kMiB, {"step", "/usr/torch/optim/adamw.py"});
  const auto activations = made.alloc(150 * kMiB, {"forward", "/job/model.py"});
  made.alloc(50 * kMiB, {"backward", "/usr/torch/_tensor.py"});  // here: 500 MiB
  made.free(activations);
  made.alloc(10 * kMiB, {"main", "/job/train.py"});
  const std::string bytes = made.pickled();
  EXPECT_TRUE(is_memory_snapshot(bytes));
  const MemorySnapshot snapshot = read_memory_snapshot(bytes, "snapshot_3.pickle");
  EXPECT_EQ(snapshot.rank, 3);
  EXPECT_EQ(snapshot.peak_bytes, 500 * kMiB);
  EXPECT_EQ(snapshot.at_peak.at(Owner::kParameters), 100 * kMiB);
  EXPECT_EQ(snapshot.at_peak.at(Owner::kOptimizer), 200 * kMiB);
  EXPECT_EQ(snapshot.at_peak.at(Owner::kForward), 150 * kMiB);
  EXPECT_EQ(snapshot.at_peak.at(Owner::kBackward), 50 * kMiB);
  EXPECT_FALSE(snapshot.at_peak.contains(Owner::kOther));
  EXPECT_EQ(snapshot.sites.front().bytes, 200 * kMiB);
  simulator::StageMemory plan;
  plan.parameters = 90 * kMiB;
  plan.activations = 160 * kMiB;
  plan.optimizer = 200 * kMiB;
  plan.gradients = 50 * kMiB;
  plan.reserved = 1000 * kMiB;
  const std::string text = to_text(snapshot, plan);
  EXPECT_THAT(text, HasSubstr("500 MiB allocated at most, 500 MiB by the plan (+0.0 %)"));
  EXPECT_THAT(text, HasSubstr("model.py:1 forward"));
  EXPECT_EQ(to_json(snapshot, plan).at("predicted_bytes"), 500 * kMiB);
}

TEST(MemorySnapshots, WithoutHistoryAreOfWhatLiesThere) {
  MadeSnapshot made;
  made.before(7 * kMiB, {"forward", "/job/model.py"});
  const MemorySnapshot snapshot = read_memory_snapshot(made.pickled(), "f");
  EXPECT_EQ(snapshot.events, 0);
  EXPECT_EQ(snapshot.at_peak.at(Owner::kForward), 7 * kMiB);
  EXPECT_THAT(to_text(snapshot, std::nullopt), HasSubstr("no history was recorded"));
}

}  // namespace
}  // namespace trivium::calibration::foreign
