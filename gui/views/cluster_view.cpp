#include "gui/views/cluster_view.h"

#include <QGroupBox>
#include <QHeaderView>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/readable.h"
#include "base/units.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/cluster_totals.h"
#include "gui/model/display_name.h"
#include "gui/model/traffic.h"
#include "gui/views/node_dialog.h"
#include "hardware_profiles/load.h"

namespace trivium::gui {
namespace {

constexpr int kPanelWidth = 330;
constexpr int kMostNodes = 100'000;

QLabel* wrapped(QWidget* parent, const QString& name) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setAccessibleName(name);
  return label;
}

}  // namespace

ClusterView::ClusterView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      canvas_(new ClusterCanvas),
      legend_(new ClusterLegend),
      colour_(new QComboBox) {
  setFocusProxy(canvas_);
  selection_ = wrapped(this, "Selected rank");
  message_ = wrapped(this, "What went wrong");
  totals_ = wrapped(this, "What the cluster has");
  cost_ = wrapped(this, "What the move of a stage costs");
  cost_->hide();
  auto* left = new QVBoxLayout;
  left->addLayout(make_top());
  left->addWidget(canvas_, 1);
  left->addWidget(cost_);
  auto* all = new QHBoxLayout(this);
  all->addLayout(left, 1);
  all->addWidget(make_panel());
  canvas_->on_select = [this](std::optional<int> rank) { show_selection(rank); };
  canvas_->on_move = [this](int stage, int node) { move_stage(stage, node); };
  connect(&document_, &Document::scenario_changed, this, [this] {
    message_->setText({});  // clear() would have all laid out anew
    moved_.reset();
    cost_->hide();
    show_scenario();
  });
  connect(&document_, &Document::evaluated, this, [this] {
    show_cost();
    canvas_->set_evaluation(document_.evaluation());
    legend_->show_canvas(*canvas_, static_cast<DeviceColour>(colour_->currentIndex()));
    show_selection(canvas_->selected());
  });
  show_selection(std::nullopt);
}

QHBoxLayout* ClusterView::make_top() {
  colour_->setAccessibleName("Colour of devices");
  colour_->addItems({"pipeline stage", "tensor rank", "data replica", "context rank", "expert rank", "memory used",
                     "utilisation", "traffic"});
  connect(colour_, &QComboBox::currentIndexChanged, this, [this](int index) {
    canvas_->set_colour(static_cast<DeviceColour>(index));
    show_scenario();
  });
  auto* fit = new QPushButton("Fit (F)");
  connect(fit, &QPushButton::clicked, canvas_, [this] { canvas_->fit(); });
  auto* by = new QLabel("Colour by");
  by->setBuddy(colour_);
  auto* top = new QHBoxLayout;
  top->addWidget(by);
  top->addWidget(colour_);
  top->addWidget(legend_, 1);
  top->addWidget(fit);
  return top;
}

// What is selected, what can be edited, and what all of it comes to.
QWidget* ClusterView::make_panel() {
  auto* chosen = new QGroupBox("Selected rank");
  (new QVBoxLayout(chosen))->addWidget(selection_);
  auto* together = new QGroupBox("The whole cluster");
  (new QVBoxLayout(together))->addWidget(totals_);
  auto* panel = new QWidget;
  auto* column = new QVBoxLayout(panel);
  column->addWidget(chosen);
  column->addWidget(make_nodes());
  column->addWidget(together);
  column->addStretch();
  auto* scroll = new QScrollArea;
  scroll->setWidget(panel);
  scroll->setWidgetResizable(true);
  scroll->setFixedWidth(kPanelWidth);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  panel->setMaximumWidth(kPanelWidth - scroll->verticalScrollBar()->sizeHint().width());
  scroll->setFrameShape(QFrame::NoFrame);
  return scroll;
}

QWidget* ClusterView::make_nodes() {
  set_up_groups();
  auto* duplicate = new QPushButton("Duplicate");
  connect(duplicate, &QPushButton::clicked, this,
          [this] { edit([&](Scenario s) { return duplicate_group(std::move(s), group()); }, "duplicate nodes"); });
  auto* remove = new QPushButton("Remove");
  connect(remove, &QPushButton::clicked, this,
          [this] { edit([&](Scenario s) { return set_count(std::move(s), group(), 0); }, "remove nodes"); });
  auto* group_row = new QHBoxLayout;
  group_row->addWidget(duplicate);
  group_row->addWidget(remove);
  group_row->addStretch();
  auto* nodes = new QGroupBox("Nodes");
  auto* column = new QVBoxLayout(nodes);
  column->addWidget(groups_);
  column->addLayout(group_row);
  column->addLayout(make_kinds());
  column->addWidget(new_kind_);
  column->addLayout(make_constants());
  column->addWidget(message_);
  return nodes;
}

void ClusterView::set_up_groups() {
  groups_ = new QTableWidget(0, 2);
  groups_->setAccessibleName("Node groups");
  groups_->setHorizontalHeaderLabels({"Kind of node", "Nodes"});
  groups_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  groups_->horizontalHeader()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  groups_->verticalHeader()->hide();
  groups_->setSelectionBehavior(QAbstractItemView::SelectRows);
  groups_->setSelectionMode(QAbstractItemView::SingleSelection);
  groups_->setMinimumHeight(70);
  groups_->setMaximumHeight(120);
  groups_->setMinimumWidth(100);
  connect(groups_, &QTableWidget::cellChanged, this, [this](int row, int column) {
    if (showing_ || column != 1) return;
    bool is_number = false;
    const int wanted = groups_->item(row, 1)->text().toInt(&is_number);
    if (!is_number || wanted < 1) {
      message_->setText("A group has a whole number of nodes, 1 or more.");
      show_groups();
      return;
    }
    edit([&](Scenario s) { return set_count(std::move(s), row, wanted); }, QString("%1 nodes").arg(wanted));
  });
  connect(groups_, &QTableWidget::currentCellChanged, this, [this] {
    if (!showing_) show_groups();
  });
}

// Which kind of node to add and how many, and a kind of one's own.
QHBoxLayout* ClusterView::make_kinds() {
  profile_ = new QComboBox;
  profile_->setAccessibleName("Kind of node to add");
  for (const auto& names : {hardware::user_profiles(), hardware::shipped_profiles()}) {
    for (const std::string& name : names) profile_->addItem(text(name));
  }
  profile_->setCurrentText("dgx-a100-80gb");
  profile_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  profile_->setMinimumContentsLength(8);
  new_kind_ = new QPushButton("New kind of node …");
  new_kind_->setToolTip("Your own hardware, from the nearest that is known: devices, rates, links, memory, price");
  connect(new_kind_, &QPushButton::clicked, this, [this] { ask_new_kind(); });
  count_ = new QSpinBox;
  count_->setAccessibleName("How many nodes to add");
  count_->setRange(1, kMostNodes);
  count_->setMaximumWidth(70);
  auto* add = new QPushButton("Add");
  add->setMaximumWidth(56);
  connect(add, &QPushButton::clicked, this, [this] {
    edit([&](Scenario s) { return add_nodes(std::move(s), profile_->currentText().toStdString(), count_->value()); },
         QString("add %1 nodes").arg(count_->value()));
  });
  auto* row = new QHBoxLayout;
  row->addWidget(profile_, 1);
  row->addWidget(count_);
  row->addWidget(add);
  return row;
}

QFormLayout* ClusterView::make_constants() {
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  for (int c = 0; c < kNodeConstants; ++c) {
    const auto constant = static_cast<NodeConstant>(c);
    auto* field = constants_[static_cast<std::size_t>(c)] = new Marked<QLineEdit>;
    field->setAccessibleName(words_of(constant));
    field->setMinimumWidth(60);
    form->addRow(words_of(constant), field);
    connect(field, &QLineEdit::textEdited, this, [this, constant, field](const QString& typed) {
      const QString wrong =
          what_is_wrong([&](Scenario s) { return set_constant(std::move(s), group(), constant, typed.toStdString()); });
      field->set_wrong(!wrong.isEmpty());
      complain(wrong);
    });
    connect(field, &QLineEdit::editingFinished, this, [this, constant, field] {
      const hardware::Cluster& cluster = document_.scenario().cluster;
      if (showing_ || shown_text(cluster.groups.at(static_cast<std::size_t>(group())).node, constant) ==
                          field->text().toStdString()) {
        return;
      }
      edit([&](Scenario s) { return set_constant(std::move(s), group(), constant, field->text().toStdString()); },
           QString("%1 %2").arg(words_of(constant), field->text()));
    });
  }
  return form;
}

void ClusterView::ask_new_kind() {
  const auto& groups = document_.scenario().cluster.groups;
  const QString now = text(groups.at(static_cast<std::size_t>(group())).node.name);
  auto* dialog = new NodeDialog(now, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    const QString name = text(dialog->node().name);
    if (profile_->findText(name) < 0) profile_->insertItem(0, name);
    profile_->setCurrentText(name);
    edit([&](Scenario s) { return set_kind(std::move(s), group(), name.toStdString()); }, "nodes of kind " + name);
  });
  dialog->open();
}

int ClusterView::group() const { return std::max(0, groups_->currentRow()); }

void ClusterView::edit(const std::function<Scenario(Scenario)>& change, const QString& words) {
  try {
    document_.edit(change(document_.scenario()), words);
  } catch (const base::Failure& failure) {
    complain(text(failure.error().message));
  }
}

QString ClusterView::what_is_wrong(const std::function<Scenario(Scenario)>& change) const {
  try {
    change(document_.scenario());
    return {};
  } catch (const base::Failure& failure) {
    return text(failure.error().message);
  }
}

void ClusterView::complain(const QString& why) {
  message_->setText(why.isEmpty()
                        ? QString()
                        : QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), why.toHtmlEscaped()));
}

void ClusterView::move_stage(int stage, int node) {
  const Move move{QString("Stage %1 to node %2").arg(stage).arg(node),
                  document_.evaluation() ? document_.evaluation()->figures.iteration_s : 0};
  cost_->show();
  try {
    Scenario moved = trivium::gui::move_stage(document_.scenario(), stage, node);
    if (program::to_json(moved.file) == program::to_json(document_.scenario().file)) {
      cost_->setText(move.words + ": both nodes are alike, an iteration takes as long.");
      return;
    }
    document_.edit(std::move(moved), move.words.toLower());
    moved_ = move;
    cost_->setText(move.words + " …");
    cost_->show();
  } catch (const base::Failure& failure) {
    cost_->setText(text(failure.error().message));
  }
}

void ClusterView::show_cost() {
  const auto& evaluation = document_.evaluation();
  if (!moved_) return;
  if (!evaluation->runs()) return cost_->setText(moved_->words + ": cannot run, " + text(evaluation->refusal));
  const double now_s = evaluation->figures.iteration_s;
  QString words = QString("%1: an iteration takes %2").arg(moved_->words, text(seconds_words(now_s)));
  if (moved_->before_s > 0) {
    const double change = now_s / moved_->before_s - 1;
    words += QString(", %1%2 % against %3 before")
                 .arg(change < 0 ? "−" : "+")
                 .arg(std::abs(100 * change), 0, 'f', 1)
                 .arg(text(seconds_words(moved_->before_s)));
  }
  if (!evaluation->fits()) words += "; it does not fit: " + text(evaluation->overflow);
  cost_->setText(words + ". Undo takes it back.");
}

void ClusterView::show_scenario() {
  canvas_->set_cluster(document_.scenario().cluster);
  show_groups();
  show_totals();
  const auto colour = static_cast<DeviceColour>(colour_->currentIndex());
  legend_->show_canvas(*canvas_, colour);
  const bool experts = document_.scenario().file.job.model.experts.has_value();
  auto* choices = qobject_cast<QStandardItemModel*>(colour_->model());
  choices->item(static_cast<int>(DeviceColour::kExpert))->setEnabled(experts);  // a dense model has none
  if (!experts && colour == DeviceColour::kExpert) colour_->setCurrentIndex(0);
}

void ClusterView::show_totals() {
  QString rows;
  for (const auto& [name, value] : cluster_totals(document_.scenario().cluster)) {
    rows += QString("<tr><td>%1</td><td align='right'>&nbsp;&nbsp;%2</td></tr>")
                .arg(text(name).toHtmlEscaped(), text(value).toHtmlEscaped());
  }
  totals_->setText("<table width='100%'>" + rows + "</table>");
}

void ClusterView::show_groups() {
  showing_ = true;
  const auto& shown = document_.scenario().cluster.groups;
  const int row = std::clamp(groups_->currentRow(), 0, static_cast<int>(shown.size()) - 1);
  groups_->setRowCount(static_cast<int>(shown.size()));
  for (int g = 0; g < static_cast<int>(shown.size()); ++g) {
    auto* kind = new QTableWidgetItem(text(shown[static_cast<std::size_t>(g)].node.name));
    kind->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable);
    kind->setToolTip(kind->text());
    groups_->setItem(g, 0, kind);
    groups_->setItem(g, 1, new QTableWidgetItem(QString::number(shown[static_cast<std::size_t>(g)].count)));
  }
  groups_->setCurrentCell(row, 0);
  show_constants(shown[static_cast<std::size_t>(row)].node);
  showing_ = false;
}

void ClusterView::show_constants(const hardware::Node& node) {
  for (int c = 0; c < kNodeConstants; ++c) {
    Marked<QLineEdit>& field = *constants_[static_cast<std::size_t>(c)];
    const std::string shown = shown_text(node, static_cast<NodeConstant>(c));
    const std::string exact = text_of(node, static_cast<NodeConstant>(c));
    field.set_wrong(false);
    if (field.text() != text(shown) || field.isUndoAvailable())
      field.setText(text(shown));  // nothing is left of typing
    field.setCursorPosition(0);
    field.setToolTip((shown == with_micro_sign(exact) ? QString() : QString("Measured: %1. ").arg(text(exact))) +
                     "With its unit: 80 GiB, 200 Gb/s, 5 µs");
  }
}

void ClusterView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_selection(canvas_->selected());  // rings are in the colour of text
}

void ClusterView::show_selection(std::optional<int> rank) {
  const auto& evaluation = document_.evaluation();
  if (!rank || !evaluation || !evaluation->runs() || *rank >= evaluation->program->mesh.size()) {
    selection_->setText(
        "Click a device to see its rank, its groups and what it exchanges with them. Drag a device to "
        "move its stage to another node.");
    return;
  }
  const program::Mesh& mesh = evaluation->program->mesh;
  QString words = canvas_->tip_of(canvas_->device_of(*rank)).toHtmlEscaped().replace('\n', "<br>");
  const auto sample = [&](program::Group group) {  // of its ring, where it has one
    const auto lit = std::ranges::find(lit_groups(), group, &LitGroup::group);
    return lit == lit_groups().end() ? QString() : ring_sample(*lit, palette()) + " ";
  };
  std::set<program::Group> told;
  for (const Exchange& exchange : traffic(*evaluation->program, evaluation->program->role_index(*rank))) {
    told.insert(exchange.group);
    const std::vector<int> members = mesh.members(exchange.group, *rank);
    const std::string name = display_name(std::string(name_of(exchange.group)));
    words += QString("<br>%1<b>%2</b> (%3 ranks): sends %4 in %5 %6")
                 .arg(sample(exchange.group), text(name))
                 .arg(text(base::integer(static_cast<double>(members.size()))))
                 .arg(text(base::size(std::llround(exchange.sent_bytes))))
                 .arg(text(base::integer(static_cast<double>(exchange.operations))))
                 .arg(exchange.group == program::Group::kPipeline ? "transfer" : "collective") +
             (exchange.operations == 1 ? "" : "s");
  }
  for (const LitGroup& lit : lit_groups()) {
    if (mesh.group_size(lit.group) < 2 || told.contains(lit.group)) continue;
    words += "<br>" + sample(lit.group) + QString("<b>%1</b>").arg(lit.words);
  }
  selection_->setText(words);
}

}  // namespace trivium::gui
