// trivium man: manual pages, for those who build packages.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "cli/options/command.h"
#include "cli/render/help.h"
#include "cli/render/man_page.h"
#include "cli/render/render.h"

namespace trivium::cli {
namespace {

/// Of today, or the one that reproducible builds ask for.
std::string date() {
  const char* wanted = std::getenv("SOURCE_DATE_EPOCH");
  std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (wanted != nullptr) now = static_cast<std::time_t>(std::strtoll(wanted, nullptr, 10));
  std::tm parts{};
  if (::gmtime_r(&now, &parts) == nullptr) return "1970-01-01";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

void write_pages(const CLI::App& command, const std::filesystem::path& folder) {
  base::write_file_atomically(folder / (man_name(command) + ".1"), man_page(command, date()));
  for (const CLI::App* part : listed_commands(command)) write_pages(*part, folder);
}

const CLI::App& command_named(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    for (const CLI::App* command : listed_commands(*found)) {
      if (command->get_name() == word) next = command;
    }
    if (next == nullptr) {
      throw base::Failure(base::ErrorKind::kUsage, fmt::format("unknown command {}", base::quote(word)));
    }
    found = next;
  }
  return *found;
}

}  // namespace

void add_man(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("man", "Print the manual page of a command, or write them all")->group("");
  command->add_option("COMMAND", *words, "The command; none: of the program");
  command->add_option("--folder", *folder, "Write all pages there")->type_name("FOLDER");
  command->callback([words, folder, &app, &exit_code] {
    if (folder->empty()) {
      print(man_page(command_named(app, *words), date()));
    } else {
      write_pages(app, *folder);
    }
    exit_code = 0;
  });
}

}  // namespace trivium::cli
