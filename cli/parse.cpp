#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/tokens.h"
#include "cli/render/help.h"
#include "cli/render/output.h"
#include "cli/render/version.h"

namespace trivium::cli {
namespace {

int code_of(base::ErrorKind kind) { return static_cast<int>(kind); }

std::string without_long_words(const std::string& message);

int report(base::ErrorKind kind, const std::string& message) {
  base::say("error: {}\n", base::one_line(without_long_words(message)));
  return code_of(kind);
}

void add_commands(CLI::App& app, int& exit_code) {
  add_plan(app, exit_code);
  add_simulate(app, exit_code);
  add_explain(app, exit_code);
  add_compare(app, exit_code);
  add_scale(app, exit_code);
  add_program(app, exit_code);
  add_run(app, exit_code);
  add_replan(app, exit_code);
  add_report(app, exit_code);
  add_sample(app, exit_code);
  add_tokenize(app, exit_code);
  add_checkpoint(app, exit_code);
  add_export(app, exit_code);
  add_import(app, exit_code);
  add_capture(app, exit_code);
  add_improve(app, exit_code);
  add_trial(app, exit_code);
  add_validate(app, exit_code);
  add_calibrate(app, exit_code);
  add_profile(app, exit_code);
  add_models(app, exit_code);
  add_profiles(app, exit_code);
  add_stacks(app, exit_code);
  add_doctor(app, exit_code);
  add_schema(app, exit_code);
  add_completion(app, exit_code);
  add_man(app, exit_code);
}

const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : listed_commands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown(const std::string& what, const std::string& word, const std::vector<std::string>& known,
                    const std::string& help) {
  const std::string suggestion = base::nearest(word, known);
  return fmt::format(
      "unknown {} {}; {}", what, base::quote(word),
      suggestion.empty() ? fmt::format("`{}` lists them", help) : fmt::format("did you mean \"{}\"?", suggestion));
}

/// What went wrong where nobody foresaw it. Texts of libraries ("stoi", "map::at") tell a user nothing.
std::string in_our_words(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return "out of memory on this machine; try a smaller job";
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{}: {}", base::one_line(file->path1().string()), file->code().message());
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return fmt::format("the machine gives no more threads or memory ({}); close other programs or ask for --threads 1",
                       system->code().message());
  }
  if (dynamic_cast<const nlohmann::json::exception*>(&error) != nullptr) {
    return "a member of a file that was given has another type than its kind of file gives it";
  }
  if (dynamic_cast<const std::logic_error*>(&error) != nullptr) {
    return "a mistake of the program itself; please report the command and its files";
  }
  return error.what();
}

/// Words that nobody reads to their end are cut; file names have at most 255 bytes between their slashes.
std::string without_long_words(const std::string& message) {
  constexpr std::size_t kLongest = 300, kKept = 60;
  std::string shorter;
  for (std::size_t at = 0; at < message.size();) {
    const std::size_t end = std::min(message.find_first_of(" /", at + 1), message.size());
    std::string_view word = std::string_view(message).substr(at, end - at);
    const bool cut = word.size() > kLongest;
    if (cut) word = word.substr(0, kKept);
    while (cut && !word.empty() && (static_cast<unsigned char>(word.back()) & 0x80U) != 0) word.remove_suffix(1);
    shorter += word;
    if (cut) shorter += "…";
    at = end;
  }
  return shorter;
}

/// "nan" and "inf" pass every range check of the parser.
void check_numbers(const CLI::App& app) {
  for (const CLI::Option* option : innermost(app).get_options()) {
    if (!option->get_type_name().starts_with("FLOAT")) continue;
    for (const std::string& text : option->results()) {
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (end != text.c_str() && *end == '\0' && !std::isfinite(value)) {
        throw base::Failure(base::ErrorKind::kUsage,
                            fmt::format("{} {}: must be a finite number", option->get_name(), base::one_line(text)));
      }
    }
  }
}

void add_limits(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_subcommands(nullptr).empty()) {
      add_limits(*command);
      continue;
    }
    command
        ->add_option_function<std::string>(
            "--max-input",
            [](const std::string& text) {
              base::set_input_limit(static_cast<std::size_t>(parse_size("--max-input", text)));
            },
            "Memory that one input may take, as a file and unpacked; 1 GiB unless told")
        ->type_name("SIZE")
        ->group("Limits")
        ->trigger_on_parse();
  }
}

}  // namespace

std::vector<std::string> help_asked(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.size() == 2 && words.back() == "help" && !words.front().starts_with("-") &&
             !std::filesystem::exists("help")) {  // which would be a plan of that name
    words.back() = "--help";
  }
  return words;
}

std::vector<std::string> join_flag_values(std::vector<std::string> words) {
  std::vector<std::string> joined;
  for (std::string& word : words) {
    const bool follows_flag = !joined.empty() && is_flag_option(joined.back());
    if (follows_flag && (word == "true" || word == "false")) {
      joined.back() += "=" + word;
    } else {
      joined.push_back(std::move(word));
    }
  }
  return joined;
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const bool is_root = &command == &app;
  const std::string help = is_root ? "trivium --help" : fmt::format("trivium {} --help", command_line_of(command));
  if (const std::vector<std::string> extras = app.remaining(true); !extras.empty()) {
    const std::string word = extras.front().substr(0, extras.front().find('='));
    if (word.starts_with("-")) return unknown("option", word, option_names(command), help);
    if (!listed_commands(command).empty()) return unknown("command", word, subcommand_names(command), help);
    return fmt::format("unexpected argument {}; `{}` tells what the command takes", base::quote(word), help);
  }
  if (is_root && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return fmt::format("no command; `{}` lists them", help);
  }
  constexpr std::string_view kNotConverted = "Could not convert: ";  // "--rank = x"
  const std::string_view message = error.what();
  if (message.starts_with(kNotConverted)) {
    return fmt::format("{} is no number of the kind it takes; see `{}`", message.substr(kNotConverted.size()), help);
  }
  if (message.find(": unknown value ") != std::string_view::npos) return std::string(message);  // says what is known
  return fmt::format("{}; see `{}`", message, help);
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app("Plans, simulates and runs distributed GPT training.", "trivium");
  app.set_version_flag("--version", version_lines(), "Print version, commit, compiler and libraries");
  app.set_help_all_flag("--help-all", "Print all options of a command, or of all commands");
  app.require_subcommand(1);
  app.parse_complete_callback([&app] {  // before the command's own
    check_numbers(app);
    check_files(app);
  });
  int exit_code = 0;
  add_commands(app, exit_code);
  add_limits(app);
  settle_help(app);
  std::vector<std::string> words = join_flag_values(help_asked({argv + 1, argv + argc}));
  std::reverse(words.begin(), words.end());  // the parser takes them from the back
  try {
    app.parse(std::move(words));
    return exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help or version
    return report(base::ErrorKind::kUsage, complaint(app, error));
  } catch (const base::Failure& failure) {
    return report(failure.error().kind, failure.error().message);
  } catch (const std::exception& error) {
    return report(base::ErrorKind::kRuntime, in_our_words(error));
  }
}

}  // namespace trivium::cli
