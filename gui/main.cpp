// trivium-gui: plan a cluster layout by looking at it.
#include <QApplication>
#include <QCommandLineParser>
#include <QElapsedTimer>
#include <QIcon>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <variant>

#include "base/error.h"
#include "gui/look/theme.h"
#include "gui/window/kept_layout.h"
#include "gui/window/main_window.h"
#include "gui/window/pictures.h"

namespace trivium::gui {
namespace {

constexpr int kOk = 0;
constexpr int kFailed = static_cast<int>(base::ErrorKind::kRuntime);
constexpr int kUsage = static_cast<int>(base::ErrorKind::kUsage);
constexpr int kInput = static_cast<int>(base::ErrorKind::kInput);
constexpr int kPatienceMs = 600'000;
constexpr int kLeastWidth = 320, kLeastHeight = 240, kMostPixels = 16384;
constexpr int kSettleMs = 300;  // for layouts and pictures that come after the figures

int complain(const QString& words, int code) {
  std::fprintf(stderr, "error: %s\n", words.toUtf8().constData());
  return code;
}

/// Lets the program work until `done`; false when patience ends.
bool wait_until(const std::function<bool()>& done) {
  QElapsedTimer clock;
  clock.start();
  while (!done()) {
    if (clock.elapsed() > kPatienceMs) return false;
    QApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 50);
  }
  return true;
}

/// What can be drawn: the views, the panels below the comparison, and where one begins.
QStringList pictured_names() {
  return MainWindow::view_names() + QStringList{"two-plans", "flame", "run", "validation", "start"};
}

/// Draws a view of a window that nobody sees.
int take_picture(MainWindow& window, const QString& view, const QString& out, QSize size) {
  window.keep_nothing();
  window.resize(size);
  window.show();
  const qsizetype number = MainWindow::view_names().indexOf(view);
  window.show_view(number >= 0 ? static_cast<MainWindow::View>(number) : MainWindow::kCompare);
  if (view == "flame") {
    window.show_view(MainWindow::kTimeline);
    window.timeline().below().setCurrentWidget(&window.timeline().flame());
  }
  if (view == "start") window.show_start_page();
  if (view == "run") window.show_runs();
  if (view == "validation") window.validate();
  QTimer heartbeat;  // so that waiting for events never sleeps for good
  heartbeat.start(20);
  if (!wait_until([&] { return window.document().settled(); }))
    return complain("the plan was not simulated in time", kFailed);
  if (view == "plans" || view == "two-plans") {
    window.plans().pin_current();
    window.plans().search();
    if (!wait_until([&] { return !window.plans().is_searching(); }))
      return complain("the search took too long", kFailed);
  }
  if (view == "two-plans") window.show_two_plans();
  if (view == "what-if") window.what_if().ask();
  if (!wait_until([&] { return window.view_is_ready(); })) return complain("the view was not ready in time", kFailed);
  if (view == "plans") {
    for (int row = 0; row < 2; ++row) window.plans().pin(row);
  }
  if (view == "cluster" && window.document().evaluation()->runs()) window.cluster().canvas().select(0);
  QElapsedTimer clock;
  clock.start();
  wait_until([&] { return clock.elapsed() > kSettleMs; });
  try {
    save_picture(window, out.toStdString());
  } catch (const base::Failure& failure) {
    return complain(QString::fromStdString(failure.error().message), static_cast<int>(failure.error().kind));
  }
  return kOk;
}

QSize size_of(const QString& text) {
  const QStringList parts = text.split('x');
  return parts.size() == 2 ? QSize(parts[0].toInt(), parts[1].toInt()) : QSize();
}

/// What the command line asks for.
struct Wish {
  QString file, view, out, theme;  ///< view: empty where a window is shown
  QSize size;
  bool has_platform = false, has_style = false;  ///< Qt is told
};

/// What Qt itself understands is its own: "-platform offscreen", "-style=fusion" (the documentation of QGuiApplication
/// and QApplication), with one dash or two.
QStringList without_options_of_qt(const QStringList& arguments) {
  static const QStringList kWithValue{
      "platform", "platformpluginpath", "platformtheme", "plugin",          "style",       "stylesheet",   "session",
      "display",  "geometry",           "icon",          "qwindowgeometry", "qwindowicon", "qwindowtitle", "fontengine",
      "title"};
  static const QStringList kFlags{"reverse", "nograb", "dograb", "sync", "widgetcount"};
  QStringList left;
  for (qsizetype i = 0; i < arguments.size(); ++i) {
    const QString& argument = arguments[i];
    const QString name = argument.startsWith("--") ? argument.mid(2) : argument.mid(1);
    const bool option = i > 0 && argument.startsWith('-');
    if (option && (kFlags.contains(name) || kWithValue.contains(name.section('=', 0, 0)))) {
      i += kWithValue.contains(name) ? 1 : 0;
    } else {
      left << argument;
    }
  }
  return left;
}

/// Whether one of Qt's own options is among them.
bool asks_qt(const QStringList& arguments, const QString& option) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const QString& argument) {
    return argument.startsWith('-') && argument.section('=', 0, 0).remove('-') == option;
  });
}

/// Needs no screen: help and complaints come without one. An exit code where there is nothing left to do.
std::variant<Wish, int> read_arguments(const QStringList& arguments) {
  QCommandLineParser parser;
  parser.setApplicationDescription("Plan a cluster layout by looking at it.");
  parser.addHelpOption();
  parser.addPositionalArgument("FILE", "A project, a plan file, a search result, a run record or a trace", "[FILE]");
  parser.addPositionalArgument("OUT", "With --screenshot: the picture, .png or .svg", "[OUT]");
  const QCommandLineOption screenshot("screenshot", "Draw a view into OUT and end: " + pictured_names().join(", "),
                                      "VIEW");
  const QCommandLineOption size("size", "Of the picture", "WxH", "1600x900");
  const QCommandLineOption theme("theme", "light or dark; else what the desktop says", "NAME");
  parser.addOptions({screenshot, size, theme});
  if (!parser.parse(without_options_of_qt(arguments))) return complain(parser.errorText(), kUsage);
  if (parser.isSet("help")) {
    std::fputs(parser.helpText().toUtf8().constData(), stdout);
    return kOk;
  }
  const QStringList files = parser.positionalArguments();
  Wish wish{files.value(0),
            parser.value(screenshot),
            files.value(1),
            parser.value(theme),
            size_of(parser.value(size)),
            asks_qt(arguments, "platform"),
            asks_qt(arguments, "style")};
  if (!wish.theme.isEmpty() && wish.theme != "light" && wish.theme != "dark") {
    return complain(QString("--theme: \"%1\" is neither light nor dark").arg(wish.theme), kUsage);
  }
  if (!parser.isSet(screenshot)) {
    if (files.size() > 1) return complain("one FILE at most", kUsage);
    return wish;
  }
  if (!pictured_names().contains(wish.view)) {
    return complain(QString("--screenshot: \"%1\" is none of %2").arg(wish.view, pictured_names().join(", ")), kUsage);
  }
  if (wish.size.width() < kLeastWidth || wish.size.height() < kLeastHeight || wish.size.width() > kMostPixels ||
      wish.size.height() > kMostPixels) {
    return complain("--size: give WIDTHxHEIGHT from 320x240 to 16384x16384", kUsage);
  }
  if (files.size() != 2) return complain("--screenshot needs FILE and OUT", kUsage);
  return wish;
}

/// Whether a window could be shown. Qt ends the program where it finds out itself.
bool has_screen() {
#ifdef Q_OS_LINUX
  for (const char* name : {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"}) {
    if (qEnvironmentVariableIsSet(name)) return true;
  }
  return false;
#else
  return true;
#endif
}

int run(const Wish& wish) {
  const bool pictured = !wish.view.isEmpty();
  const QTemporaryDir no_settings;  // a picture neither has the layout that somebody left nor leaves one
  if (pictured) QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, no_settings.path());
  const Theme usual = pictured ? Theme::kSystem : kept_theme();
  apply_theme(wish.theme == "dark" ? Theme::kDark : wish.theme == "light" ? Theme::kLight : usual);
  MainWindow window;
  if (!wish.file.isEmpty() && !window.open(wish.file)) return complain(window.banner().text(), kInput);
  if (pictured) return take_picture(window, wish.view, wish.out, wish.size);
  if (wish.file.isEmpty() && (!window.has_autosave() || !window.restore_autosave())) {
    window.begin_example(example_scenario());
    window.show_start_page();
  }
  const qsizetype last = MainWindow::view_names().indexOf(kept_view());
  if (wish.file.isEmpty() && last >= 0 && !window.shows_start_page()) {
    window.show_view(static_cast<MainWindow::View>(last));
  }
  window.show();
  return QApplication::exec();
}

}  // namespace
}  // namespace trivium::gui

int main(int argc, char** argv) {
  using namespace trivium::gui;
  std::variant<Wish, int> read = [&] {
    const QCoreApplication bare(argc, argv);
    return read_arguments(QCoreApplication::arguments());
  }();
  if (const int* code = std::get_if<int>(&read)) return *code;
  const Wish& wish = std::get<Wish>(read);
  if (!wish.has_platform && !has_screen()) {
    if (wish.view.isEmpty()) {
      return complain("no display: neither DISPLAY nor WAYLAND_DISPLAY is set; --screenshot draws without one",
                      kFailed);
    }
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  QApplication application(argc, argv);
  if (wish.has_style) keep_style_of_desktop();
  QApplication::setApplicationName("trivium-gui");
  QApplication::setDesktopFileName("trivium");
  QApplication::setWindowIcon(QIcon::fromTheme("trivium"));  // where it is installed
  return run(wish);
}
