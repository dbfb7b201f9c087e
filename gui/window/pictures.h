// Widgets as files.
#pragma once

#include <QImage>
#include <QStringList>
#include <QWidget>
#include <string>

namespace trivium::gui {

/// Writes what a widget shows, below lines that say what it is (then with what its scroll areas hide, without bars):
/// PNG, or SVG where the file ends in .svg. Errors: Failure(kRuntime) where the file cannot be written, Failure(kUsage)
/// for another ending.
void save_picture(QWidget& widget, const std::string& path, const QStringList& title = {});

/// The same as an image.
QImage picture_of(QWidget& widget, const QStringList& title = {});

/// The widget as PNG bytes.
QByteArray png_of(QWidget& widget);

}  // namespace trivium::gui
