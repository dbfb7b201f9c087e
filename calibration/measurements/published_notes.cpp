#include "calibration/measurements/published_notes.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

namespace trivium::calibration {
namespace {

constexpr std::size_t kLongestLayout = 4096;  // letters, repeated ones counted
constexpr int kDeepestLayout = 8;             // parentheses within parentheses

const std::string& notes_of(const CsvTable::Row& row) { return row.text("notes"); }

bool has_note(const CsvTable::Row& row, std::string_view note) { return notes_of(row).find(note) != std::string::npos; }

/// What follows the note; nothing where it is not there.
std::optional<std::string_view> after(const CsvTable::Row& row, std::string_view note) {
  const std::string_view notes = notes_of(row);
  const std::size_t at = notes.find(note);
  if (at == std::string_view::npos) return std::nullopt;
  return notes.substr(at + note.size());
}

/// The number at the front of `text`, which loses it; 1 where there is none.
std::size_t take_number(std::string_view& text) {
  std::size_t number = 0;
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0 && number < kLongestLayout) {
    number = 10 * number + static_cast<std::size_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return std::max<std::size_t>(1, number);
}

/// The letters of a layout with all repetitions written out, up to a closing parenthesis or the end. `text` loses what
/// was read. Nothing where it is malformed or too long.
std::optional<std::string> written_out(std::string_view& text, int depth) {
  std::string letters;
  while (!text.empty() && text.front() != ')') {
    std::string unit(1, text.front());
    text.remove_prefix(1);
    if (unit == "(") {
      const auto group = depth < kDeepestLayout ? written_out(text, depth + 1) : std::nullopt;
      if (!group || text.empty()) return std::nullopt;
      text.remove_prefix(1);  // the parenthesis that closes it
      unit = *group;
    }
    std::size_t times = 1;
    if (text.starts_with('*')) {
      text.remove_prefix(1);
      times = take_number(text);
    }
    if (letters.size() + times * unit.size() > kLongestLayout) return std::nullopt;
    for (std::size_t i = 0; i < times; ++i) letters += unit;
  }
  return letters;
}

}  // namespace

std::optional<std::vector<program::Module>> modules_of(const CsvTable::Row& row) {
  if (row.text("recompute") == kSelectiveMixture) return std::vector{program::Module::kMixture};
  std::vector<program::Module> modules;
  auto rest = after(row, "recompute modules ");
  if (!rest) rest = after(row, "modules:");
  if (row.text("recompute") != "selective" || !rest) return modules;
  for (std::string_view text = *rest;;) {
    const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), text.size());
    const auto module = program::module_named(std::string(text.substr(0, end)));
    if (!module) return std::nullopt;
    modules.push_back(*module);
    text.remove_prefix(end);
    if (!text.starts_with('+')) return modules;
    text.remove_prefix(1);
  }
}

bool notes_deepep(const CsvTable::Row& row) { return has_note(row, "moe_flex_dispatcher_backend=deepep"); }

bool notes_flex_dispatcher(const CsvTable::Row& row) {
  return has_note(row, "moe_flex_dispatcher_backend=") || has_note(row, "HybridEP");
}

// A switch of Megatron-Bridge's recipes, and the words of MLPerf's submissions.
bool notes_paired_passes(const CsvTable::Row& row) {
  return has_note(row, "moe_a2a_overlap=True") || has_note(row, "1F1B a2a overlap");
}

std::int64_t noted_mtp(const CsvTable::Row& row) {
  const auto rest = after(row, "MTP ");
  if (!rest || rest->empty() || std::isdigit(static_cast<unsigned char>(rest->front())) == 0) return 0;
  return std::atoi(std::string(rest->substr(0, 2)).c_str());
}

std::vector<int> noted_layout(const CsvTable::Row& row) {
  const auto rest = after(row, "layout ");
  if (!rest) return {};
  std::string_view text = rest->substr(0, rest->find_first_not_of("EtmL|()*0123456789"));
  const auto letters = written_out(text, 0);
  if (!letters || !text.empty() || letters->empty()) return {};
  std::vector<int> layers(1, 0);
  for (const char letter : *letters) {
    if (letter == '|') layers.push_back(0);
    if (letter == 't') ++layers.back();
  }
  return layers;
}

}  // namespace trivium::calibration
