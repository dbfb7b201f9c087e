// YAML as a tree that knows its lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/launch/arguments.h"

namespace trivium::planner::launch::yaml {

struct Member;

/// A value of a document. Anchors and merge keys (`<<`) are resolved.
struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;             ///< of a scalar, as written; "true" and "false" for all spellings of YAML 1.1
  bool quoted = false;          ///< a scalar in quotes, which is never a boolean or null
  int line = 0;                 ///< from 1
  std::vector<Node> items;      ///< of a list
  std::vector<Member> members;  ///< of a map, in the order of the file, keys unique (the last one wins)

  bool is_map() const { return kind == Kind::kMap; }
  /// The value of a key; null where it is missing or its value is null.
  const Node* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The text of a scalar member; empty where there is none.
  std::string text_at(std::string_view key) const;
};

struct Member {
  std::string key;
  Node value;
};

/// The first document of `text`. Errors: Failure(kInput) with file and line for text that is no YAML, for documents
/// above 1 MiB, and for more than 100,000 values or 64 levels, aliases counted as what they stand for.
Node read(std::string_view text, const std::string& where);

/// Whether the text is meant as a document whose root is a map: its first line is a key, a comment or `---`.
bool is_document(std::string_view text);

/// Whether its first line begins with `{`, as JSON's does.
bool begins_with_brace(std::string_view text);

/// Scalars as settings with dotted names (`fsdp_config.fsdp_version`): lists of scalars are the values of one setting,
/// items of other lists get their index as a name. Nulls are left out.
Script settings_of(const Node& root);

}  // namespace trivium::planner::launch::yaml
