// Members of JSON in a text that may have variables of a shell in place of values.
#include <algorithm>
#include <optional>

#include "planner/launch/patch/rewrites.h"

namespace trivium::planner::launch::patch {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

/// Where the object is that holds as much of the path as there is, and the value where all is there.
struct MemberSite {
  std::size_t object = 0;  ///< its '{'
  std::string rest;        ///< of the path, inside of the object
  std::optional<Span> value;
};

class Scanner {
 public:
  Scanner(const std::string& text, std::string path) : text_(text), path_(std::move(path)) {}

  /// Nothing where no object begins at `at`.
  std::optional<MemberSite> find(std::size_t at) {
    best_ = {at, path_, std::nullopt};
    if (!object(at, path_)) return std::nullopt;
    return best_;
  }

 private:
  std::size_t blank(std::size_t at) const { return std::min(text_.find_first_not_of(kWhite, at), text_.size()); }

  bool object(std::size_t& at, const std::string& wanted) {
    if (!wanted.empty() && wanted.size() <= best_.rest.size()) best_.object = at, best_.rest = wanted;
    at = blank(at + 1);
    while (at < text_.size() && text_[at] != '}') {
      if (text_[at] != '"') return false;
      const std::size_t close = text_.find('"', at + 1);
      if (close == std::string::npos) return false;
      const std::string key = text_.substr(at + 1, close - at - 1);
      at = blank(close + 1);
      if (at >= text_.size() || text_[at] != ':') return false;
      at = blank(at + 1);
      const bool is_last = wanted == key;
      const bool leads = wanted.size() > key.size() && wanted.starts_with(key) && wanted[key.size()] == '.';
      if (!value(at, leads ? wanted.substr(key.size() + 1) : "", is_last)) return false;
      at = blank(at);
      if (at < text_.size() && text_[at] == ',') at = blank(at + 1);
    }
    if (at >= text_.size()) return false;
    ++at;
    return true;
  }

  bool value(std::size_t& at, const std::string& wanted, bool is_wanted) {
    if (at >= text_.size()) return false;
    const std::size_t begin = at;
    if (text_[at] == '{') return object(at, wanted);
    if (text_[at] == '[') {
      at = text_.find(']', at);
      if (at == std::string::npos) return false;
      ++at;
    } else if (text_[at] == '"') {
      at = text_.find('"', at + 1);
      if (at == std::string::npos) return false;
      ++at;
    } else {
      int depth = 0;
      while (at < text_.size()) {
        const char c = text_[at];
        if (c == '$' && at + 1 < text_.size() && text_[at + 1] == '{') ++depth;
        if (depth == 0 && (c == ',' || c == '}' || kWhite.find(c) != std::string_view::npos)) break;
        if (depth > 0 && c == '}') --depth;
        ++at;
      }
    }
    if (is_wanted) best_.value = Span{begin, at};
    return at > begin;
  }

  const std::string& text_;
  std::string path_;
  MemberSite best_;
};

}  // namespace

Texts with_member(const std::string& text, const std::string& path, const std::string& value) {
  Texts texts;
  for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    if (at > 0 && text[at - 1] == '$') continue;
    const auto place = Scanner(text, path).find(at);
    if (!place) continue;
    if (place->value) {
      rewrite_word(text, *place->value, value, 0, texts);
      continue;
    }
    std::string member = value, rest = place->rest;
    for (std::size_t dot = rest.rfind('.'); dot != std::string::npos; dot = rest.rfind('.')) {
      member = "{\"" + rest.substr(dot + 1) + "\": " + member + "}";
      rest.erase(dot);
    }
    const std::size_t next = text.find_first_not_of(kWhite, place->object + 1);
    const std::string gap = text.substr(place->object + 1, next - place->object - 1);
    const bool is_empty = text[next] == '}';
    texts.push_back(replaced(text, {place->object + 1, place->object + 1},
                             gap + "\"" + rest + "\": " + member + (is_empty ? "" : ",")));
  }
  return texts;
}

}  // namespace trivium::planner::launch::patch
