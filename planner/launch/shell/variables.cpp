// Variables, arrays and what is known of the environment.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "planner/launch/shell/arithmetic.h"
#include "planner/launch/shell/interpreter.h"

namespace trivium::planner::launch::shell {
namespace {

/// Indices sort as numbers do.
std::string padded(std::int64_t index) { return fmt::format("{:09}", std::max<std::int64_t>(index, 0)); }

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::ranges::all_of(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

// Set by a scheduler, a login or the machine: never empty in a run, though no script sets them.
bool Interpreter::is_of_run(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPrefixes{"SLURM_", "PBS_",  "LSB_",    "OMPI_",  "PMI",
                                                      "MLP_",   "AMLT_", "COBALT_", "ARNOLD_"};
  constexpr std::array<std::string_view, 12> kNames{"HOME",    "USER",   "PWD",   "HOSTNAME", "PATH", "RANDOM",
                                                    "SECONDS", "TMPDIR", "SHELL", "LOGNAME",  "$",    "LINENO"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool Interpreter::is_set(const std::string& name) const {
  if (name.size() == 1 && std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
    const std::size_t index = static_cast<std::size_t>(name.front() - '0');
    return index == 0 || index <= arguments_.size();
  }
  if (name == "#" || name == "@" || name == "*" || name == "?" || name == "$") return true;
  const auto found = variables_.find(name);
  return found != variables_.end() && !found->second.elements.empty();
}

std::string Interpreter::hole_for(const std::string& name) const {
  // What is read again as a script must not end or open anything there.
  std::string plain;
  for (const char c : name) {
    if (c != kHoleBegin && c != kHoleEnd)
      plain += std::string_view("\"'`\\$\n").find(c) == std::string_view::npos ? c : '.';
  }
  return std::string(1, kHoleBegin) + plain + kHoleEnd;
}

std::string Interpreter::value_of(const std::string& name) {
  if (name == "#") return knows_arguments_ || !arguments_.empty() ? std::to_string(arguments_.size()) : hole_for("#");
  if (name == "?") return last_ == kUnknown ? hole_for("?") : std::to_string(last_);
  if (name == "0") return script_.empty() ? hole_for("0") : script_;
  if (name == "BASH_SOURCE") return file_.empty() ? value_of("0") : file_;
  if (std::ranges::all_of(name, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }) &&
      !name.empty()) {
    const std::size_t index = name.size() < 4 ? static_cast<std::size_t>(std::stoi(name)) : 1000;
    if (index <= arguments_.size()) return arguments_[index - 1];
    return knows_arguments_ ? "" : hole_for(name);
  }
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.elements.empty()) {
    return found != variables_.end() || unset_.contains(name) ? "" : hole_for(name);
  }
  const auto& elements = found->second.elements;
  if (!found->second.is_array) return elements.begin()->second;
  const auto first = elements.find(padded(0));
  return first == elements.end() ? "" : first->second;
}

std::vector<std::string> Interpreter::values_of(const std::string& name) {
  if (name == "BASH_SOURCE") return {value_of(name)};
  const auto found = variables_.find(name);
  if (found == variables_.end())
    return unset_.contains(name) ? std::vector<std::string>{} : std::vector{hole_for(name)};
  std::vector<std::string> values;
  for (const auto& [index, value] : found->second.elements) values.push_back(value);
  return values;
}

std::vector<std::string> Interpreter::keys_of(const std::string& name) {
  std::vector<std::string> keys;
  const auto found = variables_.find(name);
  if (found == variables_.end()) return keys;
  for (const auto& [index, value] : found->second.elements) {
    const std::size_t digit = std::min(index.find_first_not_of('0'), index.size() - 1);
    keys.push_back(is_number(index) ? index.substr(digit) : index);
  }
  return keys;
}

void Interpreter::set(const std::string& name, const std::string& value) {
  count_bytes(value.size());
  Variable& variable = variables_[name];
  if (variable.is_array) {
    variable.elements[padded(0)] = value;
  } else {
    variable.elements[""] = value;
  }
  unset_.erase(name);
  reading_.variable_lines[name] = line_;
}

std::string Interpreter::index_of(const std::string& index, const Variable&) {
  const std::string text = expand_text(index);
  if (is_number(text)) return padded(std::stoll(text));
  if (!text.empty() && !has_hole(text)) {
    // A name may be a key of an associative array, or a number's variable.
    if (is_name_start(text.front()) && !variables_.contains(text)) return text;
    try {
      if (const auto value = arithmetic(text)) return padded(*value);
    } catch (const SyntaxError&) {
      return text;
    }
  }
  return text;
}

void Interpreter::assign(const Assigned& assigned) {
  reading_.variable_lines[assigned.name] = line_;
  if (assigned.is_array) {
    Variable made;
    made.is_array = true;
    if (const auto old = variables_.find(assigned.name); assigned.is_append && old != variables_.end()) {
      for (const auto& [index, value] : old->second.elements) made.elements[index.empty() ? padded(0) : index] = value;
    }
    std::int64_t next = 0;
    for (const auto& [index, value] : made.elements) next = is_number(index) ? std::stoll(index) + 1 : next;
    for (const std::string& element : assigned.elements) {
      const std::size_t close = element.find("]=");
      if (element.starts_with("[") && close != std::string::npos) {
        made.elements[index_of(element.substr(1, close - 1), made)] = expand_text(element.substr(close + 2));
        continue;
      }
      for (std::string& value : expand_words({element})) {
        count_bytes(value.size());
        made.elements[padded(next++)] = std::move(value);
      }
    }
    variables_[assigned.name] = std::move(made);
    unset_.erase(assigned.name);
    return;
  }
  const std::string value = expand_text(assigned.value);
  if (!assigned.index.empty()) {
    Variable& variable = variables_[assigned.name];
    variable.is_array = true;
    std::string& element = variable.elements[index_of(assigned.index, variable)];
    element = assigned.is_append ? element + value : value;
    return;
  }
  const bool appends = assigned.is_append && is_set(assigned.name);
  set(assigned.name, appends ? value_of(assigned.name) + value : value);
}

std::optional<std::int64_t> Interpreter::arithmetic(const std::string& text) {
  const Names names{[&](const std::string& name) {
                      const std::string value = value_of(name);
                      if (value == hole_for(name) && !is_of_run(name)) {
                        return value;
                      }
                      return value;
                    },
                    [&](const std::string& name, const std::string& value) { set(name, value); }};
  return evaluate(text, names);
}

}  // namespace trivium::planner::launch::shell
