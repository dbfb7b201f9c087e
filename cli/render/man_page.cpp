#include "cli/render/man_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/options/values.h"
#include "cli/render/help.h"
#include "cli/render/manual.h"
#include "cli/render/version.h"

namespace trivium::cli {
namespace {

/// Text as roff takes it: hyphens that can be copied, no line that begins as a request.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string option_entry(const CLI::Option& option) {
  const std::string value = option.get_positional() ? "" : value_name(option);
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", plain(names_of(option)),
                     value.empty() ? "" : " \\fI" + plain(value) + "\\fR", plain(description_of(option)));
}

std::string options_section(const CLI::App& command) {
  std::string text;
  for (const auto& [group, options] : options_by_group(command)) {
    if (!group.empty() && group != "Options") text += ".SS " + plain(group) + "\n";
    for (const CLI::Option* option : options) text += option_entry(*option);
  }
  text += ".SS Help\n.TP\n\\fB\\-h, \\-\\-help\\fR\nThe options that most people need.\n";
  text += ".TP\n\\fB\\-\\-help\\-all\\fR\nAll of them.\n";
  return ".SH OPTIONS\n" + text;
}

std::string commands_section(const CLI::App& app) {
  const auto commands = listed_commands(app);
  if (commands.empty()) return "";
  std::string text = ".SH COMMANDS\n";
  for (const CLI::App* command : commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", plain(man_name(*command)), plain(command->get_description()));
  }
  return text;
}

std::string examples_section(const Manual* manual) {
  if (manual == nullptr || manual->examples.empty()) return "";
  std::string text = ".SH EXAMPLES\n";
  for (const Example& example : manual->examples) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(example.command), plain(example.does));
  }
  return text;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\ndone\n.TP\n.B 1\nfailed while running\n.TP\n.B 2\nwrong usage\n.TP\n.B 3\nwrong input file or name\n"
    ".TP\n.B 4\nthe plan cannot run, or no plan fits\n.TP\n.B 5\nhardware, driver or library missing\n"
    ".TP\n.B 130\ninterrupted; what was reached is kept\n"
    ".PP\nResults are on standard output, progress and errors on standard error.\n";

constexpr const char* kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n.B TRIVIUM_DATA_DIR\nFolder of shipped data, in place of the one next to the program.\n"
    ".TP\n.B XDG_DATA_HOME\nThe user\\(aqs own profiles lie in its folder trivium.\n"
    ".TP\n.B TRIVIUM_NO_PROGRESS\nWhere it is set, nothing is said of progress.\n"
    ".TP\n.B NO_COLOR\nWhere it is set, nothing is coloured.\n";

std::string see_also(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  std::string text = ".SH SEE ALSO\n.BR " + plain(man_name(*command.get_parent())) + " (1)";
  for (const CLI::App* other : listed_commands(*command.get_parent())) {
    if (other != &command) text += ",\n.BR " + plain(man_name(*other)) + " (1)";
  }
  return text + "\n";
}

}  // namespace

std::string man_name(const CLI::App& command) {
  std::string name = "trivium " + command_line_of(command);
  if (name.ends_with(' ')) name.pop_back();
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const CLI::App& command, const std::string& date) {
  const Manual* manual = find_manual(command_line_of(command));
  const std::string name = man_name(command);
  const bool is_program = command.get_parent() == nullptr;
  std::string text = fmt::format(".TH {} 1 \"{}\" \"trivium {}\" \"Trivium\"\n", plain(upper(name)), date, version());
  text += fmt::format(".SH NAME\n{} \\- {}\n", plain(name), plain(command.get_description()));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n", plain(usage_of(command)));
  if (manual != nullptr) text += ".SH DESCRIPTION\n" + plain(manual->about) + "\n";
  text += commands_section(command) + options_section(command) + examples_section(manual) + kExitStatus;
  return text + (is_program ? kEnvironment : "") + see_also(command);
}

}  // namespace trivium::cli
