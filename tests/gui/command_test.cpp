// The program from the command line: what it draws, and what it says where it cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QDockWidget>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gui/window/main_window.h"
#include "program/plan/plan_file.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

constexpr int kPatienceMs = 300'000;
constexpr int kOk = 0, kUsage = 2, kInput = 3;

class Command : public testing::Test {
 protected:
  struct Ended {
    int code = -1;
    std::string said;  ///< on stderr
  };
  Ended run(const QStringList& arguments, const QString& platform = "offscreen") const {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* screen : {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"}) environment.remove(screen);
    if (!platform.isEmpty()) environment.insert("QT_QPA_PLATFORM", platform);
    process.setProcessEnvironment(environment);
    process.start(QCoreApplication::applicationDirPath() + "/trivium-gui", arguments);
    EXPECT_TRUE(process.waitForFinished(kPatienceMs)) << process.errorString().toStdString();
    return {process.exitCode(), process.readAllStandardError().toStdString()};
  }
  QString file(const QString& name) const { return folder_.filePath(name); }
  QString plan() const {
    std::ofstream(file("plan.json").toStdString()) << program::to_json(staged_scenario().file).dump();
    return file("plan.json");
  }
  QTemporaryDir folder_;
};

TEST_F(Command, HelpAndComplaintsNeedNoDisplay) {
  EXPECT_EQ(run({"--help"}, "").code, kOk);
  EXPECT_EQ(run({"--no-such-option"}, "").code, kUsage);
  const Ended ended = run({}, "");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.said, HasSubstr("no display"));
}

TEST_F(Command, LeavesQtItsOwnOptions) {
  const QString out = file("out.png");
  const Ended ended = run(
      {"-platform", "offscreen", "--style=windows", plan(), "--screenshot", "cluster", out, "--size", "800x600"}, "");
  EXPECT_EQ(ended.code, kOk) << ended.said;
  EXPECT_FALSE(QImage(out).isNull());
  EXPECT_EQ(run({"-platform", "offscreen", "-reverse", "--help"}, "").code, kOk);
}

TEST_F(Command, DrawsEveryViewOfAPlanInBothThemes) {
  for (const QString& view : MainWindow::view_names()) {
    if (view == "plans") continue;  // a search: below
    QImage pictures[2];
    for (const bool dark : {false, true}) {
      const QString out = file("out.png");
      const Ended ended =
          run({plan(), "--screenshot", view, out, "--size", "1200x700", "--theme", dark ? "dark" : "light"});
      ASSERT_EQ(ended.code, kOk) << ended.said;
      pictures[dark] = QImage(out);
      ASSERT_EQ(pictures[dark].size(), QSize(1200, 700)) << view.toStdString();
    }
    const QPoint margin(1190, 5);  // ground of the menu bar
    EXPECT_GT(pictures[0].pixelColor(margin).lightness(), 200) << view.toStdString();
    EXPECT_LT(pictures[1].pixelColor(margin).lightness(), 80) << view.toStdString();
  }
}

// Panels that were closed are in the picture, and those of the picture do not come at the next start.
TEST_F(Command, APictureNeitherHasNorLeavesALayout) {
  const auto picture = [&](const QString& view) {
    const Ended ended = run({plan(), "--screenshot", view, file(view + ".png"), "--size", "1200x700"});
    EXPECT_EQ(ended.code, kOk) << ended.said;
    return QImage(file(view + ".png"));
  };
  const QString settings = QString::fromUtf8(qgetenv("XDG_CONFIG_HOME")) + "/trivium/trivium-gui.conf";
  QFile::remove(settings);
  const QImage usual = picture("memory");
  EXPECT_FALSE(QFileInfo::exists(settings));
  {
    MainWindow window;
    window.begin_example(small_scenario());
    window.resize(1200, 700);
    window.show();
    window.findChild<QDockWidget*>("plan")->hide();
    window.close();
  }
  ASSERT_TRUE(QFileInfo::exists(settings));
  EXPECT_EQ(picture("memory"), usual);
  QFile::remove(settings);
}

TEST_F(Command, SearchesForThePictureOfThePlans) {
  std::ofstream(file("small.json").toStdString()) << program::to_json(small_scenario().file).dump();
  const Ended ended = run({file("small.json"), "--screenshot", "plans", file("plans.svg")});
  ASSERT_EQ(ended.code, kOk) << ended.said;
  std::ifstream svg(file("plans.svg").toStdString());
  const std::string drawn((std::istreambuf_iterator<char>(svg)), std::istreambuf_iterator<char>());
  EXPECT_NE(drawn.find("none of those shown"), std::string::npos);
}

TEST_F(Command, SaysInOneLineWhatItCannotDo) {
  std::ofstream(file("broken.json").toStdString()) << "{\"schema\": ";
  const std::pair<QStringList, int> wrong[] = {
      {{plan(), "--screenshot", "graph", file("o.png")}, kUsage},
      {{plan(), "--screenshot", "memory"}, kUsage},
      {{plan(), "--screenshot", "memory", file("o.png"), "--size", "10x10"}, kUsage},
      {{plan(), "--screenshot", "memory", file("o.png"), "--theme", "blue"}, kUsage},
      {{plan(), "--screenshot", "memory", file("o.bmp")}, kUsage},
      {{"--graph"}, kUsage},
      {{file("broken.json"), "--screenshot", "memory", file("o.png")}, kInput},
      {{file("missing.json"), "--screenshot", "memory", file("o.png")}, kInput}};
  for (const auto& [arguments, code] : wrong) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, code) << arguments.join(' ').toStdString();
    EXPECT_THAT(ended.said, HasSubstr("error: ")) << arguments.join(' ').toStdString();
    EXPECT_FALSE(QFileInfo::exists(file("o.png")));
  }
}

}  // namespace
}  // namespace trivium::gui
