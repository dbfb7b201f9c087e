// A user's launch file, changed as little as another plan needs.
#pragma once

#include <string>
#include <vector>

#include "planner/launch/launch.h"
#include "planner/launch/patch/options.h"

namespace trivium::planner::launch {

/// `text` reads as the other plan where `by_hand` and `differs` are empty.
struct Patch {
  std::string text;                          ///< the whole file
  std::vector<patch::OptionChange> changes;  ///< that the plan needs, those by hand too
  std::vector<patch::OptionChange> by_hand;  ///< that no line of the file expresses
  std::vector<std::string> differs;          ///< fields of the plan that the changed file, read again, has otherwise
};

/// The file of `request` for `best` in place of the plan that it reads as, `today`. Each change is tried in the text,
/// in the order of patch/rewrites.h, and the file read again as bash would run it: only texts in which nothing else
/// changes are taken. At the end the whole file is imported, and its plan compared with `best`. Errors: those of
/// import_plan and export_plan.
Patch patch_launch(const ImportRequest& request, Trainer trainer, const program::Job& today, const program::Job& best,
                   const hardware::Cluster& cluster);

/// What a file with these settings has to change from one plan to another, whether it can be patched or not. Errors:
/// likewise.
std::vector<patch::OptionChange> changes_between(const patch::FileSettings& own, const ImportRequest& request,
                                                 Trainer trainer, const program::Job& before, const program::Job& after,
                                                 const hardware::Cluster& cluster,
                                                 const std::vector<std::string>& unsettled = {});

}  // namespace trivium::planner::launch
