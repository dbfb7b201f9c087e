#include "tests/gui/random/hand.h"

#include <gtest/gtest.h>

#include <QDir>
#include <QTest>
#include <fstream>
#include <utility>
#include <vector>

#include "gui/background.h"
#include "gui/look/theme.h"
#include "gui/model/plan_controls.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

constexpr int kMostDevices = 128;  // beyond, nodes are not doubled any more
constexpr int kPatienceMs = 120'000;
constexpr int kRestWidth = 1400, kRestHeight = 900;  // pixels

}  // namespace

Hand::Hand(MainWindow& window, unsigned seed) : window_(window), random_(seed), home_(QDir::currentPath()) {
  QDir::setCurrent(folder_.path());  // names that are typed anywhere end there
  std::ofstream text(folder_.filePath("text.txt").toStdString());
  for (int i = 0; i < 500; ++i) text << "Ranks of one stage do the same work on other parts of the batch. ";
}

Hand::~Hand() { QDir::setCurrent(home_); }

std::string Hand::act() {
  using Action = void (Hand::*)();
  static const std::vector<std::pair<const char*, Action>> kActions{{"change a field", &Hand::turn_a_plan_control},
                                                                    {"change a field", &Hand::turn_a_plan_control},
                                                                    {"change a field", &Hand::turn_a_plan_control},
                                                                    {"type a list", &Hand::type_a_list},
                                                                    {"undo", &Hand::undo},
                                                                    {"redo", &Hand::redo},
                                                                    {"change view", &Hand::change_view},
                                                                    {"ask what if", &Hand::ask_what_if},
                                                                    {"change view", &Hand::change_view},
                                                                    {"search", &Hand::search},
                                                                    {"cancel", &Hand::cancel},
                                                                    {"pin", &Hand::pin},
                                                                    {"use", &Hand::use},
                                                                    {"sort and filter", &Hand::sort_and_filter},
                                                                    {"press keys", &Hand::press_keys},
                                                                    {"press keys", &Hand::press_keys},
                                                                    {"click", &Hand::click},
                                                                    {"drag in the cluster", &Hand::drag_in_cluster},
                                                                    {"colour", &Hand::colour},
                                                                    {"move a stage", &Hand::move_stage},
                                                                    {"resize", &Hand::resize},
                                                                    {"choose a cluster", &Hand::choose_cluster},
                                                                    {"edit nodes", &Hand::edit_nodes},
                                                                    {"type a job", &Hand::type_a_job},
                                                                    {"choose bars", &Hand::choose_memory_bars},
                                                                    {"drag in the timeline", &Hand::drag_in_timeline},
                                                                    {"turn the wheel", &Hand::turn_wheel},
                                                                    {"search the timeline", &Hand::search_timeline},
                                                                    {"look back", &Hand::look_back},
                                                                    {"look below", &Hand::look_below},
                                                                    {"two plans", &Hand::set_two_plans_apart},
                                                                    {"links", &Hand::look_at_links},
                                                                    {"explain", &Hand::explain},
                                                                    {"compare", &Hand::compare},
                                                                    {"write files", &Hand::write_files},
                                                                    {"open a broken file", &Hand::open_broken_file},
                                                                    {"run", &Hand::run},
                                                                    {"change theme", &Hand::change_theme},
                                                                    {"wait", &Hand::wait}};
  static const std::vector<std::pair<const char*, Action>> kSeldom{{"second window", &Hand::second_window},
                                                                   {"crash and restore", &Hand::crash_and_restore},
                                                                   {"own nodes", &Hand::describe_own_nodes},
                                                                   {"start page", &Hand::begin_on_start_page},
                                                                   {"begin large", &Hand::begin_large}};
  constexpr std::size_t kOneIn = 100;
  const auto& actions = pick(kOneIn) == 0 ? kSeldom : kActions;
  const auto& [name, action] = actions[pick(actions.size())];
  (this->*action)();
  QCoreApplication::processEvents();
  return name;
}

void Hand::rest() {
  window_.plans().cancel();
  window_.runs().stop();
  window_.what_if().cancel();  // it goes on for the job that it was asked of
  window_.plans().unpin_all();
  window_.timeline().search_field().clear();
  window_.plans().filter().clear();
  window_.resize(kRestWidth, kRestHeight);  // a window keeps pictures as large as it is
  window_.show_view(MainWindow::kCluster);
  window_.begin_example(staged_scenario());
  const auto at_rest = [&] {
    return window_.document().settled() && !window_.plans().is_searching() && !window_.runs().is_running() &&
           !window_.timeline().is_busy() && !window_.compare().is_busy() && !window_.validation().is_busy() &&
           work_under_way == 0;  // work that was given up holds its memory until it notices
  };
  // A run that ends loads its record: what is shown then is begun anew.
  EXPECT_TRUE(QTest::qWaitFor(at_rest, kPatienceMs))
      << "never at rest: settled " << window_.document().settled() << ", searching " << window_.plans().is_searching()
      << ", running " << window_.runs().is_running() << ", timeline " << window_.timeline().is_busy() << ", compare "
      << window_.compare().is_busy() << ", validation " << window_.validation().is_busy() << ", work "
      << work_under_way;
  window_.begin_example(staged_scenario());
  for (const MainWindow::View view : {MainWindow::kTimeline, MainWindow::kExplain}) {  // what they held is let go
    window_.show_view(view);
    if (!QTest::qWaitFor([&] { return at_rest() && window_.view_is_ready(); }, kPatienceMs)) return;
  }
  window_.show_view(MainWindow::kCluster);
  QTest::qWait(1);
}

QPoint Hand::somewhere(const QWidget& widget) {
  return {up_to(std::max(1, widget.width() - 1)), up_to(std::max(1, widget.height() - 1))};
}

void Hand::drag(QWidget& widget, QPoint from, QPoint to) {
  const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
    QMouseEvent event(type, at, widget.mapToGlobal(at), button, buttons, {});
    QCoreApplication::sendEvent(&widget, &event);
  };
  send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
  send(QEvent::MouseMove, (from + to) / 2, Qt::NoButton, Qt::LeftButton);
  if (pick(2) == 0) QCoreApplication::processEvents();
  send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
  send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
}

void Hand::press_button(QWidget& in, const QString& text) {
  for (QPushButton* button : in.findChildren<QPushButton*>()) {
    if (button->text().remove('&') == text && button->isEnabled()) return button->click();
  }
}

void Hand::type(QLineEdit& edit, const QString& text) {
  edit.setFocus();
  edit.selectAll();
  QTest::keyClicks(&edit, text);
  QTest::keyClick(&edit, Qt::Key_Return);
}

void Hand::turn_a_plan_control() {
  const PlanControl& plan_control = plan_controls()[pick(plan_controls().size())];
  QComboBox& box = window_.plan_controls().plan_control(plan_control.field);
  box.setCurrentIndex(up_to(box.count() - 1));
}

void Hand::type_a_list() {
  const StageList& list = stage_lists()[pick(stage_lists().size())];
  const char* words[] = {"full:2, none:2", "selective:4", "none", "", "3x4", "6x2", "0x2, 1x2", "1x9999999", "x:"};
  QLineEdit& edit = window_.plan_controls().list(list.field);
  if (!edit.isHidden()) type(edit, words[pick(std::size(words))]);
}

void Hand::undo() { window_.document().history().undo(); }

void Hand::redo() { window_.document().history().redo(); }

void Hand::change_view() { window_.show_view(static_cast<MainWindow::View>(pick(MainWindow::kViews))); }

void Hand::search() { window_.plans().search(); }

void Hand::ask_what_if() {
  WhatIfView& view = window_.what_if();
  if (pick(3) == 0) return view.use(up_to(9));
  if (pick(3) == 0) return view.cancel();
  const char* values[] = {"4:16", "1,2,4", "3 h", "64:256", "", "x", "8:4", "0"};
  view.question().setCurrentIndex(up_to(view.question().count() - 1));
  if (pick(2) == 0) type(view.value(), values[pick(std::size(values))]);
  view.ask();
}

void Hand::cancel() { window_.plans().cancel(); }

void Hand::pin() {
  if (pick(2) == 0) return window_.plans().unpin_all();
  window_.plans().pin_current();
  window_.plans().pin(up_to(4));
}

void Hand::use() { window_.plans().use(up_to(29)); }

void Hand::sort_and_filter() {
  const char* words[] = {"", "full", "TP2", "nothing like it", "ZeRO-1"};
  window_.plans().filter().setText(words[pick(std::size(words))]);
  window_.plans().table().sortByColumn(up_to(PlansModel::kColumns - 1),
                                       pick(2) == 0 ? Qt::AscendingOrder : Qt::DescendingOrder);
  window_.plans().explain_why_not(up_to(10));
}

void Hand::press_keys() {
  const Qt::Key keys[] = {Qt::Key_M,     Qt::Key_Comma, Qt::Key_Plus,  Qt::Key_Minus,  Qt::Key_F,
                          Qt::Key_W,     Qt::Key_A,     Qt::Key_S,     Qt::Key_D,      Qt::Key_Left,
                          Qt::Key_Right, Qt::Key_Up,    Qt::Key_Down,  Qt::Key_Escape, Qt::Key_Home,
                          Qt::Key_Tab,   Qt::Key_Space, Qt::Key_Enter, Qt::Key_Slash,  Qt::Key_Backspace};
  QWidget* focused = window_.focusWidget();
  QWidget* const targets[] = {&window_.cluster().canvas(), &window_.timeline().canvas(), &window_.memory().bars(),
                              &window_.plans().table(),    &window_.compare().canvas(),  focused};
  QWidget* target = targets[pick(std::size(targets))];
  const bool opens = qobject_cast<QAbstractButton*>(target) != nullptr || qobject_cast<QComboBox*>(target) != nullptr;
  if (target == nullptr || opens) return;  // these may open what waits for a person
  for (int i = up_to(4); i >= 0; --i) QTest::keyClick(target, keys[pick(std::size(keys))]);
}

void Hand::click() {
  QTest::mouseClick(&window_.cluster().canvas(), Qt::LeftButton, {}, somewhere(window_.cluster().canvas()));
  QTest::mouseClick(&window_.memory().bars(), Qt::LeftButton, {}, somewhere(window_.memory().bars()));
  QTest::mouseClick(window_.timeline().canvas().viewport(), Qt::LeftButton, {},
                    somewhere(*window_.timeline().canvas().viewport()));
  QWidget& view = window_.widget_of(window_.view());
  if (view.width() > 10) view.grab();
}

void Hand::drag_in_cluster() {
  ClusterCanvas& canvas = window_.cluster().canvas();
  drag(canvas, somewhere(canvas), somewhere(canvas));
}

void Hand::colour() { window_.cluster().canvas().set_colour(static_cast<DeviceColour>(pick(8))); }

void Hand::move_stage() { window_.cluster().move_stage(up_to(5), up_to(5)); }

void Hand::resize() { window_.resize(900 + up_to(900), 600 + up_to(500)); }

void Hand::choose_cluster() {
  const char* clusters[] = {"dgx-a100-80gb:1", "dgx-a100-80gb:2", "dgx1-v100-32gb:2", "generic-cpu:1",
                            "dgx-a100-80gb:2+dgx1-v100-32gb:2"};
  window_.start_panel().cluster().setCurrentText(clusters[pick(std::size(clusters))]);
  window_.start_panel().apply("cluster");
}

void Hand::edit_nodes() {
  ClusterView& view = window_.cluster();
  switch (pick(4)) {
    case 0:
      if (window_.document().scenario().cluster.devices() < kMostDevices) press_button(view, "Duplicate");
      break;
    case 1:
      press_button(view, "Remove");
      break;
    case 2:
      if (window_.document().scenario().cluster.devices() < kMostDevices) press_button(view, "Add");
      break;
    default: {
      const QString texts[] = {"40 GiB", "200 Gb/s", "3 us", "12 parsecs", "-1 GiB", "1e300 GiB"};
      view.constant(static_cast<NodeConstant>(pick(kNodeConstants))).setText(texts[pick(std::size(texts))]);
      QTest::keyClick(&view.constant(static_cast<NodeConstant>(pick(kNodeConstants))), Qt::Key_Return);
    }
  }
}

void Hand::type_a_job() {
  const std::pair<const char*, const char*> typed[] = {
      {"global_batch", "32"}, {"global_batch", "17x"},      {"sequence", "512"},     {"sequence", "1024"},
      {"memory", "40 GiB"},   {"memory", "40 parsecs"},     {"fixed", "tensor"},     {"fixed", "tensr"},
      {"fixed", ""},          {"total_tokens", "3000000"},  {"total_tokens", "0"},   {"ranks", "4"},
      {"ranks", "0"},         {"global_batch", "99999999"}, {"global_batch", "-16"}, {"global_batch", "16"}};
  const auto& [field, text] = typed[pick(std::size(typed))];
  type(window_.start_panel().field(field), text);
}

void Hand::choose_memory_bars() {
  MemoryView& memory = window_.memory();
  memory.show_ranks(pick(2) == 0);
  memory.rank().setValue(up_to(40));
}

void Hand::explain() {
  if (pick(2) == 0) window_.explain().jitter().setValue(1 + up_to(19));
  window_.plans().explain_why_not_current();
}

void Hand::compare() {
  window_.validate();
  QComboBox& steps = window_.compare().steps();
  if (steps.count() > 0) steps.setCurrentIndex(up_to(steps.count() - 1));
}

void Hand::write_files() {
  const QString file = folder_.filePath("out");
  switch (pick(8)) {
    case 0:
      window_.export_picture(file + ".svg");
      break;
    case 1:
      window_.export_table(file + ".csv");
      break;
    case 2:
      window_.export_report(file + ".html");
      break;
    case 3:
      window_.export_launch(file, planner::launch::trainers()[pick(planner::launch::trainers().size())].trainer);
      break;
    case 4:
      window_.save(file + ".json");
      break;
    case 5:
      if (window_.export_trace(file + ".trace.json") && pick(4) == 0) window_.open(file + ".trace.json");
      break;
    case 6:
      window_.export_picture(file + ".png");
      break;
    default:
      window_.open(file + ".json");
  }
}

void Hand::open_broken_file() {
  const char* contents[] = {"{\"schema\": ", "{\"schema\": \"trivium.project/1\"}", "[1, 2",
                            "{\"traceEvents\": [{\"ph\"", "{\"schema\": \"trivium.run/1\", \"steps\": 3}"};
  const QString file = folder_.filePath("broken.json");
  std::ofstream(file.toStdString()) << contents[pick(std::size(contents))];
  window_.open(file);
}

void Hand::run() {
  RunPanel& runs = window_.runs();
  switch (pick(6)) {
    case 0:
      window_.begin_example(local_example());
      runs.corpus().setText(folder_.filePath("text.txt"));
      runs.steps().setValue(2);
      runs.checkpoint().setText(pick(2) == 0 ? folder_.filePath("kept") : QString());
      return runs.start();
    case 1:
      return runs.resume();
    case 2:
      return runs.start();
    default:
      runs.stop();
  }
}

void Hand::change_theme() { apply_theme(pick(2) == 0 ? Theme::kLight : Theme::kDark); }

void Hand::second_window() {
  MainWindow other;
  other.begin_example(pick(2) == 0 ? small_scenario() : mixed_example());
  other.show();
  other.show_view(static_cast<MainWindow::View>(pick(MainWindow::kViews)));
  other.plans().search();
  QTest::qWait(up_to(100));
  other.close();
}

void Hand::crash_and_restore() { window_.restore_autosave(); }

void Hand::begin_large() { window_.begin_example(pick(2) == 0 ? example_scenario() : mixed_example()); }

void Hand::wait() { QTest::qWait(up_to(120)); }

}  // namespace trivium::gui
