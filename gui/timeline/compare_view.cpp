#include "gui/timeline/compare_view.h"

#include <QPainter>

namespace trivium::gui {

CompareView::CompareView(QWidget* parent) : QWidget(parent) { setAccessibleName("Compare"); }

void CompareView::set_comparison(std::optional<Comparison> comparison) {
  comparison_ = std::move(comparison);
  update();
}

void CompareView::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  const QString text = comparison_ ? QString("%1 measured steps").arg(comparison_->record->steps.size())
                                   : QString("Run the plan, or load a run record, to set it beside the prediction.");
  painter.drawText(rect(), Qt::AlignCenter, text);
}

}  // namespace trivium::gui
