// trivium completion: scripts that complete commands and options in a shell.
#include <fmt/format.h>

#include <memory>

#include "cli/options/command.h"
#include "cli/render/render.h"

namespace trivium::cli {
namespace {

/// Long option names of a command, and short ones, separated by blanks.
std::string options_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += " --" + name;
    for (const std::string& name : option->get_snames()) words += " -" + name;
  }
  return words.empty() ? words : words.substr(1);
}

std::string commands_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    words += (words.empty() ? "" : " ") + command->get_name();
  return words;
}

/// Options by command; whatever is no option is a file, which the shell completes itself.
std::string bash_script(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), options_of(*command));
  }
  return fmt::format(R"(_trivium() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{} {}" -- "$word")
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}}
complete -o default -F _trivium trivium
)",
                     commands_of(app), options_of(app), cases);
}

std::string zsh_script(const CLI::App& app) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(app);
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script: source <(trivium completion bash)");
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([shell, &app, &exit_code] {
    print(*shell == "bash" ? bash_script(app) : zsh_script(app));
    exit_code = 0;
  });
}

}  // namespace trivium::cli
