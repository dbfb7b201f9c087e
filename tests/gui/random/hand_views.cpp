// What the hand does in timelines and in views of their own.
#include <QTableWidget>
#include <QTest>
#include <QTreeWidget>

#include "gui/views/node_dialog.h"
#include "tests/gui/random/hand.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {

void Hand::drag_in_timeline() {
  QWidget& canvas = *window_.timeline().canvas().viewport();
  drag(canvas, somewhere(canvas), somewhere(canvas));
}

void Hand::turn_wheel() {
  QWidget* const targets[] = {&window_.cluster().canvas(), window_.timeline().canvas().viewport(),
                              window_.compare().canvas().viewport()};
  QWidget& target = *targets[pick(std::size(targets))];
  const QPoint at = somewhere(target);
  const Qt::KeyboardModifiers held[] = {Qt::NoModifier, Qt::ControlModifier, Qt::ShiftModifier};
  QWheelEvent turn(at, target.mapToGlobal(at), {}, {0, pick(2) == 0 ? 120 : -120}, Qt::NoButton, held[pick(3)],
                   Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(&target, &turn);
}

void Hand::search_timeline() {
  const char* words[] = {"matmul", "backward mb1", "", "nothing like it", "layer 1"};
  type(window_.timeline().search_field(), words[pick(std::size(words))]);
  for (QCheckBox* box : window_.timeline().findChildren<QCheckBox*>()) {
    if (pick(3) == 0) box->toggle();
  }
}

void Hand::look_back() {
  TimelineCanvas& canvas = window_.timeline().canvas();
  const auto& rows = canvas.layout_of_rows().rows();
  switch (pick(5)) {
    case 0:
      canvas.show_only(rows.empty() ? std::nullopt : std::optional(rows[pick(rows.size())].id));
      break;
    case 1:
      canvas.show_only(std::nullopt);
      break;
    case 2:
      canvas.back();
      break;
    case 3:
      if (!rows.empty()) canvas.toggle_fold(rows[pick(rows.size())].id);
      break;
    default:
      canvas.forward();
  }
}

void Hand::look_below() {
  TimelineView& view = window_.timeline();
  window_.show_view(MainWindow::kTimeline);
  view.below().setCurrentIndex(up_to(view.below().count() - 1));
  QTest::mouseClick(&view.flame(), Qt::LeftButton, {}, somewhere(view.flame()));
  const Qt::Key keys[] = {Qt::Key_Up, Qt::Key_Down, Qt::Key_Left, Qt::Key_Right, Qt::Key_Escape};
  QTest::keyClick(&view.flame(), keys[pick(std::size(keys))]);
  QTreeWidget& ops = view.ops().table();
  ops.setCurrentItem(ops.topLevelItem(up_to(std::max(0, ops.topLevelItemCount() - 1))));
  if (pick(2) == 0) QTest::keyClick(&ops, Qt::Key_Return);
  drag(view.minimap(), somewhere(view.minimap()), somewhere(view.minimap()));
  const char* rows[] = {"", "rank 0", "tensor", "nothing like it"};
  type(view.row_filter(), rows[pick(std::size(rows))]);
  if (pick(4) == 0) window_.export_ops(folder_.filePath("ops.csv"));
  if (pick(4) == 0) window_.export_selection(folder_.filePath("selection.csv"));
}

void Hand::set_two_plans_apart() {
  TwoPlansView& view = window_.two_plans();
  window_.show_two_plans();
  view.first().setCurrentIndex(up_to(view.first().count() - 1));
  view.second().setCurrentIndex(up_to(view.second().count() - 1));
  QWidget& canvas = *view.canvas().viewport();
  drag(canvas, somewhere(canvas), somewhere(canvas));
  QTest::mouseClick(&view.waterfall(), Qt::LeftButton, {}, somewhere(view.waterfall()));
}

void Hand::look_at_links() {
  window_.show_view(MainWindow::kLinks);
  QTableWidget& table = window_.links().table();
  table.setCurrentCell(up_to(std::max(0, table.rowCount() - 1)), 0);
  QTest::mouseClick(&window_.links().bars(), Qt::LeftButton, {}, somewhere(window_.links().bars()));
}

/// Kept in the folder of this program's settings: its tests have one of their own.
void Hand::describe_own_nodes() {
  window_.cluster().ask_new_kind();
  auto* dialog = window_.findChild<NodeDialog*>();
  if (dialog == nullptr) return;
  const std::pair<const char*, const char*> typed[] = {{"/device/peak/bf16", "156 TFLOP/s"},
                                                       {"/device/peak/bf16", "156 parsecs"},
                                                       {"/price", "10 $/h"},
                                                       {"/device/memory", "-3 GiB"},
                                                       {"/fat_tree/leaf_nodes", "16"}};
  const auto& [field, text] = typed[pick(std::size(typed))];
  type(dialog->field(field), text);
  const char* pasted[] = {"Dear diary,", "GPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n", ""};
  dialog->pasted().setPlainText(pasted[pick(std::size(pasted))]);
  dialog->name().setText(pick(2) == 0 ? "random-node" : "../random node");
  if (pick(2) == 0 && dialog->keep().isEnabled()) return dialog->keep().click();
  dialog->reject();
}

void Hand::begin_on_start_page() {
  window_.show_start_page();
  QCoreApplication::processEvents();
  if (pick(2) == 0) QTest::keyClick(&window_.start_page(), Qt::Key_Tab);
  window_.begin_example(pick(2) == 0 ? small_scenario() : staged_scenario());
}

}  // namespace trivium::gui
