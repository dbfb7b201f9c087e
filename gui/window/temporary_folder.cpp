#include "gui/window/temporary_folder.h"

#include <signal.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QDir>
#include <cerrno>

namespace trivium::gui {
namespace {

constexpr const char* kPrefix = "trivium-gui-";

bool is_alive(qint64 process) { return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH; }

}  // namespace

QString temporary_folder_template() {
  return QString("%1/%2%3-XXXXXX").arg(QDir::tempPath(), kPrefix).arg(QCoreApplication::applicationPid());
}

void clear_left_folders() {
  const QDir all(QDir::tempPath());
  for (const QFileInfo& folder :
       all.entryInfoList({QString(kPrefix) + "*"}, QDir::Dirs | QDir::NoDotAndDotDot | QDir::NoSymLinks)) {
    bool is_number = false;
    const qint64 process = folder.fileName().section('-', 2, 2).toLongLong(&is_number);
    if (!is_number || process <= 0 || folder.ownerId() != getuid() || is_alive(process)) continue;
    QDir(folder.filePath()).removeRecursively();
  }
}

}  // namespace trivium::gui
