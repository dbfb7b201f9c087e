// Arguments looked up by name.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/quote.h"
#include "planner/launch/import_parts.h"

namespace trivium::planner::launch {
namespace {

// Beginnings of names that say nothing of how a training is split or what it costs.
constexpr const char* kBeside[] = {"data-",
                                   "save",
                                   "load",
                                   "log-",
                                   "tensorboard",
                                   "wandb",
                                   "eval-",
                                   "tokenizer",
                                   "vocab-",
                                   "merge-",
                                   "split",
                                   "mock-",
                                   "rdzv",
                                   "master-",
                                   "node-rank",
                                   "ckpt",
                                   "exit-",
                                   "timing",
                                   "init-",
                                   "no-load",
                                   "no-save",
                                   "dist-",
                                   "num-workers",
                                   "hostfile",
                                   "transformer-impl",
                                   "make-vocab",
                                   "num-epochs",
                                   "train-data",
                                   "valid-data",
                                   "test-data",
                                   "deepspeed",
                                   "distributed",
                                   "local-rank",
                                   "override",
                                   "use-mcore",
                                   "finetune",
                                   "kill-switch",
                                   "abort-on",
                                   "tee",
                                   "max-restarts",
                                   "train-weighted",
                                   "valid-weighted",
                                   "valid-num",
                                   "sync-tp-duplicated",
                                   "name",
                                   "skip-train-iteration",
                                   "loss-scale",
                                   "initial-loss-scale",
                                   "codecarbon"};

// Of assigned settings: objects and sections.
constexpr const char* kBesideAssigned[] = {"cfg.checkpoint", "cfg.dataset", "cfg.logger", "cfg.tokenizer", "cfg.rng",
                                           "cfg.validation", "checkpoint.", "metrics.",   "profiling.",    "comm.",
                                           "job.",           "validation.", "debug.",     "experimental."};

bool is_beside(const std::string& name) {
  const auto begins = [&](const char* part) { return name.starts_with(part); };
  if (std::any_of(std::begin(kBesideAssigned), std::end(kBesideAssigned), begins)) return true;
  return std::any_of(std::begin(kBeside), std::end(kBeside), [&](const char* p) { return name.starts_with(p); });
}

/// 220_000_000, as Python takes it.
std::string without_underscores(const std::string& word) {
  std::string digits;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool between = i > 0 && i + 1 < word.size() && std::isdigit(static_cast<unsigned char>(word[i - 1])) != 0 &&
                         std::isdigit(static_cast<unsigned char>(word[i + 1])) != 0;
    if (word[i] != '_' || !between) digits += word[i];
  }
  return digits;
}

/// How to say what only a run knows.
std::string remedy_for(const std::string& word) {
  const std::size_t dollar = word.find('$');
  if (dollar == std::string::npos) return "";
  std::size_t end = dollar + 1;
  while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) ++end;
  const std::string name = word.substr(dollar + 1, end - dollar - 1);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return ", which the file never sets";
  return fmt::format(", which the file never sets; --env {}=VALUE does", base::one_line(name));
}

std::string words_of(const Settings& settings, const Argument& argument) {
  std::string text = settings.spelled(argument.name) + (settings.script().assigns ? " =" : "");
  for (const std::string& value : argument.values) text += " " + value;
  return base::one_line(text);
}

}  // namespace

std::string Settings::spelled(const std::string& name) const { return (script_.assigns ? "" : "--") + name; }

void Settings::fail(const std::string& what) const {
  throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: {}", where_, what));
}

void Settings::fail_at(const Argument& argument, const std::string& what) const {
  if (argument.line == 0) fail(what);
  throw base::Failure(base::ErrorKind::kInput, fmt::format("{}:{}: {}", where_, argument.line, what));
}

const Argument* Settings::find(std::initializer_list<const char*> names) {
  const Argument* found = nullptr;
  for (const char* name : names) {
    for (const Argument& argument : script_.arguments) {
      if (argument.name != name) continue;
      read_.insert(name);
      found = &argument;
    }
    if (found != nullptr) break;
  }
  return found;
}

std::optional<std::string> Settings::text(std::initializer_list<const char*> names) {
  const Argument* argument = find(names);
  if (argument == nullptr) return std::nullopt;
  if (argument->values.empty()) fail_at(*argument, fmt::format("{} has no value", spelled(argument->name)));
  return argument->values.front();
}

bool Settings::is_on(std::initializer_list<const char*> names) {
  const Argument* argument = find(names);
  if (argument == nullptr) return false;
  return argument->values.empty() || argument->values.front() == "true" || argument->values.front() == "True";
}

std::optional<std::int64_t> Settings::count(std::initializer_list<const char*> names, std::int64_t low,
                                            std::int64_t high) {
  const auto word = text(names);
  if (!word) return std::nullopt;
  const std::string digits = without_underscores(*word);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < low || value > high) {
    fail_at(*find(names), fmt::format("{} must be a whole number from {} to {}, not {}{}", spelled(*names.begin()), low,
                                      high, base::quote(*word), remedy_for(*word)));
  }
  return value;
}

std::optional<double> Settings::number(std::initializer_list<const char*> names) {
  const auto word = text(names);
  if (!word) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
  if (error != std::errc() || end != word->data() + word->size() || !std::isfinite(value) || value < 0) {
    fail_at(*find(names),
            fmt::format("{} must be a number, 0 or more, not {}", spelled(*names.begin()), base::quote(*word)));
  }
  return value;
}

std::vector<Argument> Settings::unread() const {
  std::vector<Argument> rest;
  for (const Argument& argument : script_.arguments) {
    if (!read_.contains(argument.name)) rest.push_back(argument);
  }
  return rest;
}

void lose_unread(const Settings& settings, std::vector<Loss>& losses) {
  for (const shell::Assumption& made : settings.script().assumptions) {
    const std::string place = made.file.empty() ? "" : base::one_line(made.file) + ", ";
    losses.push_back({fmt::format("{}line {}", place, made.line), base::one_line(made.text)});
  }
  const std::vector<Argument> rest = settings.unread();
  if (settings.script().is_dump) {
    if (!rest.empty())
      losses.push_back({"arguments", fmt::format("{} others of the log were passed over", rest.size())});
    return;
  }
  std::string beside;
  for (const Argument& argument : rest) {
    if (is_beside(argument.name)) {
      beside += (beside.empty() ? "" : " ") + settings.spelled(base::one_line(argument.name));
    } else {
      losses.push_back({settings.spelled(base::one_line(argument.name)),
                        fmt::format("{} has no place in a plan", words_of(settings, argument))});
    }
  }
  if (!beside.empty())
    losses.push_back({"arguments", fmt::format("ignored, about data, logs and checkpoints: {}", beside)});
}

}  // namespace trivium::planner::launch
