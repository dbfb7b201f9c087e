#include "cli/render/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "cli/options/values.h"
#include "cli/render/manual.h"

namespace trivium::cli {
namespace {

constexpr std::size_t kColumns = 100, kWidestNames = 34;

/// Text from column `indent` on, broken between words; its first line continues the current one.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::istringstream words(text);
  std::string out, word;
  for (std::size_t column = indent; words >> word;) {
    const bool fits = column == indent || column + 1 + word.size() <= kColumns;
    if (!fits) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string row(const std::string& names, const std::string& text, std::size_t width) {
  const bool beside = names.size() + 2 <= width;
  const std::string gap = beside ? std::string(width - names.size(), ' ') : "\n" + std::string(width + 2, ' ');
  return "  " + names + gap + wrapped(text, width + 2) + "\n";
}

std::string left_column(const CLI::Option& option) {
  const std::string value = option.get_positional() ? "" : value_name(option);
  return names_of(option) + (value.empty() ? "" : " " + value);
}

bool is_usual(const CLI::Option& option, const Manual* manual) {
  if (manual == nullptr || manual->usual.empty() || option.get_positional()) return true;
  return std::any_of(manual->usual.begin(), manual->usual.end(), [&](const std::string& name) {
    const auto& names = option.get_lnames();
    return std::find(names.begin(), names.end(), name.substr(2)) != names.end();
  });
}

std::string options_text(const CLI::App& command, const Manual* manual, bool whole, int& left_out) {
  struct Shown {
    std::string group;
    std::vector<const CLI::Option*> options;
  };
  std::vector<Shown> shown;
  std::size_t width = 0;
  for (const auto& [group, options] : options_by_group(command)) {
    Shown some{group, {}};
    for (const CLI::Option* option : options) {
      if (!whole && !is_usual(*option, manual)) {
        ++left_out;
        continue;
      }
      some.options.push_back(option);
      width = std::max(width, std::min(left_column(*option).size() + 2, kWidestNames));
    }
    if (!some.options.empty()) shown.push_back(std::move(some));
  }
  std::string text;
  for (const Shown& group : shown) {
    text += group.group.empty() ? "\n" : "\n" + group.group + ":\n";
    for (const CLI::Option* option : group.options) {
      std::string description = description_of(*option);
      // On one screen a line has what it can hold, and --help-all the rest; what must be given is said whole.
      const std::size_t clause = description.find("; ");
      const bool cut = !whole && !option->get_required() && width + 2 + description.size() > kColumns;
      if (cut) description = description.substr(0, clause);
      text += row(left_column(*option), description, width);
    }
  }
  return text;
}

std::string commands_text(const CLI::App& app) {
  const auto commands = listed_commands(app);
  if (commands.empty()) return "";
  std::size_t width = 0;
  for (const CLI::App* command : commands) width = std::max(width, command->get_name().size() + 2);
  std::string text = "\nCommands:\n";
  for (const CLI::App* command : commands) text += row(command->get_name(), command->get_description(), width);
  return text;
}

std::string examples_text(const Manual* manual) {
  if (manual == nullptr || manual->examples.empty()) return "";
  std::string text = "\nExamples:\n";
  for (const Example& example : manual->examples) text += "  " + example.command + "\n      " + example.does + "\n";
  return text;
}

std::string whole_program(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : listed_commands(app)) {
    text += "\n" + std::string(kColumns, '-') + "\n" + help_text(*command, true);
  }
  return text;
}

class Help final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    return help_text(*app, mode != CLI::AppFormatMode::Normal);
  }
};

}  // namespace

std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> options_by_group(const CLI::App& command) {
  std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> groups{{"", {}}};
  for (const CLI::Option* option : command.get_options()) {
    const bool of_help = option == command.get_help_ptr() || option == command.get_help_all_ptr();
    if (of_help || option->get_group().empty()) continue;
    const std::string name = option->get_positional() ? "" : option->get_group();
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(option);
  }
  if (groups.front().second.empty()) groups.erase(groups.begin());
  return groups;
}

std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name();
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  return names;
}

std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (value_name(option) == "NAME") {
    if (const auto values = values_of(option); !values.empty()) text += fmt::format("; {}", fmt::join(values, ", "));
  }
  if (option.get_required() && !option.get_positional()) text += " (required)";
  if (!option.get_default_str().empty()) text += fmt::format(" [{}]", option.get_default_str());
  return text;
}

std::string command_line_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string before = command_line_of(*command.get_parent());
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

std::vector<const CLI::App*> listed_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string usage_of(const CLI::App& command) {
  const std::string name = command_line_of(command);
  std::string usage = name.empty() ? "trivium" : "trivium " + name;
  if (!listed_commands(command).empty()) return usage + " COMMAND [OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string word = option->get_name() + (option->get_expected_max() > 1 ? "..." : "");
    usage += option->get_required() ? " " + word : " [" + word + "]";
  }
  return usage + " [OPTIONS]";
}

std::string help_text(const CLI::App& command, bool whole) {
  const std::string name = command_line_of(command);
  const Manual* manual = find_manual(name);
  const std::string said = name.empty() ? "trivium" : "trivium " + name;
  int left_out = 0;
  std::string text = command.get_description() + "\n\nUsage: " + usage_of(command) + "\n";
  text += commands_text(command);
  text += options_text(command, manual, whole, left_out);
  text += examples_text(manual);
  const std::string more = left_out > 0 ? fmt::format("\n{} more options: {} --help-all\n", left_out, said) : "";
  if (name.empty()) return text + (whole ? whole_program(command) : "\nOptions of a command: trivium COMMAND --help\n");
  return text + more;
}

void settle_help(CLI::App& app) {
  app.formatter(std::make_shared<Help>());
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) settle_help(*command);
}

}  // namespace trivium::cli
