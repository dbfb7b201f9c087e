// Results as text for people: tables, figures with units, colour where a terminal reads it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trivium::cli {

/// Text in columns under headings. Columns whose title starts with '<' are aligned left, all others right.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);  ///< as many as there are titles
  bool empty() const { return rows_.empty(); }
  std::string text() const;  ///< every line ends in a newline, none in a blank

 private:
  std::vector<std::string> titles_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// Bold where stdout is a terminal and NO_COLOR is unset; else the text itself.
std::string heading(const std::string& text);

std::string percent(double share);     ///< "51.4 %"
std::string size(std::int64_t bytes);  ///< "61.0 GiB"
std::string integer(double value);     ///< "1,234,567"
std::string seconds(double value);     ///< "32.4 s"
std::string duration(double seconds);  ///< of a training, for people: "33.9 days", "2.5 hours"

/// Indented JSON and a newline on stdout.
void print_json(const nlohmann::json& json);
void print(const std::string& text);  ///< on stdout, flushed

/// A line on stderr that replaces itself, drawn only on a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  ///< wipes it
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);

 private:
  bool shown_on_terminal_ = false;
};

}  // namespace trivium::cli
