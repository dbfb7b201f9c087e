// Colours: safe for colour-blind readers, never without a label, on light and dark backgrounds.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>

#include "program/ir/program.h"
#include "report/palette.h"
#include "simulator/iteration/breakdown.h"

namespace trivium::gui {

enum class Theme { kSystem, kLight, kDark };

/// Style and palette of the whole program. kSystem: the palette that the desktop gives. Call on the GUI thread.
void apply_theme(Theme theme);

/// Before the first theme: leaves the style as Qt was told, instead of this program's.
void keep_style_of_desktop();

/// Whether text is lighter than its ground.
bool is_dark(const QPalette& palette);

/// Colour of the i-th thing of many, i >= 0: the eight of Okabe and Ito (2008), then lighter and darker ones.
QColor series_colour(int i);
/// From dark blue (0) over grey to yellow (1): the cividis scale (Nuñez, Anderton, Renslow 2018).
QColor scale_colour(double share);
/// What is wrong: more memory than there is.
QColor alarm_colour();

QColor kind_colour(report::Kind kind);
QColor part_colour(simulator::Part part);
QString part_words(simulator::Part part);                             ///< "exposed tensor"
QString part_words(simulator::Part part, const program::Mesh* mesh);  ///< the same of a plan, where there is one

/// Links of the cluster.
QColor link_colour(const QPalette& palette);

/// Lines and labels that should not stand out.
QColor quiet_colour(const QPalette& palette);

}  // namespace trivium::gui
