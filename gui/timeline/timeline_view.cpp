#include "gui/timeline/timeline_view.h"

#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenu>
#include <QShortcut>
#include <QSplitter>
#include <QStyle>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>

#include "base/error.h"
#include "base/readable.h"
#include "gui/timeline/spans/program_spans.h"
#include "gui/timeline/spans/search.h"
#include "gui/timeline/spans/span_table.h"
#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/spans/trace_file.h"

namespace trivium::gui {
namespace {

constexpr int kSearchDelay = 150;  // ms after the last letter

QString number(std::size_t n) { return QString::fromStdString(base::integer(static_cast<double>(n))); }
QString text_of(const std::string& text) { return QString::fromStdString(text); }

QCheckBox* box(const QString& text, const QString& tip) {
  auto* made = new QCheckBox(text);
  made->setChecked(true);
  made->setToolTip(tip);
  return made;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent)
    : QWidget(parent),
      canvas_(new TimelineCanvas),
      panel_(new BreakdownPanel),
      minimap_(new Minimap(*canvas_)),
      halves_(new FittedSplitter("timeline canvas above ops")),
      below_(new QTabWidget),
      ops_(new OpTable),
      flame_(new FlameView),
      search_(new QLineEdit),
      row_filter_(new QLineEdit),
      found_(new QLabel),
      note_(new QLabel),
      list_(new QToolButton),
      hits_(new HitList(this)),
      back_(new QToolButton),
      forward_(new QToolButton),
      layout_(lay_out, [this](Answer answer) { take(std::move(answer)); }) {
  setAccessibleName(tr("Timeline"));
  setFocusProxy(canvas_);
  canvas_->set_hint(hint());
  auto* split = new QSplitter;
  split->setObjectName("timeline canvas and breakdown");
  auto* upper = new QWidget;
  auto* upper_column = new QVBoxLayout(upper);
  upper_column->setContentsMargins(0, 0, 0, 0);
  upper_column->setSpacing(2);
  upper_column->addWidget(minimap_);
  upper_column->addWidget(canvas_, 1);
  halves_->addWidget(upper);
  below_->setDocumentMode(true);
  below_->setAccessibleName(tr("Ops of the selection"));
  below_->addTab(ops_, tr("Table of ops"));
  below_->addTab(flame_, tr("Flame view"));
  connect(below_, &QTabWidget::currentChanged, this, &TimelineView::update_panel);
  halves_->addWidget(below_);
  set_up_halves();
  split->addWidget(halves_);
  split->addWidget(panel_);
  split->setStretchFactor(0, 1);
  split->setSizes({1200, 330});
  panel_->setMinimumWidth(300);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(6, 6, 6, 6);
  column->addLayout(make_bar());
  column->addWidget(split, 1);

  flame_->on_choose = [this](std::uint32_t like) {
    if (lists(like)) canvas_->select(SpanId{listed_timeline_, like}, true);
  };
  connect(canvas_, &TimelineCanvas::save_wanted, this, &TimelineView::save_wanted);
  ops_->on_next = [this](std::uint32_t like) { go_to_next(like); };
  connect(canvas_, &TimelineCanvas::selection_changed, this, &TimelineView::update_panel);
  auto* find = new QShortcut(QKeySequence("/"), this);
  find->setContext(Qt::WidgetWithChildrenShortcut);
  connect(find, &QShortcut::activated, search_, qOverload<>(&QWidget::setFocus));
}

QHBoxLayout* TimelineView::make_bar() {
  set_up_search();
  note_->setMinimumWidth(70);
  note_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  auto* path = box(tr("Critical path"), tr("A line above the spans that set the length"));
  connect(path, &QCheckBox::toggled, canvas_, &TimelineCanvas::set_path_shown);
  auto* arrows = box(tr("Transfers"), tr("Arrows from sends to receives"));
  connect(arrows, &QCheckBox::toggled, canvas_, &TimelineCanvas::set_arrows_shown);
  connect(
      canvas_, &TimelineCanvas::arrows_changed, this,
      [this, arrows] { arrows->setText(canvas_->arrows_hidden() ? tr("Transfers (zoom in)") : tr("Transfers")); },
      Qt::QueuedConnection);  // it is told in the middle of a picture
  auto* ops = box(tr("Ops"), tr("A table and a flame view of the selection, or of everything"));
  connect(ops, &QCheckBox::toggled, this, [this](bool shown) {
    below_->setVisible(shown);
    listed_stretch_.reset();
    update_panel();
    halves_->fit();
  });
  auto* rows = make_rows_button();
  set_up_history();
  auto* all = new QPushButton(tr("Fit"));
  all->setToolTip(tr("The selection, or everything (F)"));
  connect(all, &QPushButton::clicked, canvas_, &TimelineCanvas::fit);

  auto* bar = new QHBoxLayout;
  for (QWidget* widget :
       std::initializer_list<QWidget*>{search_, found_, list_, path, arrows, ops, rows, all, back_, forward_})
    bar->addWidget(widget);
  bar->addStretch(1);
  bar->addWidget(note_);
  return bar;
}

void TimelineView::set_up_search() {
  search_->setPlaceholderText(tr("Search: matmul mb3"));
  search_->setAccessibleName(tr("Search spans"));
  search_->setToolTip(
      tr("Every word must begin one of the name. / comes here, Enter goes to the next, Shift+Enter to the previous"));
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(180);
  found_->setMinimumWidth(90);
  list_->setText(tr("List"));
  list_->setToolTip(tr("What was found, by time"));
  list_->setEnabled(false);
  connect(list_, &QToolButton::clicked, this, &TimelineView::list_hits);
  hits_->on_choose = [this](SpanId id) { canvas_->select(id, true); };
  search_soon_.setSingleShot(true);
  search_soon_.setInterval(kSearchDelay);
  connect(&search_soon_, &QTimer::timeout, this, &TimelineView::search);
  connect(search_, &QLineEdit::textChanged, &search_soon_, qOverload<>(&QTimer::start));
  connect(search_, &QLineEdit::returnPressed, this,
          [this] { go_to_match((QGuiApplication::keyboardModifiers() & Qt::ShiftModifier) != 0 ? -1 : 1); });
}

QToolButton* TimelineView::make_rows_button() {
  auto* rows = new QToolButton;
  rows->setText(tr("Rows"));
  rows->setAccessibleName(tr("Fold rows"));
  rows->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(rows);
  menu->addAction(tr("Every lane"), this, [this] { fold(RowKind::kLane); });
  menu->addAction(tr("One row a rank"), this, [this] { fold(RowKind::kDevice); });
  menu->addAction(tr("One row a node"), this, [this] { fold(RowKind::kNode); });
  rows->setMenu(menu);
  menu->addSeparator();
  menu->addAction(tr("Only the selected"), this, [this] { show_only_selected(); });
  menu->addAction(tr("All rows again"), this, [this] {
    row_filter_->clear();
    canvas_->show_only(std::nullopt);
  });
  menu->addAction(tr("Unpin all"), canvas_, &TimelineCanvas::unpin_all);
  row_filter_->setPlaceholderText(tr("Only rows named: stage 2"));
  row_filter_->setAccessibleName(tr("Filter of rows"));
  row_filter_->setToolTip(tr("Every word must begin one of the row's name or of those above it"));
  row_filter_->setClearButtonEnabled(true);
  connect(row_filter_, &QLineEdit::textChanged, canvas_, &TimelineCanvas::filter_rows);
  auto* filter = new QWidgetAction(menu);
  filter->setDefaultWidget(row_filter_);
  menu->addAction(filter);
  menu->addSeparator();
  menu->addAction(tr("Save the selection as CSV …"), this, [this] { Q_EMIT save_wanted(); });
  return rows;
}

void TimelineView::set_up_history() {
  back_->setIcon(style()->standardIcon(QStyle::SP_ArrowBack));
  back_->setAccessibleName(tr("Back"));
  back_->setToolTip(tr("What was seen before (Backspace)"));
  connect(back_, &QToolButton::clicked, canvas_, &TimelineCanvas::back);
  forward_->setIcon(style()->standardIcon(QStyle::SP_ArrowForward));
  forward_->setAccessibleName(tr("Forward"));
  forward_->setToolTip(tr("And forth again (Shift+Backspace)"));
  connect(forward_, &QToolButton::clicked, canvas_, &TimelineCanvas::forward);
  const auto show_ways = [this] {
    back_->setEnabled(canvas_->can_go_back());
    forward_->setEnabled(canvas_->can_go_forward());
  };
  connect(canvas_, &TimelineCanvas::history_changed, this, show_ways);
  connect(canvas_, &TimelineCanvas::time_changed, this, show_ways);
  show_ways();
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && search_->hasFocus()) {
    search_->clear();
    canvas_->setFocus();
    return;
  }
  QWidget::keyPressEvent(event);
}

void TimelineView::set_timelines(std::vector<NamedTimeline> timelines, const QString& why_none) {
  canvas_->set_hint(why_none.isEmpty() ? hint() : why_none);
  post({std::move(timelines), {}});
}

void TimelineView::set_outdated() {
  layout_.cancel();
  busy_ = false;
  note_->setText(canvas_->timelines().empty() ? QString() : tr("Not of this plan, which is being simulated"));
}

QString TimelineView::hint() {
  return tr("Open a plan to see its timeline, or a trace that Chrome or Perfetto would show.");
}

void TimelineView::open_trace(const std::filesystem::path& path) {
  const QString name = text_of(path.filename().string());
  canvas_->set_hint(tr("Reading %1 …").arg(name));
  canvas_->set_timelines({}, {});
  search();
  post({{}, path});
  note_->setText(tr("Reading %1 …").arg(name));
}

void TimelineView::post(Request request) {
  busy_ = true;
  note_->setText(tr("Laying out…"));
  layout_.post(std::move(request));
}

namespace {

/// Of how many ranks a timeline is, where it is not of all.
QString words_of_ranks(const SpanStore& spans, int ranks) {
  const auto shown = std::ranges::count(spans.rows(), RowKind::kDevice, &Row::kind);
  if (shown >= ranks) return {};
  return QObject::tr("%1 spans of %2 of %3 ranks, the others do the same")
      .arg(number(spans.size()), number(static_cast<std::size_t>(shown)), number(static_cast<std::size_t>(ranks)));
}

}  // namespace

TimelineView::Answer TimelineView::lay_out(const Request& request, const std::stop_token& stop) {
  Answer answer;
  const auto add = [&](const QString& name, std::shared_ptr<const SpanStore> spans) {
    SceneTimeline timeline;
    timeline.path = std::make_shared<const CriticalPath>(critical_path(*spans, stop));
    if (spans->left_out() > 0) answer.note = tr("%1 overlapping spans are not shown").arg(number(spans->left_out()));
    timeline.spans = std::move(spans);
    answer.timelines.push_back(std::move(timeline));
    answer.names.push_back(name);
  };
  try {
    for (const NamedTimeline& timeline : request.timelines) {
      auto spans = timeline.spans;
      if (!spans) spans = spans_of(*timeline.program, *timeline.timeline, timeline.cluster.get(), stop);
      if (timeline.program && answer.note.isEmpty())
        answer.note = words_of_ranks(*spans, timeline.program->mesh.size());
      add(text_of(timeline.name), std::move(spans));
      answer.works.push_back(work_of(timeline));
    }
    if (!request.trace.empty()) {
      Trace trace = read_trace(request.trace, stop);
      add(text_of(request.trace.filename().string()), std::move(trace.spans));
      answer.works.emplace_back();
      answer.file = text_of(request.trace.filename().string()) + ": ";
      if (trace.unfinished > 0) answer.note = tr("%1 spans begin or end alone").arg(number(trace.unfinished));
    }
  } catch (const base::Failure& failure) {
    answer.error = text_of(failure.error().message);
  } catch (const std::bad_alloc&) {
    answer.error = tr("The timeline does not fit into this machine's memory");
  }
  return answer;
}

void TimelineView::take(Answer answer) {
  busy_ = false;
  note_->clear();
  if (!answer.error.isEmpty()) {
    note_->setText(tr("Could not be shown"));
    canvas_->set_hint(answer.error);
    Q_EMIT failed(answer.error);
    return;
  }
  std::size_t spans = 0;
  paths_.clear();
  for (const SceneTimeline& timeline : answer.timelines) {
    spans += timeline.spans->size();
    paths_.push_back(timeline.path);
  }
  names_ = answer.names;
  works_ = std::move(answer.works);
  if (!answer.timelines.empty())
    note_->setText(answer.file + (answer.note.isEmpty() ? tr("%1 spans").arg(number(spans)) : answer.note));
  canvas_->set_timelines(std::move(answer.timelines), std::move(answer.names));
  row_filter_->setText(QString::fromStdString(canvas_->layout_of_rows().filter()));  // other rows: none
  search();
  Q_EMIT shown();
}

std::size_t TimelineView::matches() const {
  std::size_t sum = 0;
  for (const auto& list : matches_) sum += list ? list->size() : 0;
  return sum;
}

void TimelineView::search() {
  search_soon_.stop();
  matches_.clear();
  hits_->close();
  hits_->model().clear();  // which holds on to timelines
  const std::string query = search_->text().toStdString();
  const bool asked = !search_->text().trimmed().isEmpty();
  for (const SceneTimeline& timeline : canvas_->timelines()) {
    matches_.push_back(asked ? std::make_shared<const std::vector<std::uint32_t>>(find_spans(*timeline.spans, query))
                             : nullptr);
  }
  canvas_->set_matches(matches_);
  list_->setEnabled(matches() > 0);
  found_->setText(!asked ? QString() : matches() == 0 ? tr("nothing found") : tr("%1 found").arg(number(matches())));
}

void TimelineView::list_hits() {
  hits_->model().set_hits(canvas_->timelines(), matches_);
  hits_->open_at(list_->mapToGlobal(QPoint(0, list_->height())), canvas_->begin_ps());
}

// Matches in order of time, over all timelines, from where the selection or the view stands.
void TimelineView::go_to_match(int direction) {
  if (search_soon_.isActive()) search();
  std::optional<SpanId> best, round;
  const auto start_of = [&](SpanId id) {
    const SpanStore& store = *canvas_->timelines()[static_cast<std::size_t>(id.timeline)].spans;
    return std::tuple(direction * store.start_of(id.span), direction * id.timeline,
                      direction * static_cast<std::int64_t>(id.span));
  };
  const auto selected = canvas_->selected();
  const auto here = selected ? start_of(*selected)
                             : std::tuple(direction * (direction > 0 ? canvas_->begin_ps() : canvas_->end_ps()),
                                          std::numeric_limits<int>::min(), std::numeric_limits<std::int64_t>::min());
  for (std::size_t t = 0; t < matches_.size(); ++t) {
    if (!matches_[t]) continue;
    for (const std::uint32_t span : *matches_[t]) {
      const SpanId id{static_cast<int>(t), span};
      const auto at = start_of(id);
      if (at > here && (!best || at < start_of(*best))) best = id;
      if (!round || at < start_of(*round)) round = id;  // from the other end again
    }
  }
  if (!best) best = round;
  if (!best) return;
  canvas_->select(best, true);
  std::size_t before = 0;
  for (std::size_t t = 0; t < matches_.size(); ++t) {
    if (!matches_[t]) continue;
    for (const std::uint32_t span : *matches_[t])
      before += start_of({static_cast<int>(t), span}) < start_of(*best) ? 1 : 0;
  }
  const std::size_t nth = direction > 0 ? before + 1 : matches() - before;
  found_->setText(tr("%1 of %2").arg(number(nth), number(matches())));
}

void TimelineView::fold(RowKind kind) {
  RowLayout& rows = canvas_->layout_of_rows();
  rows.set_all_folded(RowKind::kCluster, false);
  rows.set_all_folded(RowKind::kNode, kind == RowKind::kNode);
  rows.set_all_folded(RowKind::kDevice, kind != RowKind::kLane);
  canvas_->rows_changed();
}

void TimelineView::show_only_selected() {
  const auto& range = canvas_->range();
  if (range && range->row) return canvas_->show_only(range->row);
  if (const auto span = canvas_->selected()) {
    const SpanStore& store = *canvas_->timelines()[static_cast<std::size_t>(span->timeline)].spans;
    return canvas_->show_only(RowId{span->timeline, store.device_of(store.tracks()[store.track_of(span->span)].row)});
  }
  note_->setText(tr("Select a span or a stretch of a row first"));
}

QString TimelineView::describe_selected() const {
  const auto id = canvas_->selected();
  if (!id) return {};
  const SpanStore& store = *canvas_->timelines()[static_cast<std::size_t>(id->timeline)].spans;
  const std::uint32_t span = id->span;
  const std::int32_t row = store.tracks()[store.track_of(span)].row;
  const auto& path = paths_[static_cast<std::size_t>(id->timeline)];
  const bool critical = path && std::find(path->spans.begin(), path->spans.end(), span) != path->spans.end();
  const auto row_name = [&](std::int32_t r) { return text_of(store.rows()[static_cast<std::size_t>(r)].name); };
  const std::int64_t length = store.end_of(span) - store.start_of(span);
  const auto place = [&](std::int64_t ps) {
    return text_of(precise_time_text(ps - store.begin(), std::max<std::int64_t>(1, length)));
  };
  QString text =
      tr("<b>%1</b><br>%2<br>%3 · %4<br>lasts %5, from %6 to %7")
          .arg(text_of(store.name_of(span)).toHtmlEscaped(),
               text_of(store.categories()[static_cast<std::size_t>(store.category_of(span))].name).toHtmlEscaped(),
               row_name(store.device_of(row)).toHtmlEscaped(), row_name(row).toHtmlEscaped(),
               text_of(time_text(length)), place(store.start_of(span)), place(store.end_of(span)));
  if (critical) text += tr("<br>on the critical path");
  return text;
}

QString TimelineView::words_of_range(const SpanStore& store) const {
  const auto& range = canvas_->range();
  const QString length = text_of(time_text(range ? range->end_ps - range->begin_ps : store.end() - store.begin()));
  if (!range) return tr("All %1. Drag over a stretch to see where its time goes.").arg(length);
  if (range->row)
    return tr("%1 of %2").arg(length, text_of(store.rows()[static_cast<std::size_t>(range->row->row)].name));
  return range->rows.empty() ? tr("%1 of all rows").arg(length)
                             : tr("%1 of %2 rows").arg(length).arg(range->rows.size());
}

void TimelineView::update_panel() {
  const auto& timelines = canvas_->timelines();
  const auto& range = canvas_->range();
  const int t = range ? range->timeline() : 0;
  if (timelines.empty() || timelines[static_cast<std::size_t>(t)].spans->size() == 0) {
    panel_->clear();
    panel_->show_span({});
    ops_->clear();
    flame_->clear();
    listed_.reset();
    return;
  }
  const SpanStore& store = *timelines[static_cast<std::size_t>(t)].spans;
  Stretch stretch = canvas_->stretch(t);
  if (stretch.row) stretch.rows.push_back(*stretch.row);
  const Breakdown breakdown = stretch.rows.empty() ? break_down(store, stretch.begin_ps, stretch.end_ps)
                                                   : break_down(store, stretch.rows, stretch.begin_ps, stretch.end_ps);
  QString what = words_of_range(store);
  if (timelines.size() > 1) what = names_[static_cast<std::size_t>(t)] + ": " + what;
  panel_->show_breakdown(what, store, breakdown, paths_[static_cast<std::size_t>(t)].get());
  panel_->show_span(describe_selected());
  update_below(t, range ? what : timelines.size() > 1 ? names_[static_cast<std::size_t>(t)] : tr("everything"));
}

}  // namespace trivium::gui
