// trivium schema: the JSON Schemas of what the program reads and writes: the files of schemas/, with plans and
// trainings as the tables of their fields have them.
#include "program/plan/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_folder.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "cli/options/command.h"
#include "cli/render/render.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names() { return base::names_in(base::shipped_data("schemas")); }

/// "plan", "trivium.plan/1" and "plan/1" are one.
std::string bare(std::string name) {
  constexpr std::string_view kFamily = "trivium.";
  if (name.starts_with(kFamily)) name = name.substr(kFamily.size());
  return name.substr(0, name.find('/'));
}

void list() {
  Table table({"<name", "<is"});
  for (const std::string& name : names()) {
    const fs::path file = base::shipped_data("schemas") / (name + ".json");
    table.add({name, base::read_json_file(file).value("description", std::string())});
  }
  print(table.text());
}

void show(const std::string& wanted) {
  const std::vector<std::string> known = names();
  const std::string name = bare(wanted);
  if (!std::binary_search(known.begin(), known.end(), name)) {
    const std::string near = base::nearest(name, known);
    throw base::Failure(base::ErrorKind::kInput, fmt::format("unknown schema {}; {}", base::quote(wanted),
                                                             near.empty() ? "`trivium schema` lists them"
                                                                          : fmt::format("did you mean \"{}\"?", near)));
  }
  const fs::path file = base::shipped_data("schemas") / (name + ".json");
  auto schema = nlohmann::ordered_json::parse(base::read_file(file), nullptr, false);
  if (schema.is_discarded()) throw base::Failure(base::ErrorKind::kInput, file.string() + ": not valid JSON");
  if (schema.contains("$defs")) {  // fields are said in one place, the tables
    auto& parts = schema["$defs"];
    if (parts.contains("plan")) parts["plan"] = program::plan_schema();
    if (parts.contains("training")) parts["training"] = program::training_schema();
    if (parts.contains("stack")) parts["stack"] = program::stack_schema();
  }
  print(schema.dump(2) + "\n");
}

}  // namespace

void add_schema(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("schema", "List the forms of JSON files, or print the JSON Schema of one");
  command->add_option("NAME", *name, "As in the member \"schema\": plan, or trivium.plan/1");
  command->callback([name, &exit_code] {
    name->empty() ? list() : show(*name);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
