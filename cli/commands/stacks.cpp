// trivium stacks: the software that executes plans, or one stack with the source of every flag.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options/command.h"
#include "cli/render/render.h"
#include "program/plan/stack_file.h"
#include "program/plan/stack_flags.h"

namespace trivium::cli {
namespace {

struct StacksOptions {
  std::string name;
  bool json = false;
};

void list_stacks(bool json) {
  Table table({"<stack", "<base", "<description"});
  auto entries = nlohmann::ordered_json::array();
  for (const program::StackFile& file : program::stack_files()) {
    const std::string base = file.bases.empty() ? "" : file.bases.front();
    entries.push_back({{"name", file.traits.name}, {"base", base}, {"description", file.description}});
    table.add({file.traits.name, base.empty() ? "-" : base, file.description});
  }
  if (json) {
    print_json({{"schema", "trivium.stacks/1"}, {"stacks", std::move(entries)}});
  } else {
    print(table.text());
  }
}

/// The stack's file with what its bases say filled in.
nlohmann::ordered_json written_out(const program::StackFile& file) {
  nlohmann::ordered_json json = {{"schema", program::kStackSchema},
                                 {"name", file.traits.name},
                                 {"description", file.description},
                                 {"family", file.traits.family}};
  auto sources = nlohmann::ordered_json::object();
  for (const program::StackFlag& flag : program::stack_flags()) {
    const auto source = file.sources.find(flag.name);
    if (source == file.sources.end()) continue;
    json[flag.name] = flag.json(file.traits);
    sources[std::string("/") + flag.name] = source->second;
  }
  json["sources"] = std::move(sources);
  return json;
}

void show_stack(const program::StackFile& file) {
  print(fmt::format("{}: {}\n", heading(file.traits.name), file.description));
  if (!file.bases.empty()) print(fmt::format("base {}\n", fmt::join(file.bases, ", over ")));
  Table table({"<flag", "<value", "<source"});
  for (const program::StackFlag& flag : program::stack_flags()) {
    const auto source = file.sources.find(flag.name);
    if (source != file.sources.end()) table.add({flag.name, flag.text(file.traits), source->second});
  }
  print("\n" + table.text());
  print("\nOther flags have their defaults, which docs/reference/stacks.md lists.\n");
}

const program::StackFile& stack_named(const std::string& name) {
  if (const program::StackFile* file = program::find_stack_file(name)) return *file;
  std::vector<std::string> known;
  for (const program::StackFile& file : program::stack_files()) known.push_back(file.traits.name);
  const std::string near = base::nearest(name, known);
  throw base::Failure(base::ErrorKind::kInput, fmt::format("unknown stack {}; {}", base::quote(name),
                                                           near.empty() ? "`trivium stacks` lists them"
                                                                        : fmt::format("did you mean \"{}\"?", near)));
}

}  // namespace

void add_stacks(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<StacksOptions>();
  CLI::App* command = app.add_subcommand("stacks", "List the trainers' software, or show one with its sources");
  command->add_option("NAME", options->name, "Name of a stack");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    if (options->name.empty()) {
      list_stacks(options->json);
    } else if (options->json) {
      print_json(written_out(stack_named(options->name)));
    } else {
      show_stack(stack_named(options->name));
    }
    exit_code = 0;
  });
}

}  // namespace trivium::cli
