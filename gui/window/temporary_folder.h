// Folders for files that go when the program does, also where it was killed.
#pragma once

#include <QString>

namespace trivium::gui {

/// For QTemporaryDir: names the process, so that others know whose it is.
QString temporary_folder_template();

/// Removes those of this user whose process has ended.
void clear_left_folders();

}  // namespace trivium::gui
