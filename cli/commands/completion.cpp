// trivium completion: scripts that complete commands, options and values in a shell.
#include <memory>

#include "cli/options/command.h"
#include "cli/options/values.h"
#include "cli/render/completions.h"
#include "cli/render/render.h"

namespace trivium::cli {

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script: source <(trivium completion bash)");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(one_of({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &exit_code] {
    print(*shell == "bash" ? bash_completion(app) : *shell == "zsh" ? zsh_completion(app) : fish_completion(app));
    exit_code = 0;
  });
}

}  // namespace trivium::cli
