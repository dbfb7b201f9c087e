// Ways to change one option, variable or key of a launch file, as whole new texts: the caller reads each again and
// takes the first that says what it should. The order is that of preference: where the file decides a value by a
// variable, the variable changes, and its default where it has one.
#pragma once

#include <string>
#include <vector>

namespace trivium::planner::launch::patch {

using Texts = std::vector<std::string>;

/// Part of a text: [begin, end).
struct Span {
  std::size_t begin = 0, end = 0;
};

/// `name` without its dashes; '-' and '_' are one. `before`: how many words follow it; `values`: what shall.
Texts with_option_value(const std::string& text, const std::string& name, std::size_t before,
                        const std::vector<std::string>& values);
/// The option after another one, of the first of `anchors` that leads to any text.
Texts with_option(const std::string& text, const std::string& name, const std::vector<std::string>& values,
                  const std::vector<std::string>& anchors);
Texts without_option(const std::string& text, const std::string& name, std::size_t before);

/// Assignments of a variable of the shell.
Texts with_variable(const std::string& text, const std::string& name, const std::string& value);
Texts without_variable(const std::string& text, const std::string& name);

/// `section.key = value` of TOML; `value` as it is written there.
Texts with_key(const std::string& text, const std::string& name, const std::string& value);

/// `--name: value` on a line of YAML, as in the MODEL_ARGS of Megatron-LM's tests: changed, after an anchor, gone.
Texts with_argument_line(const std::string& text, const std::string& name, const std::vector<std::string>& values,
                         const std::vector<std::string>& anchors);
Texts without_argument_line(const std::string& text, const std::string& name);

/// A member of JSON by its path ("zero_optimization.stage"), in a file or in a here-document; `value` as JSON.
Texts with_member(const std::string& text, const std::string& path, const std::string& value);

/// Texts in which the word at `word` is the value, or what decides it is: a default, an assignment.
void rewrite_word(const std::string& text, Span word, const std::string& value, int depth, Texts& texts);

std::string replaced(const std::string& text, Span part, const std::string& with);

}  // namespace trivium::planner::launch::patch
