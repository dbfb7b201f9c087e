// Projects: a scenario with what the user saved along with it, in one file.
#pragma once

#include <string>
#include <vector>

#include "gui/model/scenario.h"
#include "gui/model/view_state.h"

namespace trivium::gui {

struct Project {
  Scenario scenario;
  std::vector<program::Plan> pinned;  ///< plans kept to compare with
  std::string corpus;                 ///< text that runs train on; empty: none chosen
  std::string record;                 ///< run record that is compared with the prediction; empty: none
  ViewState views = {};               ///< how they stood when it was saved
};

/// Schema `trivium.project/1`: "plan" is a whole `trivium.plan/1`, "fixed" names of fields, "ranks",
/// "ignore_memory", "pinned" an array of plans, "corpus", "record", and "views".
std::string project_text(const Project& project);

/// A project, a plan file or a search result, recognised by its schema. Errors: Failure(kInput) with file and pointer.
Project read_project(const std::string& path);

/// Where a project at `path` keeps the record of a run that has no place of its own: "gpt.json" at "gpt.run.json".
std::string record_beside(const std::string& path);
/// Copies a run record there, whole or not at all. Errors: Failure(kRuntime) where it cannot be written.
void keep_record(const std::string& record, const std::string& beside);

/// Where unsaved work is kept while the program runs.
std::string autosave_path();
/// Where it goes when another window leaves unsaved work, too.
std::string earlier_work_path();

}  // namespace trivium::gui
