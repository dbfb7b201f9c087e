// Finding spans by words of their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// Spans, ascending, in whose title, detail or category a word begins with each of the query's, in any order, whatever
/// the case; waiting is found only by its category. None for a query without words. Further than 64 words are not
/// looked at.
std::vector<std::uint32_t> find_spans(const SpanStore& store, std::string_view query);

/// Whether names have all words of a query, as find_spans() takes them; a number must follow the same word as in the
/// query.
class NameFilter {
 public:
  explicit NameFilter(std::string_view query);
  bool is_empty() const { return words_.empty(); }
  bool is_met_by(const std::string& name) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace trivium::gui
