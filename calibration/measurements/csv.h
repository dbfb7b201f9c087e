// Comma-separated tables with a header line, whose errors name file, line and column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trivium::calibration {

/// A table as RFC 4180 writes it: fields may be quoted, "" inside quotes is a quote, quoted fields may span lines; CRLF
/// and a byte-order mark are accepted, empty lines skipped.
class CsvTable {
 public:
  /// Errors (Failure kInput): an open quote, text after a closing quote, a line with another number of fields than the
  /// header, a header that names a column twice or none at all. `file` names the table in messages.
  CsvTable(std::string_view text, std::string file);

  std::size_t rows() const { return rows_.size(); }
  bool has(const std::string& column) const;
  const std::string& file() const { return file_; }
  /// Errors (Failure kInput): the first of `columns` that the header lacks, with the nearest name.
  void require(std::span<const std::string> columns) const;

  /// One line below the header. Accessors throw Failure(kInput) with `FILE:LINE: COLUMN: what is wrong; what to do`.
  class Row {
   public:
    static constexpr std::int64_t kMostCounted = 1 << 24;  ///< of whatever a table counts: layers, devices, samples
    Row(const CsvTable& table, std::size_t index) : table_(&table), index_(index) {}
    const std::string& text(const std::string& column) const;   ///< may be empty
    const std::string& given(const std::string& column) const;  ///< likewise, and where the table lacks the column
    std::int64_t integer(const std::string& column, std::int64_t low, std::int64_t high) const;
    /// A count of at least one; `otherwise` where the table lacks the column or says nothing.
    std::int64_t count(const std::string& column, std::int64_t otherwise = 1) const;
    double positive(const std::string& column) const;  ///< a number above zero
    double number(const std::string& column) const;    ///< a finite number
    /// One of `names`, as its index.
    std::size_t one_of(const std::string& column, std::span<const std::string> names) const;
    /// The same; nothing where the word is none of them.
    std::optional<std::size_t> find(const std::string& column, std::span<const std::string> names) const;
    /// What to say of a word that is none of `names`: `unknown "x"; did you mean "y"?`
    std::string unknown(const std::string& column, std::span<const std::string> names) const;
    [[noreturn]] void fail(const std::string& column, const std::string& what) const;

   private:
    const CsvTable* table_;
    std::size_t index_;
  };
  Row row(std::size_t index) const { return Row(*this, index); }

 private:
  struct Line {
    std::size_t number = 0;  // 1-based, where the record begins
    std::vector<std::string> fields;
  };
  std::string file_;
  std::vector<std::string> header_;
  std::vector<Line> rows_;
};

}  // namespace trivium::calibration
