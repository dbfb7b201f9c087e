#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trivium::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escaped, ShowsWhatHtmlWouldTakeForMarkup) {
  EXPECT_EQ(escaped("<b> & \"c\" 'd'"), "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escaped("8 × A100, ± 5 %"), "8 × A100, ± 5 %");
}

TEST(Page, EscapesEveryTextAndEndsWhatItBegins) {
  Page page("<title>");
  page.heading("<h>");
  page.paragraph("<p>");
  page.warning("<w>");
  page.list({"<l>"});
  page.table({"<th>"}, {{"<td>"}});
  page.picture("<i>", "AAAA");
  page.listing("<s>", "<pre>");
  const std::string text = page.text();
  for (const char* name : {"title", "h", "p", "w", "l", "th", "td", "i", "s", "pre"}) {
    EXPECT_THAT(text, HasSubstr("&lt;" + std::string(name) + "&gt;"));
  }
  EXPECT_THAT(text, HasSubstr("src=\"data:image/png;base64,AAAA\""));
  EXPECT_TRUE(text.ends_with("</body></html>\n"));
  for (const std::string tag : {"table", "tr", "ul", "figure", "details"}) {
    const auto count = [&](const std::string& word) {
      int found = 0;
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
      return found;
    };
    EXPECT_EQ(count("<" + tag + ">"), count("</" + tag + ">")) << tag;
  }
}

TEST(Page, FetchesNothing) {
  Page page("alone");
  page.paragraph("text");
  EXPECT_THAT(page.text(), Not(HasSubstr("http")));
  EXPECT_THAT(page.text(), Not(HasSubstr("<script")));
  EXPECT_THAT(page.text(), Not(HasSubstr("<link")));
}

}  // namespace
}  // namespace trivium::report
