#include "report/html.h"

#include <fmt/format.h>

namespace trivium::report {
namespace {

constexpr const char* kStyle =
    ":root{color-scheme:light dark}"
    "body{font:15px/1.45 sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:.5em 0}"
    "td,th{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
    "figure{margin:1em 0}figcaption{color:#555}svg,img{max-width:100%;height:auto}"
    "img{border:1px solid #ccc}svg text{fill:currentColor;font:12px sans-serif}"
    ".wrong{color:#b3261e}pre{overflow:auto;padding:.8em;border:1px solid #ccc}"
    "@media(prefers-color-scheme:dark){body{color:#e4e6ea;background:#1a1c20}figcaption{color:#aab0b8}"
    "td,th,img,pre{border-color:#555}.wrong{color:#ff8a80}}";

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
  return text + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

Page::Page(std::string_view title)
    : body_(fmt::format("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width\">"
                        "<title>{0}</title><style>{1}</style></head>\n<body><h1>{0}</h1>\n",
                        escaped(title), kStyle)) {}

void Page::heading(std::string_view text) { body_ += fmt::format("<h2>{}</h2>\n", escaped(text)); }

void Page::paragraph(std::string_view text) { body_ += fmt::format("<p>{}</p>\n", escaped(text)); }

void Page::warning(std::string_view text) { body_ += fmt::format("<p class=\"wrong\">{}</p>\n", escaped(text)); }

void Page::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += fmt::format("<li>{}</li>\n", escaped(item));
  body_ += "</ul>\n";
}

void Page::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  body_ += "<table>\n";
  if (!header.empty()) body_ += row(header, "th");
  for (const auto& cells : rows) body_ += row(cells, "td");
  body_ += "</table>\n";
}

void Page::figure(std::string_view caption, const std::string& svg) {
  body_ += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, escaped(caption));
}

void Page::picture(std::string_view caption, std::string_view png_base64) {
  body_ +=
      fmt::format("<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
                  escaped(caption), png_base64);
}

void Page::listing(std::string_view title, std::string_view text) {
  body_ += fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", escaped(title), escaped(text));
}

}  // namespace trivium::report
