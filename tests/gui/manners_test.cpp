// What hands expect of a timeline: rows that are meant, kept in sight, filtered; an overview; a flame view; what is
// kept with a project.
#include <QClipboard>
#include <QGuiApplication>
#include <QMouseEvent>
#include <QProcess>
#include <QScrollBar>
#include <nlohmann/json.hpp>
#include <set>

#include "gui/window/kept_layout.h"
#include "gui/window/temporary_folder.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

class Manners : public Window {
 protected:
  void show_timeline() {
    begin(staged_scenario());
    window_.show_view(MainWindow::kTimeline);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready() && !view().ops().is_busy(); }, kPatienceMs));
  }
  TimelineView& view() { return window_.timeline(); }
  TimelineCanvas& canvas() { return view().canvas(); }
  const SpanStore& store() { return *canvas().timelines().at(0).spans; }
  void drag(QPoint from, QPoint to) {
    QWidget* page = canvas().viewport();
    QTest::mousePress(page, Qt::LeftButton, {}, from);
    for (const QPoint& at : {(from + to) / 2, to}) {
      QMouseEvent move(QEvent::MouseMove, QPointF(at), page->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::LeftButton,
                       {});
      QApplication::sendEvent(page, &move);
    }
    QTest::mouseRelease(page, Qt::LeftButton, {}, to);
  }
  std::vector<std::size_t> lanes() {
    std::vector<std::size_t> found;
    for (std::size_t r = 0; r < canvas().layout_of_rows().rows().size(); ++r) {
      if (canvas().layout_of_rows().rows()[r].lane) found.push_back(r);
    }
    return found;
  }
  int y_of(std::size_t row) {
    const PlacedRow& placed = canvas().layout_of_rows().rows()[row];
    return canvas().time_area().top() + placed.y + placed.height / 2 - canvas().verticalScrollBar()->value();
  }
  bool adds_up() {
    return QTest::qWaitFor([&] { return !view().ops().is_busy() && !view().flame().is_busy(); }, kPatienceMs);
  }
};

TEST_F(Manners, ASelectionIsOfTheRowsDraggedOver) {
  show_timeline();
  const std::vector<std::size_t> rows = lanes();
  ASSERT_GT(rows.size(), 4U);
  drag({400, y_of(rows[0])}, {700, y_of(rows[2])});
  ASSERT_TRUE(canvas().range());
  ASSERT_EQ(canvas().range()->rows.size(), 3U);
  EXPECT_FALSE(canvas().range()->row);
  ASSERT_TRUE(adds_up());
  std::uint64_t spans = 0;
  for (const OpTotal& op : view().ops().ops()) spans += op.spans;
  std::uint64_t expected = 0;
  for (const RowId& id : canvas().range()->rows) {
    const Row& row = store().rows()[static_cast<std::size_t>(id.row)];
    for (std::uint32_t t = row.first_track; t < row.first_track + row.tracks; ++t) {
      expected += store().first_starting_at(t, canvas().range()->end_ps) -
                  store().first_ending_after(t, canvas().range()->begin_ps);
    }
  }
  EXPECT_EQ(spans, expected);
  // The same spans, one by one.
  ASSERT_TRUE(window_.export_selection(file("selection.csv")));
  std::ifstream csv(file("selection.csv").toStdString());
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "rank,lane,span,kind,start_s,length_s");
  std::uint64_t written = 0;
  while (std::getline(csv, line)) ++written;
  EXPECT_EQ(written, expected);
  drag({400, TimelineCanvas::kRuler / 2}, {700, TimelineCanvas::kRuler / 2});  // on the ruler all rows are meant
  ASSERT_TRUE(canvas().range());
  EXPECT_TRUE(canvas().range()->has_all_rows());
}

TEST_F(Manners, PinnedRowsStayWhileTheOthersScroll) {
  window_.resize(1300, 620);
  show_timeline();
  window_.resize(1300, 620);
  const PlacedRow pinned = canvas().layout_of_rows().rows()[lanes()[0]];
  const int before = canvas().time_area().top();
  canvas().set_pinned(pinned.id, true);
  EXPECT_EQ(canvas().time_area().top(), before + canvas().pins_height());
  EXPECT_GT(canvas().pins_height(), 10);
  canvas().verticalScrollBar()->setValue(canvas().verticalScrollBar()->maximum());
  ASSERT_GT(canvas().verticalScrollBar()->value(), 0);
  EXPECT_EQ(plain(canvas().describe({20, TimelineCanvas::kRuler + 5})), "compute");
  // A click there selects its span.
  const Row& row = store().rows()[static_cast<std::size_t>(pinned.id.row)];
  const std::uint32_t span = store().tracks()[row.first_track].first + 3;
  canvas().show_time(store().start_of(span), store().end_of(span));
  const int x = (canvas().x_of(store().start_of(span)) + canvas().x_of(store().end_of(span))) / 2;
  QTest::mouseClick(canvas().viewport(), Qt::LeftButton, {}, {x, TimelineCanvas::kRuler + 5});
  ASSERT_TRUE(canvas().selected());
  EXPECT_EQ(canvas().selected()->span, span);
  canvas().set_pinned(pinned.id, false);
  EXPECT_EQ(canvas().pins_height(), 0);
}

TEST_F(Manners, RowsAreFilteredByTheirNames) {
  show_timeline();
  const std::size_t all = canvas().layout_of_rows().rows().size();
  view().row_filter().setText("stage 2");
  const auto& rows = canvas().layout_of_rows().rows();
  ASSERT_LT(rows.size(), all);
  ASSERT_GT(rows.size(), 2U);
  for (const PlacedRow& row : rows) {
    if (!row.lane) continue;
    const std::int32_t device = store().device_of(row.id.row);
    EXPECT_THAT(store().rows()[static_cast<std::size_t>(device)].name, HasSubstr("stage 2"));
  }
  view().row_filter().clear();
  EXPECT_EQ(canvas().layout_of_rows().rows().size(), all);
}

TEST_F(Manners, ThePlaceAmongRowsIsKeptForTheSameRowsAlone) {
  window_.resize(1300, 620);
  show_timeline();
  window_.resize(1300, 620);
  QTest::qWait(50);  // all is laid out
  QScrollBar& bar = *canvas().verticalScrollBar();
  bar.setValue(bar.maximum() / 2);
  const int place = bar.value();
  ASSERT_GT(place, 0);
  Scenario other = window_.document().scenario();
  other.file.job.plan.micro_batch = 2;
  window_.document().edit(other, "larger micro-batches");
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.document().settled() && window_.view_is_ready(); }, kPatienceMs));
  EXPECT_EQ(bar.value(), place);
  other.file.job.plan.pipeline = 2;
  other.file.job.plan.data = 2;
  window_.document().edit(other, "other rows");
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.document().settled() && window_.view_is_ready(); }, kPatienceMs));
  EXPECT_EQ(bar.value(), 0);
}

TEST_F(Manners, TheOverviewGoesWhereItIsPressed) {
  show_timeline();
  const std::int64_t length = (store().end() - store().begin()) / 20;
  canvas().show_time(store().begin(), store().begin() + length);
  Minimap& map = view().minimap();
  ASSERT_TRUE(map.isVisible());
  const std::int64_t wanted = store().begin() + (store().end() - store().begin()) * 3 / 4;
  const QPoint at(map.x_of(wanted), map.height() / 2);
  QTest::mouseClick(&map, Qt::LeftButton, {}, at);
  EXPECT_NEAR(static_cast<double>(canvas().end_ps() - canvas().begin_ps()), static_cast<double>(length), 2);
  EXPECT_LT(canvas().begin_ps(), map.time_at(at.x()));
  EXPECT_GT(canvas().end_ps(), map.time_at(at.x()));
  EXPECT_NEAR(static_cast<double>(canvas().begin_ps() + length / 2), static_cast<double>(wanted),
              static_cast<double>(length) / 4);
  // What is seen stands out from the rest.
  const QImage picture = map.grab().toImage();
  const int inside = map.x_of((canvas().begin_ps() + canvas().end_ps()) / 2), outside = map.x_of(store().begin()) + 30;
  const auto saturation = [&](int x) {
    int most = 0;
    for (int dx = -3; dx <= 3; ++dx) {
      for (int y = 4; y < picture.height() - 4; ++y) {
        most = std::max(most, picture.pixelColor(x + dx, y).saturation());
      }
    }
    return most;
  };
  EXPECT_GT(saturation(inside), saturation(outside));
}

// Two levels stood where a small screen leaves it 72 pixels.
TEST_F(Manners, TheFlameViewShowsFourLevelsInLittleRoom) {
  show_timeline();
  view().below().setCurrentWidget(&view().flame());
  ASSERT_TRUE(adds_up());
  FlameView& flame = view().flame();
  flame.resize(600, 72);
  std::set<double> levels;
  for (std::uint32_t node = 0; node < flame.flame()->size(); ++node) {
    const QRectF box = flame.box_of(node);
    if (!box.isEmpty() && box.bottom() <= flame.height()) levels.insert(box.top());
  }
  EXPECT_EQ(levels.size(), 4U);  // everything, phases, tasks and segments
}

TEST_F(Manners, TheFlameViewHoldsTheTimeOfTheSelectionAndZooms) {
  show_timeline();
  view().below().setCurrentWidget(&view().flame());
  ASSERT_TRUE(adds_up());
  FlameView& flame = view().flame();
  ASSERT_NE(flame.flame(), nullptr);
  std::int64_t sum = 0;
  for (std::uint32_t s = 0; s < store().size(); ++s) sum += store().end_of(s) - store().start_of(s);
  EXPECT_EQ(flame.flame()->node(0).ps, sum);
  std::map<std::string, std::uint32_t> phases;
  std::int64_t of_phases = 0;
  for (const std::uint32_t child : flame.flame()->children(0)) {
    phases[flame.flame()->name(child, store())] = child;
    of_phases += flame.flame()->node(child).ps;
  }
  EXPECT_EQ(of_phases, sum);
  ASSERT_TRUE(phases.contains("forward"));
  ASSERT_TRUE(phases.contains("backward"));
  const std::uint32_t forward = phases.at("forward");
  const QRectF box = flame.box_of(forward);
  EXPECT_NEAR(box.width() / flame.width(),
              static_cast<double>(flame.flame()->node(forward).ps) / static_cast<double>(sum), 0.01);
  // A click makes it as wide as the view; one on the bar above goes back.
  QTest::mouseClick(&flame, Qt::LeftButton, {}, box.center().toPoint());
  EXPECT_EQ(flame.focus(), forward);
  EXPECT_NEAR(flame.box_of(forward).width(), flame.width(), 1);
  const std::uint32_t task = flame.flame()->children(forward)[0];
  EXPECT_EQ(flame.flame()->full_name(task, store()), "forward mb0");
  QTest::keyClick(&flame, Qt::Key_Down);
  EXPECT_EQ(flame.flame()->node(flame.focus()).parent, forward);
  QTest::mouseClick(&flame, Qt::LeftButton, {}, flame.box_of(0).center().toPoint());
  EXPECT_EQ(flame.focus(), 0U);
  // Of a selection it is the selection's.
  const RowId lane = canvas().layout_of_rows().rows()[lanes()[0]].id;
  const std::int64_t middle = (store().begin() + store().end()) / 2;
  canvas().select_range(TimeRange{store().begin(), middle, lane});
  ASSERT_TRUE(adds_up());
  std::int64_t within = 0;
  const Row& row = store().rows()[static_cast<std::size_t>(lane.row)];
  for (std::uint32_t t = row.first_track; t < row.first_track + row.tracks; ++t) {
    for (std::uint32_t s = store().first_ending_after(t, store().begin()); s < store().first_starting_at(t, middle);
         ++s) {
      within += std::min(store().end_of(s), middle) - store().start_of(s);
    }
  }
  EXPECT_EQ(flame.flame()->node(0).ps, within);
}

TEST_F(Manners, BarsOfTheFlameViewHaveTheColoursOfTheTimeline) {
  show_timeline();
  view().below().setCurrentWidget(&view().flame());
  ASSERT_TRUE(adds_up());
  FlameView& flame = view().flame();
  for (const std::uint32_t child : flame.flame()->children(0)) {
    if (flame.flame()->name(child, store()) != "forward") continue;
    const QRectF box = flame.box_of(child);
    const QColor seen = flame.grab().toImage().pixelColor(
        QPoint(static_cast<int>(box.right()) - 4, static_cast<int>(box.bottom()) - 3));
    EXPECT_EQ(seen.rgb(), colour_of(store().categories()[flame.flame()->node(child).category]).rgb());
  }
}

TEST_F(Manners, AProjectKeepsHowTheViewsStand) {
  show_timeline();
  const std::int64_t begin = store().begin() + (store().end() - store().begin()) / 4;
  const std::int64_t end = store().begin() + (store().end() - store().begin()) / 2;
  canvas().show_time(begin, end);
  canvas().set_marks({begin, end});
  view().row_filter().setText("stage 1");
  view().below().setCurrentWidget(&view().flame());
  window_.memory().show_ranks(true);
  window_.cluster().colour().setCurrentText("memory used");
  window_.plans().filter().setText("ZeRO-1");
  ASSERT_TRUE(window_.save(file("kept.json")));
  MainWindow other;
  other.resize(1400, 900);
  ASSERT_TRUE(other.open(file("kept.json")));
  other.show();
  EXPECT_EQ(other.view(), MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return other.document().settled() && other.view_is_ready(); }, kPatienceMs));
  EXPECT_NEAR(static_cast<double>(other.timeline().canvas().begin_ps()), static_cast<double>(begin), 2);
  EXPECT_NEAR(static_cast<double>(other.timeline().canvas().end_ps()), static_cast<double>(end), 2);
  EXPECT_EQ(other.timeline().canvas().marks().size(), 2U);
  EXPECT_EQ(plain(other.timeline().row_filter().text()), "stage 1");
  EXPECT_EQ(other.timeline().below().currentWidget(), &other.timeline().flame());
  EXPECT_TRUE(other.memory().shows_ranks());
  EXPECT_EQ(plain(other.cluster().colour().currentText()), "memory used");
  EXPECT_EQ(plain(other.plans().filter().text()), "ZeRO-1");
  // What it says wrongly of its views is told like all else.
  std::ifstream stream(file("kept.json").toStdString());
  nlohmann::json json = nlohmann::json::parse(stream);
  json["views"]["flame"] = "perhaps";
  write("wrong.json", json.dump());
  EXPECT_FALSE(other.open(file("wrong.json")));
  EXPECT_THAT(plain(other.banner().text()), HasSubstr("/views/flame"));
}

TEST_F(Manners, ThePictureOfAViewIsCopiedWithItsTitle) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kMemory);
  QGuiApplication::clipboard()->clear();
  for (QAction* action : window_.findChildren<QAction*>()) {
    if (action->text().remove('&').startsWith("Copy the picture")) action->trigger();
  }
  const QImage copied = QGuiApplication::clipboard()->image();
  ASSERT_FALSE(copied.isNull());
  EXPECT_EQ(copied.width(), window_.memory().width());
  EXPECT_GT(copied.height(), window_.memory().height());  // what it is of stands above
}

TEST(KeptLayout, ComesBackAfterAKill) {
  QFile::remove(QString::fromStdString(autosave_path()));  // of another window
  {
    MainWindow window;
    window.begin_example(small_scenario());
    window.resize(1317, 873);
    window.show();
    window.show_view(MainWindow::kMemory);
    window.findChild<QDockWidget*>("plan")->hide();
    Scenario other = window.document().scenario();
    other.file.job.training.global_batch = 32;
    window.document().edit(other, "a larger batch");
    ASSERT_TRUE(QTest::qWaitFor([&] { return window.has_autosave(); }, kPatienceMs));
  }  // gone without having been closed
  EXPECT_EQ(plain(kept_view()), "memory");
  MainWindow window;
  ASSERT_TRUE(window.restore_autosave());
  window.show();
  EXPECT_EQ(window.size(), QSize(1317, 873));
  EXPECT_TRUE(window.findChild<QDockWidget*>("plan")->isHidden());
  EXPECT_FALSE(window.findChild<QDockWidget*>("job")->isHidden());
  EXPECT_EQ(window.document().scenario().file.job.training.global_batch, 32);
  window.findChild<QDockWidget*>("plan")->show();
  window.close();
  QFile::remove(QString::fromStdString(autosave_path()));
}

TEST(TemporaryFolders, OfProgramsThatAreNoMoreGo) {
  QProcess ended;
  ended.start("true", {});
  ASSERT_TRUE(ended.waitForStarted());
  const qint64 dead = ended.processId();
  ASSERT_TRUE(ended.waitForFinished());
  const QDir all(QDir::tempPath());
  const QString left = QString("trivium-gui-%1-abcdef").arg(dead);
  const QString ours = QString("trivium-gui-%1-abcdef").arg(QCoreApplication::applicationPid());
  for (const QString& name : {left, ours, QString("trivium-gui-notes-abcdef")}) ASSERT_TRUE(all.mkpath(name + "/in"));
  const MainWindow window;
  EXPECT_FALSE(all.exists(left));
  for (const QString& name : {ours, QString("trivium-gui-notes-abcdef")}) {
    EXPECT_TRUE(all.exists(name)) << plain(name);
    QDir(all.filePath(name)).removeRecursively();
  }
}

}  // namespace
}  // namespace trivium::gui
