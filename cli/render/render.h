// Results as text for people: tables, figures with units, colour where a terminal reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/readable.h"

namespace trivium::cli {

/// Text in columns under headings. Columns whose title starts with '<' are aligned left, all others right.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);  ///< as many as there are titles
  bool empty() const { return rows_.empty(); }
  /// Every line ends in a newline, none in a blank. Lines of more than `columns` lose the end of their last cell.
  std::string text(std::size_t columns = std::numeric_limits<std::size_t>::max()) const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// Bold where stdout is a terminal and NO_COLOR is unset; else the text itself.
std::string heading(const std::string& text);

using base::dollars;
using base::duration;
using base::integer;
using base::percent;
using base::seconds;
using base::seconds_beside;
using base::size;

/// Indented JSON and a newline on stdout.
void print_json(const nlohmann::json& json);
/// On stdout, flushed; what would act on a terminal is escaped. Errors: Failure(kRuntime) where stdout is closed or
/// full. Ends the process like any filter where nobody reads the pipe any more.
void print(const std::string& text);
/// The same, returning why it could not be written; empty where it was.
std::string try_print(const std::string& text);
/// For text whose bytes are the result: escaped only where a terminal would read it.
void print_as_it_is(const std::string& text);

/// A line on stderr: on a terminal it replaces itself; elsewhere a line of its own follows after two seconds and then
/// every ten, so that no long command is silent in a log. With TRIVIUM_NO_PROGRESS in the environment none follows.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< wipes it
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_on_terminal_ = false;
  Clock::time_point next_line_;  ///< elsewhere: not before
};

}  // namespace trivium::cli
