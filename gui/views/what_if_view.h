// What if: questions about other clusters, batches, sequences and limits, each answered by searches.
#pragma once

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableWidget>
#include <QWidget>

#include "gui/document.h"
#include "gui/look/command_field.h"
#include "gui/look/fitted_splitter.h"
#include "gui/model/what_if.h"
#include "gui/plot/line_chart.h"

namespace trivium::gui {

class WhatIfView : public QWidget {
 public:
  explicit WhatIfView(Document& document, QWidget* parent = nullptr);

  /// Starts the searches of the selected question; where it cannot be asked, the reason is shown next to it.
  void ask();
  /// Ends them with the rows so far.
  void cancel();
  bool is_asking() const { return asking_; }
  /// Makes the job, cluster and plan of a row the document's.
  void use(int row);

  const WhatIfAnswer& answer() const { return answer_; }
  QComboBox& question() { return *question_; }
  QLineEdit& value() { return *value_; }
  QPushButton& ask_button() { return *ask_; }
  QPushButton& use_button() { return *use_; }
  QLabel& refusal() { return *refusal_; }
  QLabel& sentence() { return *sentence_; }
  CommandField& command() { return *command_; }
  QTableWidget& table() { return *table_; }
  LineChart& chart() { return *chart_; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Asked {
    WhatIfRequest request;
    std::uint64_t number = 0;
  };
  QHBoxLayout* make_question();
  QHBoxLayout* make_answer();
  void set_up_table();
  WhatIfRequest request() const;
  Question chosen() const { return static_cast<Question>(question_->currentIndex()); }
  /// On unlike nodes some cannot be answered.
  void offer_questions();
  void show_question();  ///< another one: what it takes
  void show_request();   ///< whether it can be asked, and, where that is seen, as which command
  void show_answer(WhatIfAnswer answer);
  void show_words();  ///< first, where the answer is of another job than the document's, which
  void show_table();
  void show_chart();

  Document& document_;
  QComboBox* question_;
  QLineEdit* value_;
  QPushButton *ask_, *cancel_, *use_;
  QLabel *refusal_, *sentence_;
  CommandField* command_;
  QTableWidget* table_;
  FittedSplitter* halves_;
  LineChart* chart_;
  WhatIfAnswer answer_;
  bool asking_ = false;
  bool own_value_ = false;                   // the user's: it stays while the job changes
  std::uint64_t number_ = 0;                 // of the last question: what earlier ones say is not shown
  Background<Asked, WhatIfAnswer> thinker_;  // ends before what it shows
};

}  // namespace trivium::gui
