// A window on a small job, driven as a person would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "gui/window/main_window.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {

constexpr int kPatienceMs = 120'000;

inline std::string plain(const QString& text) { return text.toStdString(); }

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

  QTemporaryDir folder_;
  MainWindow window_;
};

}  // namespace trivium::gui
