#include "calibration/measurements/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quote.h"

namespace trivium::calibration {
namespace {

[[noreturn]] void refuse(const std::string& file, std::size_t line, const std::string& what) {
  throw base::Failure(base::ErrorKind::kInput, fmt::format("{}:{}: {}", base::one_line(file), line, what));
}

/// Reads one record after another; `line` is the number of the line the reader stands on.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }
  bool done() const { return at_ >= text_.size(); }
  std::size_t line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> fields;
    do {
      fields.push_back(field());
    } while (take(','));
    end_of_line();
    return fields;
  }

 private:
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void end_of_line() {
    take('\r');
    if (done()) return;
    if (!take('\n'))
      refuse(file_, line_, "text follows a closing quote; quote the whole field and double quotes inside it");
    ++line_;
  }

  std::string field() {
    if (take('"')) return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string value(text_.substr(at_, end - at_));
    at_ = end;
    return value;
  }

  std::string quoted() {
    const std::size_t opened = line_;
    std::string value;
    while (!done()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return value;
      if (c == '\n') ++line_;
      value += c;
    }
    refuse(file_, opened, "a quoted field is never closed; add the closing quote");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_ = 1;
};

template <class Number>
std::optional<Number> parse(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string suggestion(const std::string& word, std::span<const std::string> names) {
  const std::string near = base::nearest(word, names);
  return near.empty() ? fmt::format("use one of {}", fmt::join(names, ", "))
                      : fmt::format("did you mean \"{}\"?", near);
}

}  // namespace

CsvTable::CsvTable(std::string_view text, std::string file) : file_(std::move(file)) {
  Scanner scanner(text, file_);
  while (!scanner.done()) {
    const std::size_t line = scanner.line();
    std::vector<std::string> fields = scanner.record();
    if (fields.size() == 1 && fields.front().empty()) continue;
    if (header_.empty()) {
      header_ = std::move(fields);
      std::set<std::string> seen;
      for (const std::string& name : header_) {
        if (!seen.insert(name).second) refuse(file_, line, fmt::format("column {} is there twice", base::quote(name)));
      }
      continue;
    }
    if (fields.size() != header_.size()) {
      refuse(file_, line,
             fmt::format("{} fields where the header has {}; quote fields that contain commas", fields.size(),
                         header_.size()));
    }
    rows_.push_back({line, std::move(fields)});
  }
  if (header_.empty()) refuse(file_, 1, "the file is empty; the first line must name the columns");
}

void CsvTable::require(std::span<const std::string> columns) const {
  for (const std::string& name : columns) {
    if (std::find(header_.begin(), header_.end(), name) != header_.end()) continue;
    const std::string near = base::nearest(name, header_);
    refuse(file_, 1,
           fmt::format("{}: the column is missing{}", name,
                       near.empty() ? "; add it to the header" : fmt::format("; is it {}?", base::quote(near))));
  }
}

bool CsvTable::has(const std::string& column) const {
  return std::find(header_.begin(), header_.end(), column) != header_.end();
}

const std::string& CsvTable::Row::given(const std::string& column) const {
  static const std::string kNothing;
  return table_->has(column) ? text(column) : kNothing;
}

const std::string& CsvTable::Row::text(const std::string& column) const {
  const auto& header = table_->header_;
  const auto found = std::find(header.begin(), header.end(), column);
  if (found == header.end()) fail(column, "the column is missing");
  return table_->rows_[index_].fields[static_cast<std::size_t>(found - header.begin())];
}

std::int64_t CsvTable::Row::integer(const std::string& column, std::int64_t low, std::int64_t high) const {
  const auto value = parse<std::int64_t>(text(column));
  if (!value || *value < low || *value > high) {
    fail(column, fmt::format("{} is not a whole number from {} to {}", base::quote(text(column)), low, high));
  }
  return *value;
}

std::int64_t CsvTable::Row::count(const std::string& column, std::int64_t otherwise) const {
  return given(column).empty() ? otherwise : integer(column, 1, kMostCounted);
}

double CsvTable::Row::positive(const std::string& column) const {
  const auto value = parse<double>(text(column));
  if (!value || !std::isfinite(*value) || *value <= 0) {
    fail(column, fmt::format("{} is not a number above zero", base::quote(text(column))));
  }
  return *value;
}

double CsvTable::Row::number(const std::string& column) const {
  const auto value = parse<double>(text(column));
  if (!value || !std::isfinite(*value)) fail(column, fmt::format("{} is not a number", base::quote(text(column))));
  return *value;
}

std::size_t CsvTable::Row::one_of(const std::string& column, std::span<const std::string> names) const {
  const auto index = find(column, names);
  if (!index) fail(column, unknown(column, names));
  return *index;
}

std::optional<std::size_t> CsvTable::Row::find(const std::string& column, std::span<const std::string> names) const {
  const auto found = std::find(names.begin(), names.end(), text(column));
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::string CsvTable::Row::unknown(const std::string& column, std::span<const std::string> names) const {
  return fmt::format("unknown {}; {}", base::quote(text(column)), suggestion(text(column), names));
}

void CsvTable::Row::fail(const std::string& column, const std::string& what) const {
  refuse(table_->file_, table_->rows_[index_].number, fmt::format("{}: {}", column, what));
}

}  // namespace trivium::calibration
