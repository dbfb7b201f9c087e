#include "cli/render/completions.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "cli/options/values.h"
#include "cli/render/help.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/plan/stack.h"

namespace trivium::cli {
namespace {

using Words = std::vector<std::string>;

/// What an option may be given: names of shipped things, or of its few values; empty: a file or a number.
Words words_for(const CLI::Option& option) {
  const std::string name = option.get_name();
  if (name == "--model") return models::shipped_models();
  if (name == "--cluster") {
    Words clusters = hardware::shipped_profiles();
    clusters.emplace_back("this-machine");
    return clusters;
  }
  return values_of(option);
}

bool takes_value(const CLI::Option& option) { return option.get_type_size() != 0; }

bool takes_file(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with("FILE") || type == "DIR" || type == "FOLDER" || type == "PATH" || type == "PLAN" ||
         option.get_name() == "--model" || option.get_name() == "--cluster";
}

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

void each_option(const CLI::App& command, const std::function<void(const CLI::Option&)>& visit) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) visit(*option);
  }
}

Words option_words(const CLI::App& command) {
  Words words;
  each_option(command, [&](const CLI::Option& option) {
    for (const std::string& name : option.get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option.get_snames()) words.push_back("-" + name);
  });
  return words;
}

Words command_words(const CLI::App& app) {
  Words words;
  for (const CLI::App* command : listed_commands(app)) words.push_back(command->get_name());
  return words;
}

Words stack_names() {
  Words names;
  for (const program::StackTraits& stack : program::all_stacks()) names.push_back(stack.name);
  return names;
}

/// Values that a positional argument takes: the shell of `completion`, the name of `models`.
Words positional_words(const CLI::App& command) {
  const std::string name = command.get_name();
  if (name == "models") return models::shipped_models();
  if (name == "profiles") return hardware::shipped_profiles();
  if (name == "stacks") return stack_names();
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && !values_of(*option).empty()) return values_of(*option);
  }
  return command_words(command);
}

/// Text between single quotes, which hold in all three shells.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string first_clause(const std::string& description) { return description.substr(0, description.find(';')); }

/// The same inside brackets of _arguments of zsh.
std::string bracketed(const std::string& description) {
  std::string out;
  for (const char c : first_clause(description)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_options(const CLI::App& command) {
  std::string lines;
  each_option(command, [&](const CLI::Option& option) {
    std::string value;
    if (takes_value(option)) {
      const Words words = words_for(option);
      const std::string action = !words.empty() ? "(" + joined(words) + ")" : takes_file(option) ? "_files" : " ";
      value = ":" + bracketed(value_name(option)) + ":" + action;
    }
    for (const std::string& name : option.get_lnames()) {
      lines += "        " + quoted("*--" + name + "[" + bracketed(option.get_description()) + "]" + value) + " \\\n";
    }
    for (const std::string& name : option.get_snames()) {
      lines += "        " + quoted("*-" + name + "[" + bracketed(option.get_description()) + "]" + value) + " \\\n";
    }
  });
  return lines;
}

std::string fish_options(const CLI::App& command, const std::string& condition) {
  std::string lines;
  each_option(command, [&](const CLI::Option& option) {
    std::string line = "complete -c trivium -n " + quoted(condition);
    for (const std::string& name : option.get_lnames()) line += " -l " + name;
    for (const std::string& name : option.get_snames()) line += " -s " + name;
    const Words words = words_for(option);
    if (takes_value(option)) line += takes_file(option) ? " -r" : " -x";
    if (!words.empty()) line += " -a " + quoted(joined(words));
    lines += line + " -d " + quoted(first_clause(option.get_description())) + "\n";
  });
  return lines;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string values, options;
  for (const CLI::App* command : listed_commands(app)) {
    each_option(*command, [&](const CLI::Option& option) {
      const Words words = takes_value(option) ? words_for(option) : Words();
      if (words.empty()) return;
      values +=
          fmt::format("    '{} {}') words={} ;;\n", command->get_name(), option.get_name(), quoted(joined(words)));
    });
    Words all = option_words(*command);
    for (const std::string& word : positional_words(*command)) all.push_back(word);
    options += fmt::format("    {}) words={} ;;\n", command->get_name(), quoted(joined(all)));
  }
  return fmt::format(R"(_trivium() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{} {}" -- "$word")
    return
  fi
  case "${{COMP_WORDS[1]}} $last" in
{}  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  # Options are offered only for a word that begins with -; files are left to `complete -o default`.
  case "$word" in
    -*) ;;
    *) mapfile -t COMPREPLY < <(printf '%s\n' "${{COMPREPLY[@]}}" | grep -v '^-' | grep .) ;;
  esac
}}
complete -o default -F _trivium trivium
)",
                     joined(command_words(app)), joined(option_words(app)), values, options);
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : listed_commands(app)) {
    commands += "    " + quoted(command->get_name() + ":" + bracketed(command->get_description())) + "\n";
    const Words words = positional_words(*command);
    const std::string rest = words.empty() ? "*:file:_files" : "*:name:(" + joined(words) + ")";
    cases += fmt::format("    {})\n      _arguments \\\n{}        {} ;;\n", command->get_name(), zsh_options(*command),
                         quoted(rest));
  }
  return fmt::format(R"(#compdef trivium
_trivium() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [ "$funcstack[1]" = _trivium ]; then
  _trivium "$@"
else
  compdef _trivium trivium
fi
)",
                     commands, cases);
}

std::string fish_completion(const CLI::App& app) {
  std::string text = "complete -c trivium -e\n";
  for (const CLI::App* command : listed_commands(app)) {
    text += fmt::format("complete -c trivium -n __fish_use_subcommand -f -a {} -d {}\n", command->get_name(),
                        quoted(command->get_description()));
  }
  text += fish_options(app, "__fish_use_subcommand");
  for (const CLI::App* command : listed_commands(app)) {
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    if (const Words words = positional_words(*command); !words.empty()) {
      text += fmt::format("complete -c trivium -n {} -a {}\n", quoted(condition), quoted(joined(words)));
    }
    text += fish_options(*command, condition);
  }
  return text;
}

}  // namespace trivium::cli
