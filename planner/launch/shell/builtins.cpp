// Commands that a reading carries out: those of the shell, and small programs that only make text.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/launch/shell/interpreter.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr std::int64_t kMostNumbers = 10'000;

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> rows;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    rows.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return rows;
}

std::string joined(const std::vector<std::string>& words, std::size_t from, const char* between) {
  std::string all;
  for (std::size_t i = from; i < words.size(); ++i) all += (i > from ? between : "") + words[i];
  return all;
}

std::optional<std::int64_t> whole(const std::string& text) {
  if (text.empty() || text.size() > 15) return std::nullopt;
  const std::size_t sign = text.front() == '-' ? 1 : 0;
  if (text.size() == sign || text.find_first_not_of("0123456789", sign) != std::string::npos) return std::nullopt;
  return std::stoll(text);
}

}  // namespace

void Interpreter::emit(const std::string& text) {
  if (output_ == nullptr) return;
  count_bytes(text.size());
  *output_ += text;
}

Status Interpreter::echo(const std::vector<std::string>& words) {
  std::size_t first = 1;
  bool ends_line = true;
  while (first < words.size() && (words[first] == "-n" || words[first] == "-e" || words[first] == "-ne")) {
    ends_line = ends_line && words[first].find('n') == std::string::npos;
    ++first;
  }
  emit(joined(words, first, " ") + (ends_line ? "\n" : ""));
  return 0;
}

Status Interpreter::print_formatted(const std::vector<std::string>& words) {
  if (words.size() > 2 && words[1] == "-v") {
    std::string made;
    std::string* const outside = std::exchange(output_, &made);
    std::vector<std::string> rest{"printf"};
    rest.insert(rest.end(), words.begin() + 3, words.end());
    print_formatted(rest);
    output_ = outside;
    set(words[2], made);
    return 0;
  }
  const std::size_t first = words.size() > 1 && words[1] == "--" ? 2 : 1;
  if (words.size() <= first) return 1;
  std::string text;
  std::size_t next = first + 1;
  do {
    const std::string& form = words[first];
    for (std::size_t i = 0; i < form.size(); ++i) {
      if (form[i] == '\\' && i + 1 < form.size()) {
        const char c = form[++i];
        text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else if (form[i] == '%' && i + 1 < form.size()) {
        const std::size_t kind = form.find_first_of("sdiqfbxg%", i + 1);
        if (kind == std::string::npos) return kUnknown;
        if (form[kind] == '%') {
          text += '%';
        } else {
          const std::string value = next < words.size() ? words[next] : "";
          ++next;
          const std::string size = form.substr(i + 1, kind - i - 1);
          const auto number = whole(value);
          const auto width = whole(size);
          if (form[kind] == 'd' && number && width && *width < 30) {
            text +=
                size.front() == '0' ? fmt::format("{:0{}}", *number, *width) : fmt::format("{:{}}", *number, *width);
          } else if (size.empty() &&
                     (form[kind] == 's' || form[kind] == 'd' || form[kind] == 'i' || form[kind] == 'b')) {
            text += value;
          } else {
            text += hole_for("(printf " + form + ")");
          }
        }
        i = kind;
      } else {
        text += form[i];
      }
    }
  } while (next < words.size() && next > first + 1);
  emit(text);
  return 0;
}

Status Interpreter::expr(const std::vector<std::string>& words) {
  const std::string text = joined(words, 1, " ");
  static const std::set<std::string> kText{":", "match", "substr", "index", "length"};
  if (std::ranges::any_of(words, [](const std::string& word) { return kText.contains(word); })) {
    emit(hole_for("(" + joined(words, 0, " ") + ")") + "\n");
    return kUnknown;
  }
  const auto value = arithmetic(text);
  emit((value ? std::to_string(*value) : hole_for("(expr " + with_dollars(text) + ")")) + "\n");
  return value ? (*value != 0 ? 0 : 1) : kUnknown;
}

Status Interpreter::read_variable(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-a" && i + 1 < words.size()) {
      Variable& array = variables_[words[++i]];
      array = {};
      array.is_array = true;
      std::size_t index = 0;
      for (const std::string& part : rows_of(input_.value_or(""))) {
        for (std::size_t from = 0; from < part.size();) {
          from = part.find_first_not_of(' ', from);
          if (from == std::string::npos) break;
          const std::size_t end = std::min(part.find(' ', from), part.size());
          array.elements[fmt::format("{:09}", index++)] = part.substr(from, end - from);
          from = end;
        }
        break;
      }
      return 0;
    }
    if (words[i] == "-d" || words[i] == "-p" || words[i] == "-t") {
      ++i;
    } else if (!words[i].starts_with('-')) {
      names.push_back(words[i]);
    }
  }
  if (!input_ || names.empty()) return kUnknown;
  const bool all = std::ranges::find(words, std::string("")) != words.end();  // read -r -d '' NAME <<EOF
  const std::vector<std::string> rows = rows_of(*input_);
  std::string rest = all ? *input_ : rows.empty() ? "" : rows.front();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t end = i + 1 < names.size() ? std::min(rest.find(' '), rest.size()) : rest.size();
    set(names[i], rest.substr(0, end));
    rest.erase(0, std::min(rest.size(), end + 1));
  }
  if (!all && !rows.empty()) input_ = joined(rows, 1, "\n");
  return rows.empty() ? 1 : 0;
}

Status Interpreter::source(const std::vector<std::string>& words) {
  if (words.size() < 2) return 1;
  const std::string path = words[1];
  const std::vector<std::string> arguments(words.begin() + 2, words.end());
  if (run_file(path, arguments, false)) return 0;
  assume(fmt::format("{} is not read: there is no such file here, and what it sets is not known", path));
  return 0;
}

void Interpreter::set_options(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") {
      arguments_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      knows_arguments_ = true;
      return;
    }
    if (words[i] == "-o" || words[i] == "+o") {
      ++i;
    } else if (!words[i].starts_with('-') && !words[i].starts_with('+')) {
      arguments_.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      knows_arguments_ = true;
      return;
    }
  }
}

bool Interpreter::run_control(const std::vector<std::string>& words, Status& status) {
  const std::string& name = words.front();
  const auto number = [&](int otherwise) {
    const auto value = words.size() > 1 ? whole(words[1]) : std::nullopt;
    return value ? static_cast<int>(std::clamp<std::int64_t>(*value, 0, 255)) : otherwise;
  };
  status = 0;
  if (name == "exit" || name == "return") {
    status = number(last_ == kUnknown ? 0 : last_);
    leaving_ = name == "exit" ? Leaving::kExit : Leaving::kReturn;
  } else if (name == "break" || name == "continue") {
    leaving_ = name == "break" ? Leaving::kBreak : Leaving::kContinue;
    leaving_loops_ = std::max(1, number(1));
  } else if (name == "shift") {
    const auto count = static_cast<std::ptrdiff_t>(number(1));
    status = count > std::ssize(arguments_) ? 1 : 0;
    if (status == 0) arguments_.erase(arguments_.begin(), arguments_.begin() + count);
  } else if (name == "set") {
    set_options(words);
  } else if (name == "unset") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      variables_.erase(words[i]);
      unset_.insert(words[i]);
    }
  } else if (name == "let") {
    std::optional<std::int64_t> value = 0;
    for (std::size_t i = 1; i < words.size(); ++i) value = arithmetic(words[i]);
    status = !value ? kUnknown : *value != 0 ? 0 : 1;
  } else {
    return false;
  }
  return true;
}

bool Interpreter::run_builtin(const std::vector<std::string>& words, const Node&, Status& status) {
  const std::string& name = words.front();
  if (run_control(words, status)) return true;
  status = 0;
  if (name == ":" || name == "true" || name == "cd" || name == "pushd" || name == "popd" || name == "trap" ||
      name == "wait" || name == "ulimit" || name == "umask" || name == "shopt" || name == "alias" || name == "module" ||
      name == "mkdir" || name == "rm" || name == "sleep" || name == "touch" || name == "chmod") {
    return true;
  }
  if (name == "false") {
    status = 1;
  } else if (name == "echo") {
    status = echo(words);
  } else if (name == "printf") {
    status = print_formatted(words);
  } else if (name == "test" || name == "[") {
    std::vector<std::string> inside(words.begin() + 1, words.end());
    if (name == "[" && !inside.empty() && inside.back() == "]") inside.pop_back();
    status = test(inside);
  } else if (name == "expr") {
    status = expr(words);
  } else if (name == "source" || name == ".") {
    status = source(words);
  } else if (name == "eval") {
    run_text(joined(words, 1, " "), line_);
    status = last_;
  } else if (name == "read" || name == "mapfile" || name == "readarray") {
    status = name == "read" ? read_variable(words) : kUnknown;
  } else if (name == "exec" || name == "command" || name == "builtin") {
    if (words.size() < 2) return true;
    status = run_program({words.begin() + 1, words.end()});
    if (name == "exec") leaving_ = Leaving::kExit;
  } else {
    return run_text_tool(words, status);
  }
  return true;
}

bool Interpreter::run_text_tool(const std::vector<std::string>& words, Status& status) {
  const std::string& name = words.front();
  std::string operand = words.size() > 1 ? words.back() : "";
  status = 0;
  if (name == "cat" || name == "tee") {
    if (name == "tee" || words.size() == 1 || words[1] == "-") {
      const std::string text = input_.value_or("");
      if (name == "tee" && words.size() > 1 && !operand.starts_with('-')) reading_.files[with_dollars(operand)] = text;
      emit(text);
      return true;
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].starts_with('-')) continue;
      const auto content = content_of(words[i]);
      emit(content ? *content : hole_for("(cat " + with_dollars(words[i]) + ")"));
    }
    return true;
  }
  if (name == "basename" && words.size() > 1) {
    std::string base = words[1];
    if (has_hole(base)) {
      emit(hole_for("(basename " + with_dollars(base) + ")"));
      return true;
    }
    base = base.substr(base.find_last_of('/') + 1);
    if (words.size() > 2 && base.ends_with(words[2])) base.erase(base.size() - words[2].size());
    emit(base + "\n");
    return true;
  }
  if (name == "dirname" || name == "realpath" || name == "readlink") {
    if (name == "dirname") {
      const std::size_t slash = operand.find_last_of('/');
      operand = slash == std::string::npos ? "." : operand.substr(0, std::max<std::size_t>(slash, 1));
    }
    emit(operand + "\n");
    return true;
  }
  if (name == "pwd") {
    emit(".\n");
    return true;
  }
  if (name == "seq") {
    const auto first = words.size() > 2 ? whole(words[1]) : std::optional<std::int64_t>(1);
    const auto step = words.size() > 3 ? whole(words[2]) : std::optional<std::int64_t>(1);
    const auto last = whole(operand);
    if (!first || !step || !last || *step == 0 || std::abs((*last - *first) / *step) > kMostNumbers) return false;
    for (std::int64_t i = *first; *step > 0 ? i <= *last : i >= *last; i += *step) emit(std::to_string(i) + "\n");
    return true;
  }
  if (name == "bc" && input_) {
    try {
      if (input_->find_first_of(".;=") == std::string::npos) {
        if (const auto value = arithmetic(*input_)) {
          emit(std::to_string(*value) + "\n");
          return true;
        }
      }
    } catch (const SyntaxError&) {
      return false;
    }
  }
  if (name == "xargs" && words.size() == 1 && input_) {
    emit(joined(rows_of(*input_), 0, " ") + "\n");
    return true;
  }
  return false;
}

}  // namespace trivium::planner::launch::shell
