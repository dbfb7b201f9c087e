// One HTML page that stands alone: text, tables and pictures in one file, nothing fetched from anywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trivium::report {

/// `text` with <, >, &, " and ' written so that HTML and SVG show them.
std::string escaped(std::string_view text);

/// A page that grows from top to bottom. All texts are escaped here; only `figure` takes markup.
class Page {
 public:
  explicit Page(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  void warning(std::string_view text);
  void list(const std::vector<std::string>& items);
  /// The first column is of names, the others of figures. `header` may be empty.
  void table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  /// An SVG element, as `charts.h` makes them, with what it shows in words.
  void figure(std::string_view caption, const std::string& svg);
  /// A picture as PNG bytes in base64.
  void picture(std::string_view caption, std::string_view png_base64);
  /// Text as it stands, folded away under its title.
  void listing(std::string_view title, std::string_view text);

  std::string text() const { return body_ + "</body></html>\n"; }

 private:
  std::string body_;
};

}  // namespace trivium::report
