// A kind of node of the user's own, from the nearest known one.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <map>

#include "gui/look/marked.h"
#include "gui/model/own_node.h"

namespace trivium::gui {

/// Every change is read at once: what cannot be stands below the fields and marks its own. Accepted, the node is kept
/// as a profile of the user's.
class NodeDialog : public QDialog {
 public:
  NodeDialog(const QString& base, QWidget* parent);

  QLineEdit& name() { return *name_; }
  QComboBox& base() { return *base_; }
  QLineEdit& field(const QString& pointer) { return *fields_.at(pointer); }
  bool is_marked(const QString& pointer) const { return fields_.at(pointer)->is_wrong(); }
  QPlainTextEdit& pasted() { return *pasted_; }
  QLabel& said() { return *said_; }
  QPushButton& keep() { return *keep_; }
  const hardware::Node& node() const { return made_.node; }

  void accept() override;

 private:
  class QWidget* make_form();
  void begin_with(const QString& base);
  void read_again();
  void complain(const std::string& why);

  QLineEdit* name_;
  QComboBox* base_;
  std::map<QString, Marked<QLineEdit>*> fields_;
  QPlainTextEdit* pasted_;
  QLabel* said_;
  QPushButton* keep_;
  MadeNode made_;
};

}  // namespace trivium::gui
