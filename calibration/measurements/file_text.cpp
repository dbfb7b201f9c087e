#include "calibration/measurements/file_text.h"

namespace trivium::calibration::imports {

FileText::FileText(std::string_view text) : text_(text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  is_empty_ = first == std::string_view::npos;
  if (text.starts_with("SQLite format 3")) {
    form_ = Form::kSqlite;
  } else if (!is_empty_ && text[first] == '{') {
    form_ = Form::kJson;
  }
}

}  // namespace trivium::calibration::imports
