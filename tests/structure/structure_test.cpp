#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/structure/made_up_tree.h"
#include "tests/structure/source_tree.h"

namespace trivium::structure {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kLongestFile = 500;
constexpr std::size_t kWidestProse = 100;

TEST_F(MadeUpTree, MayIncludeDownwardsAndWithinAFolder) {
  write("base/error.h", "#include <string>\n");
  write("program/plan/plan.h",
        "#include \"base/error.h\"\n#include \"models/model.h\"\n#include \"program/plan/dtype.h\"\n");
  write("simulator/schedule/clock.cpp", "#include \"clock.h\"\n#include \"program/plan/plan.h\"\n");
  write("cli/main.cpp", "#include \"runtime/executor.h\"\n#include \"planner/search/search.h\"\n");
  write("tests/program/plan/plan_test.cpp", "#include \"cli/main.h\"\n#include \"fixtures.h\"\n");
  EXPECT_THAT(forbidden_includes(root()), IsEmpty());
}

TEST_F(MadeUpTree, NamesTheFileLineAndReasonOfAnArrowThatRunsUpwards) {
  write("base/error.h", "#pragma once\n");
  write("models/model.h", "#pragma once\n#include \"base/error.h\"\n  #  include \"program/plan/plan.h\"\n");
  EXPECT_THAT(
      forbidden_includes(root()),
      ElementsAre("models/model.h:3: includes program/plan/plan.h: models/ stands below program/ or next to it"));
}

TEST_F(MadeUpTree, RefusesFoldersThatStandBesideEachOther) {
  write("simulator/a.h", "#include \"runtime/executor.h\"\n");
  write("runtime/b.h", "#include \"simulator/engine.h\"\n");
  write("gui/c.h", "#include \"cli/main.h\"\n");
  write("cli/d.h", "#include \"gui/window.h\"\n");
  write("planner/e.h", "#include \"calibration/fit/fit.h\"\n");
  EXPECT_EQ(forbidden_includes(root()).size(), 5U);
}

TEST_F(MadeUpTree, SeesThroughAngleBracketsRelativePathsAndTests) {
  write("program/plan/plan.h", "\n");
  write("models/angle.h", "#include <program/plan/plan.h>\n");
  write("models/relative.h", "#include \"../program/plan.h\"\n");
  write("models/tested.h", "#include \"tests/models/fixtures.h\"\n");
  EXPECT_THAT(
      forbidden_includes(root()),
      ElementsAre("models/angle.h:1: includes program/plan/plan.h: models/ stands below program/ or next to it",
                  "models/relative.h:1: includes ../program/plan.h: models/ stands below program/ or next to it",
                  "models/tested.h:1: includes tests/models/fixtures.h: models/ stands below tests/ or next to it"));
}

TEST_F(MadeUpTree, KeepsTheWorldOutsideInItsOneFolder) {
  write("runtime/cuda/device.cu", "#include <cuda_runtime.h>\n#include <cublas_v2.h>\n#include <nccl.h>\n");
  write("runtime/mpi/communicator.cpp", "#include <mpi.h>\n");
  write("tests/runtime/mpi_test.cpp", "#include <mpi.h>\n");
  write("gui/window.h", "#include <QWidget>\n#include <QtCore/QString>\n");
  EXPECT_THAT(forbidden_includes(root()), IsEmpty());

  write("simulator/wave.h", "#include <queue>\n#include <cuda_runtime.h>\n#include <nccl.h>\n");
  write("program/ranks.h", "#include \"mpi.h\"\n");
  write("cli/table.h", "#include <QString>\n");
  write("tests/program/ranks_test.cpp", "#include <mpi.h>\n");
  EXPECT_THAT(forbidden_includes(root()),
              ElementsAre("cli/table.h:1: includes QString: Qt is known in gui/ alone",
                          "program/ranks.h:1: includes mpi.h: MPI is known in runtime/ alone",
                          "simulator/wave.h:2: includes cuda_runtime.h: CUDA is known in runtime/ alone",
                          "simulator/wave.h:3: includes nccl.h: NCCL is known in runtime/ alone",
                          "tests/program/ranks_test.cpp:1: includes mpi.h: MPI is known in runtime/ alone"));
}

TEST_F(MadeUpTree, GivesNoFolderAWayAroundTheOrder) {
  write("utils/CMakeLists.txt", "\n");
  write("build/any/CMakeCache.txt", "\n");
  EXPECT_THAT(forbidden_includes(root()), ElementsAre("utils/: has no place in the order of folders"));
}

TEST_F(MadeUpTree, OrdersTheModulesOfAFolder) {
  write("program/plan/plan.h", "#include \"program/ir/op.h\"\n");
  write("program/ir/op.h", "\n");
  write("program/lower/lower.h", "#include \"program/ir/op.h\"\n#include \"program/plan/plan.h\"\n");
  write("planner/space/space.h", "#include \"../search/search.h\"\n");
  write("planner/attic/old.h", "\n");
  write("cli/main.cpp", "#include \"cli/commands/plan.h\"\n");
  EXPECT_THAT(forbidden_includes(root()),
              ElementsAre("planner/attic/: has no place in the order of modules",
                          "planner/space/space.h:1: includes ../search/search.h: space/ stands below search/",
                          "program/plan/plan.h:1: includes program/ir/op.h: plan/ stands below ir/"));
}

TEST_F(MadeUpTree, LetsNoModuleIncludeAFileBesideThem) {
  write("simulator/predict/simulate.h", "#include \"simulator/cost/cost.h\"\n");
  write("simulator/cost/cost.h", "#include \"simulator/simulate.h\"\n");
  EXPECT_THAT(forbidden_includes(root()),
              ElementsAre("simulator/cost/cost.h:1: includes simulator/simulate.h: cost/ stands below simulate.h"));
}

TEST_F(MadeUpTree, HasNoCircleBetweenTheModulesOfCalibration) {
  write("calibration/validate/groups.h", "#include \"calibration/fit/fit.h\"\n");
  write("calibration/fit/fit.h", "#include \"calibration/validate/groups.h\"\n");
  EXPECT_THAT(
      forbidden_includes(root()),
      ElementsAre("calibration/validate/groups.h:1: includes calibration/fit/fit.h: validate/ stands below fit/"));
}

TEST_F(MadeUpTree, CountsLinesUpToTheLimit) {
  write("base/short.h", "1\n2\n3\n");
  write("base/long.h", "1\n2\n3\n4");  // a last line without its newline counts
  write("base/long.txt", "1\n2\n3\n4\n");
  EXPECT_THAT(files_longer_than(root(), 3), ElementsAre("base/long.h: 4 lines"));
}

TEST_F(MadeUpTree, AsksSchedulesForTheirTraits) {
  write("program/schedules/gpipe.h", "    .schedule = Schedule::kGpipe,\n");
  write("tests/program/plan_test.cpp", "plan.schedule = Schedule::kGpipe;\n");
  write("planner/advice/baselines.cpp", "plan.schedule = program::Schedule::kSequential;\n");
  write("runtime/decay.cpp", "RateSchedule::kCosine;\nSchedule schedule = program::kUsualSchedule;\n");
  write("simulator/recurrence.cpp", "\n  if (plan.schedule == program::Schedule::k1f1b) return;\n");
  EXPECT_THAT(schedules_named(root()), ElementsAre("simulator/recurrence.cpp:2: names a schedule; ask its traits"));
}

TEST_F(MadeUpTree, WrapsProseButNeitherTablesNorCode) {
  const std::string wide(12, 'x');
  write("README.md", "short\n" + wide + "\n```\n" + wide + "\n```\n  | " + wide + " |\n");
  write("docs/umlauts.md", "\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\n");  // six characters in twelve bytes
  EXPECT_THAT(prose_wider_than(root(), 10), ElementsAre("README.md:2: 12 columns"));
}

TEST(SourceTree, IsReadAtAll) { EXPECT_THAT(source_files(TRIVIUM_SOURCE_DIR), Contains(fs::path("base/error.h"))); }

TEST(SourceTree, HasNoIncludeThatRunsUpwards) { EXPECT_THAT(forbidden_includes(TRIVIUM_SOURCE_DIR), IsEmpty()); }

TEST(SourceTree, NamesNoScheduleWhereItsTraitsWouldDo) { EXPECT_THAT(schedules_named(TRIVIUM_SOURCE_DIR), IsEmpty()); }

TEST(SourceTree, HasNoProseTooWideToRead) {
  EXPECT_THAT(prose_wider_than(TRIVIUM_SOURCE_DIR, kWidestProse), IsEmpty());
}

TEST(SourceTree, HasNoFileTooLongToRead) {
  EXPECT_THAT(files_longer_than(TRIVIUM_SOURCE_DIR, kLongestFile), IsEmpty());
}

}  // namespace
}  // namespace trivium::structure
