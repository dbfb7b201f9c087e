// Text that fits the terminal: width, wrapping, and pages that begin with their answer.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::cli {

/// Columns for a page on stdout: COLUMNS of the environment, else the terminal's, else 80; at least 60, at most 120.
std::size_t page_columns();

/// Columns that the text occupies: one for each character of UTF-8.
std::size_t columns_of(std::string_view text);

/// The words of the text in lines of `columns`, from column `indent` on; the first line continues the current one.
/// Words that are longer than a line are broken.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns);

/// The text, or as many of its first words as fit into `columns` with "…" after them.
std::string cut(const std::string& text, std::size_t columns);

/// An answer in lines of at most `columns`: sentences, rows with a label, tables.
class Page {
 public:
  explicit Page(std::size_t columns = page_columns()) : columns_(columns) {}

  std::size_t columns() const { return columns_; }
  void answer(const std::string& sentence);  ///< wrapped, in bold on a terminal
  /// "  label      text", wrapped to the right of the label; the rest after `most` lines is cut. Nothing for an empty
  /// text.
  void row(const std::string& label, const std::string& text, std::size_t most = kAll);
  void block(const std::string& lines);  ///< a table, as it is
  void gap();                            ///< an empty line, unless there is one

  std::size_t lines() const;       ///< of the text
  std::size_t full_lines() const;  ///< without the gaps
  /// Every line ends in a newline. Gaps go, the last one first, while there are more than `most` lines.
  std::string text(std::size_t most = kAll) const;

  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

 private:
  std::size_t columns_;
  std::vector<std::string> lines_;
};

}  // namespace trivium::cli
