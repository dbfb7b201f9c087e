#include "gui/timeline/spans/view_history.h"

#include <gtest/gtest.h>

namespace trivium::gui {
namespace {

SeenPart part(std::int64_t begin, std::optional<RowId> only = {}) { return {begin, begin + 10, only}; }

TEST(ViewHistory, LeadsBackAndForthBetweenJumps) {
  ViewHistory history;
  EXPECT_FALSE(history.can_go_back(part(0)));
  history.jump(part(0), part(10));
  history.jump(part(10), part(20, RowId{0, 3}));
  EXPECT_EQ(history.back(part(20, RowId{0, 3})), part(10));
  EXPECT_EQ(history.back(part(10)), part(0));
  EXPECT_FALSE(history.can_go_back(part(0)));
  EXPECT_EQ(history.forward(), part(10));
  EXPECT_EQ(history.forward(), part(20, RowId{0, 3}));
  EXPECT_FALSE(history.can_go_forward());
}

TEST(ViewHistory, NotesWhereTheWheelLed) {
  ViewHistory history;
  history.jump(part(0), part(10));
  // Wheel and pan lead from 10 to 13, then a jump to 50: the way back is 13, 10, 0.
  history.jump(part(13), part(50));
  EXPECT_EQ(history.back(part(50)), part(13));
  EXPECT_EQ(history.back(part(13)), part(10));
  EXPECT_EQ(history.back(part(10)), part(0));
}

TEST(ViewHistory, ForgetsWhatWasAheadAfterAJump) {
  ViewHistory history;
  history.jump(part(0), part(10));
  history.jump(part(10), part(20));
  history.back(part(20));
  history.jump(part(10), part(30));
  EXPECT_FALSE(history.can_go_forward());
  EXPECT_EQ(history.back(part(30)), part(10));
  history.clear();
  EXPECT_FALSE(history.can_go_back(part(0)));
}

TEST(ViewHistory, AJumpToWhereOneIsIsNone) {
  ViewHistory history;
  history.jump(part(0), part(0));
  EXPECT_FALSE(history.can_go_back(part(0)));
}

}  // namespace
}  // namespace trivium::gui
