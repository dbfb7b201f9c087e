// A file of measurements as importers look at it: told by its content, never by its name.
#pragma once

#include <string_view>

namespace trivium::calibration::imports {

/// The content of a file, unpacked; it must outlive this.
class FileText {
 public:
  enum class Form { kText, kJson, kSqlite };

  explicit FileText(std::string_view text);
  Form form() const { return form_; }
  bool is_empty() const { return is_empty_; }  ///< holds nothing but blanks
  std::string_view whole() const { return text_; }
  std::string_view head() const { return text_.substr(0, kHead); }  ///< what tells a text apart comes early
  std::string_view first_line() const { return head().substr(0, head().find('\n')); }

 private:
  static constexpr std::size_t kHead = 1 << 20;
  std::string_view text_;
  Form form_ = Form::kText;
  bool is_empty_ = false;
};

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace trivium::calibration::imports
