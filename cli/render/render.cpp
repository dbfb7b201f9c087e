#include "cli/render/render.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/render/page.h"

namespace trivium::cli {
namespace {

constexpr auto kFirstLine = std::chrono::milliseconds(1500), kNextLine = std::chrono::milliseconds(10'000);

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string(term) == "dumb";
}

bool has_colour() { return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && !is_dumb(); }

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

/// Our own change of colour again, where it was escaped with all others.
void restore(std::string& text, const std::string& sequence) {
  const std::string escaped = base::printable(sequence);
  for (std::size_t at = 0; (at = text.find(escaped, at)) != std::string::npos; at += sequence.size()) {
    text.replace(at, escaped.size(), sequence);
  }
}

/// Writes to stdout and returns the number of the error, 0 where there was none.
int write_out(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  const int error = errno;
  std::clearerr(stdout);
  return error == 0 ? EIO : error;
}

std::string message_of(int error) { return std::generic_category().message(error); }

/// What of the text may reach a terminal.
std::string safe(const std::string& text) {
  std::string printed = base::printable(text);
  if (has_colour()) {
    for (const char* ours : {kBold, kPlain}) restore(printed, ours);
  }
  return printed;
}

void require_written(int error) {
  if (error == 0) return;
  if (error == EPIPE) {  // `| head`: whoever read has enough, and wants no words about it
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw base::Failure(base::ErrorKind::kRuntime, fmt::format("cannot write to standard output: {}", message_of(error)));
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

std::string Table::text(std::size_t columns) const {
  constexpr std::size_t kGap = 2;
  std::vector<std::size_t> widths;
  for (const std::string& title : titles_) widths.push_back(columns_of(title));
  std::size_t before_last = 0;  // columns
  for (std::size_t i = 0; i < widths.size(); ++i) {
    for (const auto& row : rows_) widths[i] = std::max(widths[i], columns_of(row[i]));
    before_last += kGap + (i + 1 < widths.size() ? widths[i] : 0);
  }
  const std::size_t room = columns - std::min(columns, before_last);
  widths.back() = std::min(widths.back(), room);
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = i + 1 < cells.size() ? cells[i] : cut(cells[i], room);
      const std::string padding(widths[i] - std::min(widths[i], columns_of(cell)), ' ');
      text += std::string(kGap, ' ') + (left_[i] ? cell + padding : padding + cell);
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  std::string text = heading(line(titles_)) + "\n";
  for (const auto& row : rows_) text += line(row) + "\n";
  return text;
}

std::string heading(const std::string& text) { return has_colour() ? kBold + text + kPlain : text; }

void print_json(const nlohmann::json& json) { print(base::json_text(json, 2) + "\n"); }

std::string try_print(const std::string& text) {
  const int error = write_out(safe(text));
  return error == 0 ? "" : message_of(error);
}

void print(const std::string& text) { require_written(write_out(safe(text))); }

void print_as_it_is(const std::string& text) {
  if (isatty(STDOUT_FILENO) == 1) return print(text);
  require_written(write_out(text));
}

ProgressLine::ProgressLine()
    : shown_on_terminal_(isatty(STDERR_FILENO) == 1 && !is_dumb()),
      next_line_(std::getenv("TRIVIUM_NO_PROGRESS") != nullptr ? Clock::time_point::max() : Clock::now() + kFirstLine) {
}

ProgressLine::~ProgressLine() {
  if (shown_on_terminal_) base::say_text("\r\x1b[K");
}

void ProgressLine::show(const std::string& text) {
  if (!shown_on_terminal_) {
    if (Clock::now() < next_line_) return;
    next_line_ = Clock::now() + kNextLine;
    base::say("{}\n", text);
    return;
  }
  base::say("\r\x1b[K{}", text);
}

}  // namespace trivium::cli
