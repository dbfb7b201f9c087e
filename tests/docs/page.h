// Command lines in the documentation: what a page shows as run, and what else it names.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::docs {

/// A line of a block "console" that begins with "$ ", with those that follow and begin with "> ", and what the page
/// shows of its output.
struct ShownCommand {
  int line = 0;  ///< of the page, from 1
  std::string command;
  std::vector<std::string> output;
};

std::vector<ShownCommand> shown_commands(const std::string& page);

/// A call of our own programs, "trivium plan --model ..." or "./dev test", in a block of commands or in running text.
struct NamedCommand {
  int line = 0;
  std::vector<std::string> words;  ///< without the program: "plan", "--model", ...
  bool script = false;             ///< ./dev instead of trivium
};

std::vector<NamedCommand> named_commands(const std::string& page);

/// Whether lines are what a page shows. There "…" stands for any characters of a line and, alone on a line, for any
/// number of lines.
bool shows(const std::vector<std::string>& shown, const std::vector<std::string>& lines);

/// A link of a page to another page of the tree or to a heading: "../index.md#a-heading", in running text or a table.
struct Link {
  int line = 0;        ///< of the page, from 1
  std::string target;  ///< a path relative to the page's folder; empty: the page itself
  std::string anchor;  ///< without "#"; empty: none
};

/// Links but those to other sites.
std::vector<Link> links(const std::string& page);

/// Anchors of a page's headings, as GitHub and MkDocs make them: lower case, spaces become "-", punctuation is dropped.
std::set<std::string> anchors(const std::string& page);

std::vector<std::string> lines_of(const std::string& text);

/// The README and every page below docs/, in order of their names.
std::vector<std::filesystem::path> pages(const std::filesystem::path& root);

}  // namespace trivium::docs
