#include "calibration/measurements/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace trivium::calibration::imports {
namespace {

// Opcodes: Python's pickletools, "the pickle machine language" (protocols 0 to 5).
enum Code : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDuplicate = '2',
  kFloatText = 'F',
  kIntText = 'I',
  kInt4 = 'J',
  kInt1 = 'K',
  kLongText = 'L',
  kInt2 = 'M',
  kNone = 'N',
  kStringText = 'S',
  kString4 = 'T',
  kString1 = 'U',
  kUnicodeText = 'V',
  kUnicode4 = 'X',
  kAppend = 'a',
  kDictionaryOfMark = 'd',
  kAppendAll = 'e',
  kGetText = 'g',
  kGet1 = 'h',
  kGet4 = 'j',
  kListOfMark = 'l',
  kPutText = 'p',
  kPut1 = 'q',
  kPut4 = 'r',
  kSetItem = 's',
  kTupleOfMark = 't',
  kSetItems = 'u',
  kEmptyDictionary = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kFloat8 = 'G',
  kBytes4 = 'B',
  kBytes1 = 'C',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kUnicode1 = 0x8c,
  kUnicode8 = 0x8d,
  kBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

using PickleList = PickleNode::List;
using PickleDictionary = PickleNode::Dictionary;

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& file, std::deque<PickleNode>& nodes)
      : bytes_(bytes), file_(file), nodes_(nodes) {}

  const PickleNode* run() {
    for (;;) {
      const std::size_t at = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == kStop) return top();
      if (!number(code) && !words(code) && !container(code) && !memory(code)) {
        fail(fmt::format("byte {} ({:#04x}) asks for more than plain data, for a Python class or function perhaps", at,
                         code));
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: not a pickle of plain data: {}", file_, why));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("it ends early");
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }

  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("it ends early");
    const std::string_view taken = take(end - at_);
    ++at_;
    return taken;
  }

  std::uint64_t little(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = bytes; i-- > 0;) value = value << 8U | static_cast<unsigned char>(taken[i]);
    return value;
  }

  // Two's complement of any length; of more than eight bytes only the sign would be left.
  std::int64_t signed_little(std::size_t bytes) {
    if (bytes == 0) return 0;
    if (bytes > sizeof(std::int64_t)) fail("a number of more than 64 bits");
    const auto shift = static_cast<unsigned>(64 - 8 * bytes);
    return static_cast<std::int64_t>(little(bytes) << shift) >> shift;
  }

  std::int64_t integer(std::string_view text) {
    if (text.ends_with('L')) text.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("a number that is none");
    return value;
  }

  double big_float() {
    std::uint64_t bits = 0;
    for (const char c : take(sizeof bits)) bits = bits << 8U | static_cast<unsigned char>(c);
    return std::bit_cast<double>(bits);
  }

  PickleNode& push(PickleNode::Value value) {
    if (nodes_.size() >= base::input_limit() / sizeof(PickleNode)) {
      fail(fmt::format("it unpacks to more than {}", base::input_limit_text()));
    }
    nodes_.push_back({std::move(value)});
    stack_.push_back(&nodes_.back());
    return nodes_.back();
  }

  PickleNode* top() const {
    if (stack_.size() <= floor()) fail("it takes what is not there");
    return stack_.back();
  }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleNode* pop() {
    PickleNode* node = top();
    stack_.pop_back();
    return node;
  }

  // What lies above the last mark, which goes.
  PickleList above_mark() {
    if (marks_.empty()) fail("it takes what is not there");
    PickleList taken(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return taken;
  }

  PickleDictionary pairs(const PickleList& items) const {
    if (items.size() % 2 != 0) fail("a key without a value");
    PickleDictionary all;
    for (std::size_t i = 0; i < items.size(); i += 2) all.emplace_back(items[i], items[i + 1]);
    return all;
  }

  template <class Container>
  Container& container_on_top() {
    auto* container = std::get_if<Container>(&top()->value);
    if (container == nullptr) fail("it adds to what holds nothing");
    return *container;
  }

  void tuple(std::size_t size) {
    PickleList items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push(std::move(items));
  }

  bool number(unsigned char code) {
    switch (code) {
      case kNone:
        push({});
        return true;
      case kTrue:
        push(true);
        return true;
      case kFalse:
        push(false);
        return true;
      case kInt1:
        push(static_cast<std::int64_t>(little(1)));
        return true;
      case kInt2:
        push(static_cast<std::int64_t>(little(2)));
        return true;
      case kInt4:
        push(signed_little(4));
        return true;
      case kLong1:
        push(signed_little(little(1)));
        return true;
      case kLong4:
        push(signed_little(little(4)));
        return true;
      case kLongText:
        push(integer(line()));
        return true;
      case kFloat8:
        push(big_float());
        return true;
      case kFloatText:
        push(std::strtod(std::string(line()).c_str(), nullptr));
        return true;
      case kIntText: {
        const std::string_view text = line();
        text == "00" || text == "01" ? push(text == "01") : push(integer(text));
        return true;
      }
      default:
        return false;
    }
  }

  bool words(unsigned char code) {
    switch (code) {
      case kString1:
      case kBytes1:
      case kUnicode1:
        push(std::string(take(little(1))));
        return true;
      case kString4:
      case kBytes4:
      case kUnicode4:
        push(std::string(take(little(4))));
        return true;
      case kBytes8:
      case kUnicode8:
        push(std::string(take(little(8))));
        return true;
      case kStringText:
      case kUnicodeText:
        push(std::string(line()));
        return true;
      default:
        return false;
    }
  }

  bool container(unsigned char code) {
    switch (code) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kEmptyList:
      case kEmptyTuple:
        push(PickleList());
        return true;
      case kEmptyDictionary:
        push(PickleDictionary());
        return true;
      case kListOfMark:
      case kTupleOfMark:
        push(above_mark());
        return true;
      case kDictionaryOfMark:
        push(pairs(above_mark()));
        return true;
      case kTuple1:
        tuple(1);
        return true;
      case kTuple2:
        tuple(2);
        return true;
      case kTuple3:
        tuple(3);
        return true;
      case kAppend: {
        const PickleNode* item = pop();
        container_on_top<PickleList>().push_back(item);
        return true;
      }
      case kAppendAll: {
        const PickleList items = above_mark();
        PickleList& list = container_on_top<PickleList>();
        list.insert(list.end(), items.begin(), items.end());
        return true;
      }
      case kSetItem: {
        const PickleNode* value = pop();
        const PickleNode* key = pop();
        container_on_top<PickleDictionary>().emplace_back(key, value);
        return true;
      }
      case kSetItems: {
        const PickleDictionary items = pairs(above_mark());
        PickleDictionary& dictionary = container_on_top<PickleDictionary>();
        dictionary.insert(dictionary.end(), items.begin(), items.end());
        return true;
      }
      default:
        return false;
    }
  }

  // The stack itself, what was kept of it, and what says nothing.
  bool memory(unsigned char code) {
    switch (code) {
      case kProtocol:
        take(1);
        return true;
      case kFrame:
        take(8);
        return true;
      case kPop:
        pop();
        return true;
      case kPopMark:
        above_mark();
        return true;
      case kDuplicate:
        stack_.push_back(top());
        return true;
      case kMemoize:
        memo_[memo_.size()] = top();
        return true;
      case kPut1:
        memo_[little(1)] = top();
        return true;
      case kPut4:
        memo_[little(4)] = top();
        return true;
      case kPutText:
        memo_[static_cast<std::uint64_t>(integer(line()))] = top();
        return true;
      case kGet1:
        get(little(1));
        return true;
      case kGet4:
        get(little(4));
        return true;
      case kGetText:
        get(static_cast<std::uint64_t>(integer(line())));
        return true;
      default:
        return false;
    }
  }

  void get(std::uint64_t number) {
    const auto kept = memo_.find(number);
    if (kept == memo_.end()) fail("it takes what is not there");
    stack_.push_back(kept->second);
  }

  std::string_view bytes_;
  const std::string& file_;
  std::deque<PickleNode>& nodes_;
  std::size_t at_ = 0;
  std::vector<PickleNode*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::map<std::uint64_t, PickleNode*> memo_;
};

}  // namespace

const PickleNode* PickleNode::member(std::string_view key) const {
  const auto* dictionary = std::get_if<Dictionary>(&value);
  if (dictionary == nullptr) return nullptr;
  const auto found = std::ranges::find_if(*dictionary, [&](const auto& item) {
    const auto* name = std::get_if<std::string>(&item.first->value);
    return name != nullptr && *name == key;
  });
  return found == dictionary->end() ? nullptr : found->second;
}

const PickleNode::List& PickleNode::elements() const {
  static const List kNothing;
  const auto* list = std::get_if<List>(&value);
  return list == nullptr ? kNothing : *list;
}

std::optional<std::int64_t> PickleNode::integer() const {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::string PickleNode::text() const {
  const auto* words = std::get_if<std::string>(&value);
  return words == nullptr ? std::string() : *words;
}

std::optional<bool> PickleNode::flag() const {
  const auto* yes = std::get_if<bool>(&value);
  return yes == nullptr ? std::nullopt : std::optional(*yes);
}

Pickle read_pickle(std::string_view bytes, const std::string& file) {
  Pickle pickle;
  pickle.root_ = PickleMachine(bytes, file, pickle.nodes_).run();
  return pickle;
}

Pickle plain_data(const nlohmann::json& document) {
  Pickle pickle;
  const auto node = [&pickle]() { return &pickle.nodes_.emplace_back(); };
  PickleNode* root = node();
  pickle.root_ = root;
  std::vector<std::pair<const nlohmann::json*, PickleNode*>> open{{&document, root}};  // no recursion: JSON may be deep
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (from->is_object()) {
      PickleDictionary items;
      for (const auto& [key, value] : from->items()) {
        PickleNode* name = node();
        name->value = key;
        PickleNode* held = node();
        open.emplace_back(&value, held);
        items.emplace_back(name, held);
      }
      to->value = std::move(items);
    } else if (from->is_array()) {
      PickleList elements;
      for (const nlohmann::json& value : *from) {
        PickleNode* held = node();
        open.emplace_back(&value, held);
        elements.push_back(held);
      }
      to->value = std::move(elements);
    } else if (from->is_string()) {
      to->value = from->get<std::string>();
    } else if (from->is_boolean()) {
      to->value = from->get<bool>();
    } else if (from->is_number_float() || (from->is_number_unsigned() && from->get<std::int64_t>() < 0)) {
      to->value = from->get<double>();
    } else if (from->is_number()) {
      to->value = from->get<std::int64_t>();
    }
  }
  return pickle;
}

bool is_pickle(std::string_view bytes) {
  constexpr int kProtocols = 5;
  return bytes.size() > 2 && static_cast<unsigned char>(bytes[0]) == kProtocol && bytes[1] >= 2 &&
         bytes[1] <= kProtocols && bytes.back() == kStop;
}

}  // namespace trivium::calibration::imports
