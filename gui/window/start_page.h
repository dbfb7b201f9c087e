// Where one begins: what there was, examples, one's own cluster, the files of other trainers.
#pragma once

#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QWidget>
#include <functional>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// Says what was chosen and does nothing itself. Lives on the GUI thread.
class StartPage : public QWidget {
 public:
  explicit StartPage(QWidget* parent = nullptr);

  QPushButton& example(int number) { return *examples_.at(static_cast<std::size_t>(number)); }
  QComboBox& model() { return *model_; }
  QComboBox& kind() { return *kind_; }
  QSpinBox& nodes() { return *nodes_; }
  QLineEdit& batch() { return *batch_; }
  QPushButton& plan_own() { return *plan_own_; }
  QLabel& wrong() { return *wrong_; }
  QListWidget& recent() { return *recent_; }
  QPushButton& earlier() { return *earlier_; }

  /// All of it, as it lies in the window.
  const QWidget& page() const { return *page_; }

  void set_recent(const QStringList& files);
  /// Kinds of node that were made since, too.
  void list_kinds();
  void set_earlier(bool there_is);

  std::function<void(const Scenario&, const QString& words)> on_example;
  std::function<void(const Scenario&)> on_own;  ///< begin it and search
  std::function<void(const QString& path)> on_open;
  std::function<void()> on_browse, on_import, on_earlier;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  class QLayout* make_examples();
  QLabel* heading(const QString& words);
  void place();
  void set_letters(double grown);
  QLayout* make_own();
  QLayout* make_files();
  void plan_own_cluster();

  QWidget* page_;
  QBoxLayout *jobs_, *columns_;  // one's own and the examples; those and the files
  std::vector<QLabel*> headings_;
  std::vector<QPushButton*> examples_;
  QComboBox *model_, *kind_;
  QSpinBox* nodes_;
  QLineEdit* batch_;
  QPushButton* plan_own_;
  QLabel* wrong_;
  QListWidget* recent_;
  QPushButton* earlier_;
};

}  // namespace trivium::gui
