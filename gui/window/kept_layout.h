// How the window was arranged, from one start to the next.
#pragma once

#include <QMainWindow>

#include "gui/look/theme.h"

namespace trivium::gui {

/// Place and size of the window, its docks, its splitters. Splitters are known by their names (QObject::objectName).
void keep_layout(const QMainWindow& window);
void restore_layout(QMainWindow& window);

/// The view that was open, by its name; empty where none is known.
void keep_view(const QString& name);
QString kept_view();

/// The theme that was chosen in the menu; what the desktop says where none was.
void keep_theme(Theme theme);
Theme kept_theme();

/// Files that were opened, the newest first.
QStringList kept_recent_files();
void keep_recent_files(const QStringList& files);

}  // namespace trivium::gui
