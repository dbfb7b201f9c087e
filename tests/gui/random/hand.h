// A hand that does what a person could do next, by chance.
#pragma once

#include <QTemporaryDir>
#include <random>
#include <string>

#include "gui/window/main_window.h"

namespace trivium::gui {

/// Acts on one window through its widgets: keys, clicks, drags, typing, files, children, second windows. The same seed
/// gives the same wishes; what comes of them depends on how far the work on other threads is.
class Hand {
 public:
  Hand(MainWindow& window, unsigned seed);
  ~Hand();
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;

  /// One action; returns its name. Lets the window answer before it returns.
  std::string act();
  /// Puts down whatever is under way and begins anew with a small job: memory can be compared between two rests.
  void rest();

 private:
  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
  int up_to(int most) { return static_cast<int>(pick(static_cast<std::size_t>(most) + 1)); }
  QPoint somewhere(const QWidget& widget);
  void drag(QWidget& widget, QPoint from, QPoint to);
  void press_button(QWidget& in, const QString& text);
  void type(QLineEdit& edit, const QString& text);

  void turn_a_plan_control();
  void type_a_list();
  void undo();
  void redo();
  void change_view();
  void search();
  void ask_what_if();
  void cancel();
  void pin();
  void use();
  void sort_and_filter();
  void press_keys();
  void click();
  void drag_in_cluster();
  void colour();
  void move_stage();
  void resize();
  void choose_cluster();
  void edit_nodes();
  void type_a_job();
  void choose_memory_bars();
  void drag_in_timeline();
  void turn_wheel();
  void search_timeline();
  void look_back();
  void look_below();
  void set_two_plans_apart();
  void look_at_links();
  void describe_own_nodes();
  void begin_on_start_page();
  void explain();
  void compare();
  void write_files();
  void open_broken_file();
  void run();
  void change_theme();
  void second_window();
  void crash_and_restore();
  void begin_large();
  void wait();

  MainWindow& window_;
  std::mt19937 random_;
  QTemporaryDir folder_;
  QString home_;  // where the process was
};

}  // namespace trivium::gui
