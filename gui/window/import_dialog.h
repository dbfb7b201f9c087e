// What a launch file of another trainer does not say: the cluster, and sometimes the model.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include "gui/model/launch_file.h"

namespace trivium::gui {

/// Reads the file again with every change of a field; what is wrong stands below the fields, and a plan that cannot be
/// read cannot be taken.
class ImportDialog : public QDialog {
 public:
  ImportDialog(const QString& path, const QString& cluster, QWidget* parent);

  QLineEdit& cluster() { return *cluster_; }
  QComboBox& model() { return *model_; }
  QLabel& said() { return *said_; }
  QPushButton& take() { return *take_; }
  const std::optional<LaunchFile>& read() const { return read_; }

 private:
  void read_again();

  QString path_;
  QLineEdit *cluster_, *sequence_;
  QComboBox* model_;
  QLabel* said_;
  QPushButton* take_;
  std::optional<LaunchFile> read_;
};

}  // namespace trivium::gui
