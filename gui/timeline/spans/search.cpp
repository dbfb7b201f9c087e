#include "gui/timeline/spans/search.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace trivium::gui {
namespace {

constexpr std::size_t kMostWords = 64;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> words_of(std::string_view query) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower(query) + " ") {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
    } else if (!word.empty()) {
      if (words.size() < kMostWords) words.push_back(word);
      word.clear();
    }
  }
  return words;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Bit w: a word of the text begins with word w: "reduce" is in "all_reduce", "all" is not in "parallel". A word that
/// ends in a digit is not found inside a longer number: "mb1" not in "mb12".
std::uint64_t words_in(const std::string& name, const std::vector<std::string>& words) {
  const std::string text = lower(name);
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const bool number = std::isdigit(static_cast<unsigned char>(words[w].back())) != 0;
    for (std::size_t at = text.find(words[w]); at != std::string::npos; at = text.find(words[w], at + 1)) {
      const std::size_t after = at + words[w].size();
      if (at > 0 && is_letter(text[at - 1]) && is_letter(words[w].front())) continue;
      if (number && after < text.size() && std::isdigit(static_cast<unsigned char>(text[after])) != 0) continue;
      bits |= std::uint64_t{1} << w;
      break;
    }
  }
  return bits;
}

std::vector<std::uint64_t> words_in(const std::vector<std::string>& names, const std::vector<std::string>& words) {
  std::vector<std::uint64_t> bits;
  bits.reserve(names.size());
  for (const std::string& name : names) bits.push_back(words_in(name, words));
  return bits;
}

}  // namespace

// A number says which of what stands before it: "stage 2" is not in "rank 2, stage 1".
NameFilter::NameFilter(std::string_view query) {
  for (std::string& word : words_of(query)) {
    const bool number = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && !words_.empty()) {
      words_.back() += " " + word;
    } else {
      words_.push_back(std::move(word));
    }
  }
}

bool NameFilter::is_met_by(const std::string& name) const {
  return words_in(name, words_) ==
         (words_.size() == kMostWords ? ~std::uint64_t{0} : (std::uint64_t{1} << words_.size()) - 1);
}

std::vector<std::uint32_t> find_spans(const SpanStore& store, std::string_view query) {
  std::vector<std::uint32_t> found;
  const std::vector<std::string> words = words_of(query);
  if (words.empty()) return found;
  const std::uint64_t all = words.size() == kMostWords ? ~std::uint64_t{0} : (std::uint64_t{1} << words.size()) - 1;
  const auto titles = words_in(store.titles(), words), details = words_in(store.details(), words);
  std::vector<std::uint64_t> categories;
  for (const CategoryInfo& category : store.categories()) categories.push_back(words_in(category.name, words));
  for (std::uint32_t span = 0; span < store.size(); ++span) {
    const std::uint64_t category = categories[static_cast<std::size_t>(store.category_of(span))];
    if (store.is_waiting(span) && category == 0) continue;
    if ((titles[store.title_of(span)] | details[store.detail_of(span)] | category) == all) found.push_back(span);
  }
  return found;
}

}  // namespace trivium::gui
