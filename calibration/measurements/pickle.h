// Python's pickles of plain data (numbers, texts, lists, tuples and dictionaries), read without running anything.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace trivium::calibration::imports {

class PickleNode {
 public:
  using List = std::vector<const PickleNode*>;  ///< of tuples too
  using Dictionary = std::vector<std::pair<const PickleNode*, const PickleNode*>>;
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dictionary>;

  Value value;

  /// The value of a dictionary's key; null where this is no dictionary or has no such key.
  const PickleNode* member(std::string_view key) const;
  /// Elements of a list; none where it is no list.
  const List& elements() const;
  std::optional<std::int64_t> integer() const;  ///< none where it is no whole number
  std::string text() const;                     ///< empty where it is no text
  std::optional<bool> flag() const;
};

/// Owns its nodes. What the pickle holds in several places is one node.
class Pickle {
 public:
  const PickleNode& root() const { return *root_; }

 private:
  friend Pickle read_pickle(std::string_view bytes, const std::string& file);
  friend Pickle plain_data(const nlohmann::json& document);
  std::deque<PickleNode> nodes_;
  const PickleNode* root_ = nullptr;
};

/// Protocols 0 to 5. Errors: Failure(kInput) naming the file where it ends early or asks for more than data: a pickle
/// may name any Python function to be called, and none is here.
Pickle read_pickle(std::string_view bytes, const std::string& file);

/// The same tree of a JSON document; numbers that no 64-bit integer holds become floating-point numbers.
Pickle plain_data(const nlohmann::json& document);

/// Whether it begins as pickles of protocol 2 and later do.
bool is_pickle(std::string_view bytes);

}  // namespace trivium::calibration::imports
