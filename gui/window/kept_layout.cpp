#include "gui/window/kept_layout.h"

#include <QSettings>
#include <QSplitter>

namespace trivium::gui {
namespace {

constexpr int kLayoutVersion = 2;

QSettings settings() { return QSettings("trivium", "trivium-gui"); }

}  // namespace

void keep_layout(const QMainWindow& window) {
  QSettings kept = settings();
  kept.setValue("geometry", window.saveGeometry());
  kept.setValue("state", window.saveState(kLayoutVersion));
  QVariantList splitters;
  for (const QSplitter* splitter : window.findChildren<QSplitter*>()) splitters << splitter->saveState();
  kept.setValue(QString("splitters/%1").arg(kLayoutVersion), splitters);
}

void restore_layout(QMainWindow& window) {
  const QSettings kept = settings();
  window.restoreGeometry(kept.value("geometry").toByteArray());
  window.restoreState(kept.value("state").toByteArray(), kLayoutVersion);
  const QVariantList splitters = kept.value(QString("splitters/%1").arg(kLayoutVersion)).toList();
  const QList<QSplitter*> here = window.findChildren<QSplitter*>();
  if (splitters.size() != here.size()) return;
  for (qsizetype i = 0; i < here.size(); ++i) here[i]->restoreState(splitters[i].toByteArray());
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
