// Texts of the library as Qt has them.
#pragma once

#include <QString>
#include <string_view>

namespace trivium::gui {

/// UTF-8 as a QString.
inline QString text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

}  // namespace trivium::gui
