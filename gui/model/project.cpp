#include "gui/model/project.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "hardware_profiles/load.h"
#include "planner/space/trainers.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr const char* kSchema = "trivium.project/1";
constexpr int kMostRanks = 1 << 20;

Project project_from_json(const nlohmann::json& json, const std::string& path) {
  const base::JsonReader reader(json, path);
  reader.allow_only(
      {"schema", "plan", "fixed", "ranks", "ignore_memory", "trainer", "pinned", "corpus", "record", "views"});
  Project project;
  Scenario& scenario = project.scenario;
  scenario.file = program::plan_file_from_json(reader.at("plan").json(), path + "#/plan");
  scenario.cluster = hardware::cluster_from_json(scenario.file.cluster, path + "#/plan/cluster");
  for (const base::JsonReader& name : reader.at("fixed").elements()) {
    scenario.fixed.insert(name.one_of(program::plan_fields()));
  }
  scenario.ranks = static_cast<int>(reader.at("ranks").integer(0, kMostRanks));
  scenario.ignore_memory = reader.at("ignore_memory").boolean();
  if (const auto trainer = reader.find("trainer")) {
    std::vector<std::string> known;
    for (const planner::TrainerSpace& space : planner::trainer_spaces()) known.emplace_back(space.trainer);
    scenario.trainer = trainer->one_of(known);
  }
  for (const base::JsonReader& plan : reader.at("pinned").elements()) {
    project.pinned.push_back(program::plan_from_json(plan));
  }
  project.corpus = reader.at("corpus").text();
  project.record = reader.at("record").text();
  if (const auto views = reader.find("views")) project.views = view_state_from_json(*views);
  return project;
}

}  // namespace

std::string project_text(const Project& project) {
  nlohmann::json json{{"schema", kSchema},
                      {"plan", program::to_json(project.scenario.file)},
                      {"fixed", project.scenario.fixed},
                      {"ranks", project.scenario.ranks},
                      {"ignore_memory", project.scenario.ignore_memory},
                      {"pinned", nlohmann::json::array()},
                      {"corpus", project.corpus},
                      {"record", project.record}};
  if (!project.scenario.trainer.empty()) json["trainer"] = project.scenario.trainer;
  if (!project.views.view.empty()) json["views"] = to_json(project.views);
  for (const program::Plan& plan : project.pinned) json["pinned"].push_back(program::to_json(plan));
  return json.dump(2) + "\n";
}

Project read_project(const std::string& path) {
  const nlohmann::json json = base::read_json_file(path);
  if (json.is_object() && json.value("schema", nlohmann::json()) == kSchema) return project_from_json(json, path);
  Project project;
  project.scenario.file = program::plan_file_from_json(json, path);
  project.scenario.cluster = hardware::cluster_from_json(project.scenario.file.cluster, path + "#/cluster");
  return project;
}

std::string record_beside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".run.json").string();
}

void keep_record(const std::string& record, const std::string& beside) {
  const std::string unfinished = beside + ".part";
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(beside).parent_path(), error);
  std::filesystem::copy_file(record, unfinished, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::rename(unfinished, beside, error);
  if (error) throw base::Failure(base::ErrorKind::kRuntime, beside + ": cannot be written: " + error.message());
}

std::string autosave_path() { return (base::user_data() / "autosave.json").string(); }

std::string earlier_work_path() { return (base::user_data() / "autosave-earlier.json").string(); }

}  // namespace trivium::gui
