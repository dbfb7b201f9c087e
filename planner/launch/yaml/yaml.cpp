#include "planner/launch/yaml/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::planner::launch::yaml {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostValues = 100'000;
constexpr std::size_t kMostDepth = 64;

[[noreturn]] void fail_at(const std::string& where, int line, const std::string& what) {
  throw base::Failure(base::ErrorKind::kInput, fmt::format("{}:{}: {}", where, line, what));
}

/// What YAML 1.1 calls a boolean (yaml.org/type/bool.html), but for y and n, which PyYAML takes as texts.
const char* boolean_of(std::string_view text) {
  constexpr std::array<std::string_view, 9> kTrue{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::array<std::string_view, 9> kFalse{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return "true";
  if (std::ranges::find(kFalse, text) != kFalse.end()) return "false";
  return nullptr;
}

bool is_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::size_t values_in(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += values_in(item);
  for (const Member& member : node.members) count += values_in(member.value);
  return count;
}

/// Builds the tree from the events of yaml-cpp's parser.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& where) : where_(where) {}
  Node root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(at(mark), anchor); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail_at(where_, mark.line + 1, "an alias of what is not yet complete");
    count(values_in(found->second), mark.line + 1);
    Node node = found->second;
    node.line = mark.line + 1;
    place(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = at(mark);
    node.quoted = tag == "!";
    if (node.quoted || !is_null(value)) node.kind = Node::Kind::kScalar;
    const char* boolean = node.quoted ? nullptr : boolean_of(value);
    node.text = boolean != nullptr ? boolean : value;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, Node::Kind::kList, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, Node::Kind::kMap, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::string key;
    int key_line = 0;
    bool has_key = false;
  };

  static Node at(const YAML::Mark& mark) {
    Node node;
    node.line = mark.line + 1;
    return node;
  }

  void count(std::size_t more, int line) {
    values_ += more;
    if (values_ > kMostValues) fail_at(where_, line, fmt::format("more than {} values", kMostValues));
  }

  void open(const YAML::Mark& mark, Node::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() >= kMostDepth) fail_at(where_, mark.line + 1, fmt::format("deeper than {} levels", kMostDepth));
    Open next{at(mark), anchor, {}, 0, false};
    next.node.kind = kind;
    count(1, mark.line + 1);
    open_.push_back(std::move(next));
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.anchor != 0) anchors_[closed.anchor] = closed.node;
    place(std::move(closed.node));
  }

  void add(Node node, YAML::anchor_t anchor) {
    count(1, node.line);
    if (anchor != 0) anchors_[anchor] = node;
    place(std::move(node));
  }

  void place(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind == Node::Kind::kList || node.is_map()) fail_at(where_, node.line, "a key must be a text");
      parent.key = node.text;
      parent.key_line = node.line;
      parent.has_key = true;
    } else {
      parent.has_key = false;
      node.line = parent.key_line;
      set(parent.node, parent.key, std::move(node));
    }
  }

  static void set(Node& map, const std::string& key, Node value) {
    if (key == "<<") return merge(map, value);
    const auto found = std::ranges::find(map.members, key, &Member::key);
    if (found != map.members.end()) {
      found->value = std::move(value);
    } else {
      map.members.push_back({key, std::move(value)});
    }
  }

  // Keys that the map has win; of several merged maps the first does.
  static void merge(Node& map, const Node& from) {
    for (const Node& item : from.items) merge(map, item);
    for (const Member& member : from.members) {
      if (std::ranges::find(map.members, member.key, &Member::key) == map.members.end()) map.members.push_back(member);
    }
  }

  const std::string& where_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t values_ = 0;
};

std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(" \t\r");
    const bool is_directive = line.starts_with("%YAML") || line.starts_with("---");
    if (first == std::string_view::npos || line[first] == '#' || is_directive) continue;
    return line.substr(first);
  }
  return {};
}

void flatten(const Node& node, const std::string& name, Script& script) {
  if (node.is_map()) {
    for (const Member& member : node.members) {
      flatten(member.value, name.empty() ? member.key : name + "." + member.key, script);
    }
  } else if (node.kind == Node::Kind::kScalar) {
    script.arguments.push_back({name, {node.text}, node.line});
  } else if (node.kind == Node::Kind::kList) {
    const bool plain = std::ranges::all_of(node.items, [](const Node& item) {
      return item.kind == Node::Kind::kScalar || item.kind == Node::Kind::kNull;
    });
    Argument argument{name, {}, node.line};
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (!plain) flatten(node.items[i], fmt::format("{}.{}", name, i), script);
      argument.values.push_back(node.items[i].text);
    }
    if (plain && !node.items.empty()) script.arguments.push_back(std::move(argument));
  }
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() || found->value.kind == Kind::kNull ? nullptr : &found->value;
}

std::string Node::text_at(std::string_view key) const {
  const Node* found = find(key);
  return found != nullptr ? found->text : "";
}

Node read(std::string_view text, const std::string& where) {
  if (text.size() > kMostBytes) {
    throw base::Failure(base::ErrorKind::kInput, where + ": YAML above 1 MiB is not read");
  }
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(where);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    fail_at(where, error.mark.line + 1, "not YAML: " + base::one_line(error.msg));
  }
  return builder.root();
}

bool is_document(std::string_view text) {
  if (text.starts_with("#!")) return false;
  const std::string_view line = first_line(text);
  const std::size_t end = line.find(':');
  if (end == 0 || end == std::string_view::npos) return false;
  if (end + 1 < line.size() && line[end + 1] != ' ' && line[end + 1] != '\r' && line[end + 1] != '\t') return false;
  return std::ranges::all_of(line.substr(0, end), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-.\"'").find(c) != std::string_view::npos;
  });
}

bool begins_with_brace(std::string_view text) { return first_line(text).starts_with('{'); }

Script settings_of(const Node& root) {
  Script script;
  script.assigns = true;
  flatten(root, "", script);
  return script;
}

}  // namespace trivium::planner::launch::yaml
