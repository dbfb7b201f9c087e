// Widgets as files.
#pragma once

#include <QWidget>
#include <string>

namespace trivium::gui {

/// Writes what a widget shows: PNG, or SVG where the file ends in .svg. Errors: Failure(kRuntime) where the file cannot
/// be written, Failure(kUsage) for another ending.
void save_picture(QWidget& widget, const std::string& path);

/// The widget as PNG bytes.
QByteArray png_of(QWidget& widget);

}  // namespace trivium::gui
