// A window on a small job, driven as a person would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QApplication>
#include <QMessageBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <fstream>
#include <utility>

#include "gui/window/main_window.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {

constexpr int kPatienceMs = 120'000;

inline std::string plain(const QString& text) { return text.toStdString(); }

/// Presses a button of the next question that is asked, and keeps its words; null: none is expected. The question comes
/// from a loop of its own: what presses is a timer.
inline QString* answer_question(const char* button) {
  static QString asked;
  asked.clear();
  auto* look = new QTimer(qApp);
  look->setInterval(5);
  QObject::connect(look, &QTimer::timeout, look, [look, button] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (box == nullptr) return;
    asked = box->text() + " " + box->informativeText();
    look->deleteLater();
    look->stop();
    for (QAbstractButton* one : box->buttons()) {
      if (button != nullptr && one->text().remove('&') == button) return one->click();
    }
    ADD_FAILURE() << "asked: " << asked.toStdString();
    box->reject();
  });
  look->start();
  if (button == nullptr) QTimer::singleShot(0, look, &QObject::deleteLater);
  return &asked;
}

/// A window on a small job, shown without a screen.
class Window : public testing::Test {
 protected:
  void begin(const Scenario& scenario) {
    window_.resize(1400, 900);
    window_.begin_example(scenario);
    window_.show();
    ASSERT_TRUE(settles());
  }
  bool settles() {
    return QTest::qWaitFor([&] { return window_.document().settled(); }, kPatienceMs);
  }
  QString file(const QString& name) const { return folder_.filePath(name); }
  void write(const QString& name, const std::string& content) const {
    std::ofstream(file(name).toStdString()) << content;
  }
  const program::Plan& plan() { return window_.document().scenario().file.job.plan; }
  void choose(QComboBox& box, const QString& text) {
    ASSERT_GE(box.findText(text), 0) << plain(text);
    box.setCurrentText(text);
  }
  void type(QLineEdit& edit, const QString& text) {
    edit.setFocus();
    edit.selectAll();
    QTest::keyClicks(&edit, text);
    QTest::keyClick(&edit, Qt::Key_Return);
  }

  /// Questions that no case expects would wait for good.
  void SetUp() override {
    QObject::connect(&watch_, &QTimer::timeout, [this] {
      auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (std::exchange(seen_, box) != box || box == nullptr) return;
      ADD_FAILURE() << "nobody answered: " << box->text().toStdString();
      box->reject();
    });
    watch_.start(3000);
  }

  QTemporaryDir folder_;
  MainWindow window_;

 private:
  QTimer watch_;
  QMessageBox* seen_ = nullptr;
};

}  // namespace trivium::gui
