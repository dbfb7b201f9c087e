#include "gui/window/kept_layout.h"

#include <QSettings>
#include <QSplitter>

#include "gui/look/fitted_splitter.h"

namespace trivium::gui {
namespace {

constexpr int kLayoutVersion = 3;

QSettings settings() { return QSettings("trivium", "trivium-gui"); }

QString key_of(const QSplitter& splitter) {
  return QString("splitters/%1/%2").arg(kLayoutVersion).arg(splitter.objectName());
}

/// What its user did not choose is found anew by what there is to show.
bool fits_itself(const QSplitter& splitter) {
  const auto* fitted = dynamic_cast<const FittedSplitter*>(&splitter);
  return fitted != nullptr && !fitted->is_by_hand();
}

/// Those that have a name: others cannot be identified at the next start.
QList<QSplitter*> named_splitters(const QMainWindow& window) {
  QList<QSplitter*> named = window.findChildren<QSplitter*>();
  named.removeIf([](const QSplitter* splitter) { return splitter->objectName().isEmpty(); });
  return named;
}

}  // namespace

void keep_layout(const QMainWindow& window) {
  QSettings kept = settings();
  kept.setValue("geometry", window.saveGeometry());
  kept.setValue("state", window.saveState(kLayoutVersion));
  for (const QSplitter* splitter : named_splitters(window)) {
    if (!fits_itself(*splitter)) kept.setValue(key_of(*splitter), splitter->saveState());
  }
}

void restore_layout(QMainWindow& window) {
  const QSettings kept = settings();
  window.restoreGeometry(kept.value("geometry").toByteArray());
  window.restoreState(kept.value("state").toByteArray(), kLayoutVersion);
  for (QSplitter* splitter : named_splitters(window)) {
    const Qt::Orientation orientation = splitter->orientation();
    auto* fitted = dynamic_cast<FittedSplitter*>(splitter);
    if (splitter->restoreState(kept.value(key_of(*splitter)).toByteArray()) && fitted != nullptr) fitted->set_by_hand();
    splitter->setOrientation(orientation);  // which a state brings along, and no user changes
  }
}

void keep_view(const QString& name) { settings().setValue("view", name); }

QString kept_view() { return settings().value("view").toString(); }

void keep_theme(Theme theme) {
  settings().setValue("theme", theme == Theme::kDark ? "dark" : theme == Theme::kLight ? "light" : "system");
}

Theme kept_theme() {
  const QString name = settings().value("theme").toString();
  return name == "dark" ? Theme::kDark : name == "light" ? Theme::kLight : Theme::kSystem;
}

QStringList kept_recent_files() { return settings().value("recent").toStringList(); }

void keep_recent_files(const QStringList& files) { settings().setValue("recent", files); }

}  // namespace trivium::gui
