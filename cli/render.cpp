#include "cli/render.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "edge/error.h"

namespace trivium::cli {
namespace {

constexpr auto kFirstLine = std::chrono::milliseconds(1500), kNextLine = std::chrono::milliseconds(10'000);

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string(term) == "dumb";
}

bool has_colour() { return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && !is_dumb(); }

std::string padded(const std::string& cell, std::size_t width, bool left) {
  return left ? fmt::format("{:<{}}", cell, width) : fmt::format("{:>{}}", cell, width);
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    left_.push_back(title.starts_with("<"));
    if (left_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles_) widths.push_back(title.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) text += fmt::format("  {}", padded(cells[i], widths[i], left_[i]));
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  std::string text = heading(line(titles_)) + "\n";
  for (const auto& row : rows_) text += line(row) + "\n";
  return text;
}

std::string heading(const std::string& text) { return has_colour() ? fmt::format("\x1b[1m{}\x1b[0m", text) : text; }

void print_json(const nlohmann::json& json) { print(json.dump(2) + "\n"); }

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw edge::Failure(edge::ErrorKind::kRuntime, "cannot write to standard output");
}

ProgressLine::ProgressLine()
    : shown_on_terminal_(isatty(STDERR_FILENO) == 1 && !is_dumb()), next_line_(Clock::now() + kFirstLine) {}

ProgressLine::~ProgressLine() {
  if (shown_on_terminal_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(const std::string& text) {
  if (!shown_on_terminal_) {
    if (Clock::now() < next_line_) return;
    next_line_ = Clock::now() + kNextLine;
    fmt::print(stderr, "{}\n", text);
    return;
  }
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
}

}  // namespace trivium::cli
