// Control flow.
#include "planner/launch/shell/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "planner/launch/shell/pattern.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr std::size_t kMostSteps = 100'000;                // commands of one reading
constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // of all expansions together
constexpr int kDeepestCall = 40;                           // of calls and substitutions
constexpr std::size_t kMostAssumptions = 200;

}  // namespace

bool has_hole(std::string_view text) { return text.find(kHoleBegin) != std::string_view::npos; }

std::string with_dollars(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == kHoleBegin) {
      result += '$';
    } else if (c != kHoleEnd) {
      result += c;
    }
  }
  return result;
}

Interpreter::Interpreter(std::string where, const Surroundings& surroundings)
    : where_(std::move(where)),
      surroundings_(surroundings),
      arguments_(surroundings.arguments),
      knows_arguments_(surroundings.has_arguments),
      script_(surroundings.script) {
  for (const auto& [name, value] : surroundings.given) variables_[name].elements[""] = value;
}

void Interpreter::fail(const std::string& what) const {
  const std::string place = file_.empty() ? where_ : where_ + " (" + file_ + ")";
  throw base::Failure(base::ErrorKind::kInput,
                      fmt::format("{}:{}: {}", base::one_line(place), line_, base::one_line(with_dollars(what))));
}

void Interpreter::assume(const std::string& what) {
  Assumption made{file_, line_, with_dollars(what)};
  if (reading_.assumptions.size() >= kMostAssumptions) return;
  if (std::ranges::find(reading_.assumptions, made) == reading_.assumptions.end()) {
    reading_.assumptions.push_back(std::move(made));
  }
}

void Interpreter::count_step() {
  if (++steps_ > kMostSteps) {
    fail(fmt::format("the script takes more than {} commands; no launch file does", kMostSteps));
  }
}

void Interpreter::count_bytes(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMostBytes) {
    fail(fmt::format("its variables grow beyond {} MiB; no launch file is so large", kMostBytes >> 20));
  }
}

void Interpreter::run_text(const std::string& text, int first_line) {
  NodePtr tree;
  try {
    tree = parse(text, first_line);
  } catch (const SyntaxError& error) {
    line_ = error.line > 0 ? error.line : first_line;
    fail(error.what);
  }
  run(*tree);
}

Reading Interpreter::finish() {
  for (const auto& [name, variable] : variables_) {
    std::string all;
    for (const auto& [index, value] : variable.elements) all += (all.empty() ? "" : " ") + value;
    reading_.variables[name] = all;
  }
  return std::move(reading_);
}

Status Interpreter::run(const Node& node) {
  if (++depth_ > kDeepestCall * 8) fail("commands nest too deep");
  count_step();
  if (node.kind != Kind::kSequence) line_ = node.line;
  try {
    last_ = with_output(node, [&] { return run_kind(node); });
  } catch (const SyntaxError& error) {
    fail(error.what);
  }
  --depth_;
  return last_;
}

// What a command prints goes to its file, its pipeline or the substitution around it.
Status Interpreter::with_output(const Node& node, const std::function<Status()>& action) {
  if (node.redirections.empty()) return action();
  std::string* const outside = output_;
  const std::optional<std::string> input = input_;
  std::string written;
  bool to_file = false;
  for (const Redirection& one : node.redirections) {
    if (one.operation == "<<") {
      const std::string text = one.is_literal ? one.target : expand_document(one.target);
      reading_.documents.push_back(with_dollars(text));
      input_ = text;
    } else if (one.operation == "<<<") {
      input_ = expand_text(one.target) + "\n";
    } else if (one.operation == "<") {
      input_ = content_of(expand_text(one.target));
    } else if ((one.operation == ">" || one.operation == ">>" || one.operation == ">|") && one.descriptor != 2) {
      to_file = true;
    } else if (one.operation == "&>" || one.operation == "&>>") {
      to_file = true;
    }
  }
  if (to_file) output_ = &written;
  const Status status = action();
  output_ = outside;
  input_ = input;
  if (to_file) redirect(node, written);
  return status;
}

void Interpreter::redirect(const Node& node, const std::string& output) {
  for (const Redirection& one : node.redirections) {
    const bool replaces = one.operation == ">" || one.operation == ">|";
    if ((!replaces && one.operation != ">>") || one.descriptor == 2) continue;
    const std::string name = with_dollars(expand_text(one.target));
    std::string& file = reading_.files[name];
    if (replaces) file.clear();
    count_bytes(output.size());
    file += output;
  }
}

Status Interpreter::run_kind(const Node& node) {
  switch (node.kind) {
    case Kind::kSimple:
      return run_simple(node);
    case Kind::kPipeline:
      return run_pipeline(node);
    case Kind::kAnd:
    case Kind::kOr:
      return run_both(node);
    case Kind::kSequence: {
      Status status = 0;
      for (const NodePtr& part : node.parts) {
        status = run(*part);
        if (leaving_ != Leaving::kNot) break;
      }
      return status;
    }
    case Kind::kGroup:
      return run(*node.parts.front());
    case Kind::kSubshell:
      return run_subshell(node);
    case Kind::kIf:
      return run_if(node);
    case Kind::kFor:
      return run_for(node);
    case Kind::kArithmeticFor:
      return run_arithmetic_for(node);
    case Kind::kWhile:
      return run_while(node);
    case Kind::kCase:
      return run_case(node);
    case Kind::kFunction:
      functions_[node.text] = node.parts.front();
      return 0;
    case Kind::kCondition:
      return condition(node);
    case Kind::kArithmetic: {
      const auto value = arithmetic(expand_text("\"" + node.text + "\""));
      return !value ? kUnknown : *value != 0 ? 0 : 1;
    }
  }
  return 0;
}

bool Interpreter::has_exit(const Node& node) {
  if (node.kind == Kind::kSimple && !node.words.empty()) {
    return node.words.front() == "exit" || node.words.front() == "return";
  }
  return std::ranges::any_of(node.parts, [](const NodePtr& part) { return has_exit(*part); });
}

Status Interpreter::run_both(const Node& node) {
  guessed_ = false;
  const Status left = run(*node.parts.front());
  if (leaving_ != Leaving::kNot) return left;
  const bool is_and = node.kind == Kind::kAnd;
  const bool guessed = guessed_ || left == kUnknown;
  if (guessed && has_exit(*node.parts.back())) {
    assume("the script is taken to go on here");
    return 0;
  }
  if (left == kUnknown && is_and) {
    assume("only a run knows whether this condition holds; taken as not");
    return 1;
  }
  if (is_and ? left != 0 : left == 0 || left == kUnknown) return left;
  return run(*node.parts.back());
}

Status Interpreter::run_pipeline(const Node& node) {
  std::string* const outside = output_;
  const std::optional<std::string> input = input_;
  Status status = 0;
  std::string between;
  for (std::size_t i = 0; i < node.parts.size(); ++i) {
    const bool last = i + 1 == node.parts.size();
    std::string written;
    if (i > 0) input_ = between;
    output_ = last ? outside : &written;
    status = run(*node.parts[i]);
    between = std::move(written);
  }
  output_ = outside;
  input_ = input;
  if (node.negated && status != kUnknown) status = status == 0 ? 1 : 0;
  return status;
}

Status Interpreter::run_if(const Node& node) {
  for (std::size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    guessed_ = false;
    const Status holds = run(*node.parts[i]);
    if (leaving_ != Leaving::kNot) return holds;
    const bool guessed = guessed_ || holds == kUnknown;
    line_ = node.parts[i]->parts.empty() ? node.line : node.parts[i]->parts.front()->line;
    const bool takes = holds == 0;
    if (guessed && takes && has_exit(*node.parts[i + 1])) {
      assume("this condition is taken as false: the script would end here");
      continue;
    }
    const bool has_else = node.parts.size() % 2 == 1 && i + 3 == node.parts.size();
    if (guessed && !takes && has_else && has_exit(*node.parts.back())) {
      assume("this condition is taken as true: the script would end otherwise");
      return run(*node.parts[i + 1]);
    }
    if (holds == kUnknown) assume("only a run knows whether this condition holds; taken as not");
    if (takes) return run(*node.parts[i + 1]);
  }
  if (node.parts.size() % 2 == 1) return run(*node.parts.back());
  return 0;
}

/// Whether the loop at hand ends.
bool Interpreter::leaves_body() {
  if (leaving_ == Leaving::kNot) return false;
  if (leaving_ == Leaving::kReturn || leaving_ == Leaving::kExit) return true;
  const bool ends = leaving_ == Leaving::kBreak || leaving_loops_ > 1;
  if (--leaving_loops_ <= 0) leaving_ = Leaving::kNot;
  return ends;
}

Status Interpreter::run_for(const Node& node) {
  const std::vector<std::string> items = node.has_items ? expand_words(node.words) : arguments_;
  Status status = 0;
  for (const std::string& item : items) {
    if (has_hole(item)) assume(fmt::format("the loop over {} runs once", item));
    set(node.text, item);
    status = run(*node.parts.front());
    if (leaves_body()) break;
  }
  return status;
}

Status Interpreter::run_arithmetic_for(const Node& node) {
  const auto value = [&](std::size_t part) { return arithmetic(expand_text("\"" + node.words[part] + "\"")); };
  const bool endless = node.words[1].find_first_not_of(" \t") == std::string::npos;
  value(0);
  Status status = 0;
  while (true) {
    const auto holds = endless ? std::optional<std::int64_t>(1) : value(1);
    if (holds == 0) break;
    status = run(*node.parts.front());
    if (leaves_body()) break;
    if (!holds) {
      assume("only a run knows how often this loop turns; taken as once");
      break;
    }
    value(2);
  }
  return status;
}

Status Interpreter::run_while(const Node& node) {
  Status status = 0;
  while (true) {
    const Status holds = run(*node.parts.front());
    if (leaving_ != Leaving::kNot) break;
    if (holds == kUnknown) {
      line_ = node.line;
      assume("only a run knows how often this loop turns; passed over");
      break;
    }
    if ((holds == 0) == node.negated) break;
    status = run(*node.parts.back());
    if (leaves_body()) break;
  }
  return status;
}

Status Interpreter::run_case(const Node& node) {
  const std::string word = expand_text(node.text);
  const auto value = known(word);
  bool falls = false;
  Status status = 0;
  for (const CaseArm& arm : node.arms) {
    bool fits = falls;
    for (const std::string& pattern : arm.patterns) {
      if (!value) {
        fits = fits || pattern == "*";
      } else {
        fits = fits || matches(expand_pattern(pattern), *value);
      }
    }
    if (!fits) continue;
    if (!value || guessed_) {
      line_ = node.line;
      if (has_exit(*arm.body)) {
        assume(fmt::format("no case of {} is taken: the script would end here", word));
        return 0;
      }
      if (!value) assume(fmt::format("{} is taken as none of the cases named", word));
    }
    status = run(*arm.body);
    if (leaving_ != Leaving::kNot || arm.end == ";;" || arm.end.empty()) return status;
    falls = arm.end == ";&";
  }
  return status;
}

Status Interpreter::run_subshell(const Node& node) {
  const auto variables = variables_;
  const auto functions = functions_;
  const auto arguments = arguments_;
  const Status status = run(*node.parts.front());
  variables_ = variables;
  functions_ = functions;
  arguments_ = arguments;
  if (leaving_ != Leaving::kNot) leaving_ = Leaving::kNot;
  return status;
}

Status Interpreter::run_simple(const Node& node) {
  std::vector<std::string> words = expand_words(node.words);
  // A variable that is not set is no command: the words after it are.
  while (words.size() > 1 && words.front().size() > 2 && words.front().front() == kHoleBegin &&
         words.front().find(kHoleEnd) + 1 == words.front().size()) {
    assume(fmt::format("{} is not known here; taken as empty", words.front()));
    words.erase(words.begin());
  }
  if (words.empty()) {
    for (const Assigned& assigned : node.assigned) assign(assigned);
    return 0;
  }
  static const std::set<std::string> kDeclares{"export", "declare", "local", "readonly", "typeset"};
  if (kDeclares.contains(words.front())) {
    for (const Assigned& assigned : node.assigned) assign(assigned);
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos && equals > 0 && is_name_start(word.front())) {
        set(word.substr(0, equals), word.substr(equals + 1));
      }
    }
    return 0;
  }
  // Assignments before a command hold for it alone.
  const auto variables = node.assigned.empty() ? std::map<std::string, Variable>{} : variables_;
  for (const Assigned& assigned : node.assigned) assign(assigned);
  const Status status = run_words(std::move(words), node);
  if (!node.assigned.empty()) variables_ = variables;
  return status;
}

Status Interpreter::run_words(std::vector<std::string> words, const Node& node) {
  if (const auto function = functions_.find(words.front()); function != functions_.end()) {
    const NodePtr body = function->second;
    return call(body, words);
  }
  Status status = 0;
  if (run_builtin(words, node, status)) return status;
  return run_program(std::move(words));
}

Status Interpreter::call(const NodePtr& function, const std::vector<std::string>& words) {
  if (++depth_ > kDeepestCall) fail(fmt::format("{} calls itself too often", words.front()));
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  const std::vector<std::string> outside = std::exchange(arguments_, arguments);
  const bool known = std::exchange(knows_arguments_, true);
  const Status status = run(*function);
  arguments_ = outside;
  knows_arguments_ = known;
  if (leaving_ == Leaving::kReturn) leaving_ = Leaving::kNot;
  --depth_;
  return status;
}

Reading read(std::string_view text, const std::string& where, const Surroundings& surroundings) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == kHoleBegin || c == kHoleEnd || c == '\0') continue;
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += c;
  }
  Interpreter interpreter(where, surroundings);
  interpreter.run_text(plain, 1);
  return interpreter.finish();
}

}  // namespace trivium::planner::launch::shell
