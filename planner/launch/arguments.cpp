#include "planner/launch/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::planner::launch {
namespace {

constexpr std::size_t kLineWidth = 110;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

/// Options that only a training has; those of model, split and batch.
bool tells_training(std::string_view name) {
  constexpr std::array<std::string_view, 26> kNames{"num-layers",
                                                    "hidden-size",
                                                    "num-attention-heads",
                                                    "seq-length",
                                                    "micro-batch-size",
                                                    "global-batch-size",
                                                    "tensor-model-parallel-size",
                                                    "pipeline-model-parallel-size",
                                                    "train-iters",
                                                    "train-samples",
                                                    "lr",
                                                    "deepspeed-config",
                                                    "deepspeed",
                                                    "job.config-file",
                                                    "model-name-or-path",
                                                    "per-device-train-batch-size",
                                                    "gradient-accumulation-steps",
                                                    "yaml-cfg",
                                                    "bf16",
                                                    "fp16",
                                                    "config-file",
                                                    "module",
                                                    "config",
                                                    "recipe",
                                                    "learning-rate",
                                                    "batch-size"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// `--name`, and not `-1` or `-m`.
bool is_option(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && std::isalnum(static_cast<unsigned char>(word[2])) != 0;
}

/// The only thing in the word is what the file does not say.
bool is_hole(std::string_view word) {
  return word.size() > 2 && word.front() == shell::kHoleBegin && word.find(shell::kHoleEnd) + 1 == word.size();
}

/// The words of a command as its program's parser sees them.
class ArgumentReader {
 public:
  ArgumentReader(Script& script, int line) : script_(script), line_(line) {}

  void take(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (is_option(word)) {
        add_name(word);
      } else if (is_hole(word)) {
        hole(word);
      } else if (word.ends_with(".py") ||
                 (word.size() > 1 && word.front() == '-' && std::isalpha(word[1] & 0x7f) != 0)) {
        open_ = false;
      } else if (open_ && !word.empty()) {
        script_.arguments.back().values.push_back(shell::with_dollars(word));
      } else if (word.find('=') != std::string::npos && !word.starts_with('-')) {
        script_.overrides.push_back(shell::with_dollars(word));
      }
    }
  }

 private:
  void add_name(const std::string& text) {
    const std::size_t equals = text.find('=');
    Argument argument{shell::with_dollars(text.substr(2, equals == std::string::npos ? equals : equals - 2)), {}};
    std::ranges::replace(argument.name, '_', '-');
    if (equals != std::string::npos) argument.values.push_back(shell::with_dollars(text.substr(equals + 1)));
    open_ = equals == std::string::npos;
    script_.arguments.push_back(std::move(argument));
  }

  // As the value of an option it is kept, so that an option that needs one is refused by the name of what is missing.
  void hole(const std::string& word) {
    const std::string shown = shell::with_dollars(word);
    if (open_ && script_.arguments.back().values.empty()) {
      script_.arguments.back().values.push_back(shown);
      open_ = false;
      return;
    }
    script_.assumptions.push_back({"", line_, shown + " is not set in the file; taken as empty"});
  }

  Script& script_;
  int line_;
  bool open_ = false;  // whether the last argument may still take values
};

int training_score(const shell::Started& started) {
  Script script;
  ArgumentReader(script, started.line).take(started.words);
  const auto told = std::ranges::count_if(script.arguments, [](const Argument& a) { return tells_training(a.name); });
  int score = 4 * static_cast<int>(told);
  for (const std::string& word : started.words) {
    if (!word.ends_with(".py") && word.find("train") == std::string::npos) continue;
    const auto names = [&](const char* part) { return word.find(part) != std::string::npos; };
    if (names("train")) score += 2;
    if (names("preprocess") || names("convert") || names("generate") || names("eval") || names("tools/")) score -= 20;
  }
  return score;
}

/// Nothing is started: variables that hold options are the training's, where another file starts it.
void take_variables(const shell::Reading& reading, Script& script) {
  std::vector<std::pair<int, std::string>> holders;
  for (const auto& [name, value] : reading.variables) {
    if (trimmed(value).starts_with("--")) holders.emplace_back(reading.variable_lines.at(name), name);
  }
  std::ranges::sort(holders);
  for (const auto& [line, name] : holders) {
    std::vector<std::string> words;
    std::istringstream stream(reading.variables.at(name));
    for (std::string word; stream >> word;) words.push_back(std::move(word));
    ArgumentReader(script, line).take(words);
    script.assumptions.push_back(
        {"", line, "the file starts nothing; the options in " + name + " are taken as a training's"});
  }
}

/// `#SBATCH --nodes=4`, `#SBATCH -N 4`: the names of long options, by themselves.
void read_batch_header(const std::vector<std::string>& lines, Script& script) {
  for (const std::string& line : lines) {
    if (!line.starts_with("#SBATCH")) continue;
    std::istringstream stream(line.substr(7));
    for (std::string word; stream >> word;) {
      if (word.starts_with('#')) break;
      std::string value;
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
        word.erase(equals);
      } else if (word.size() > 2 && word.front() == '-' && word[1] != '-') {
        value = word.substr(2);
        word.erase(2);
      } else {
        stream >> value;
      }
      if (word == "-N") word = "--nodes";
      if (word == "-n") word = "--ntasks";
      if (word == "-G") word = "--gpus";
      if (word.starts_with("--")) script.batch[word.substr(2)] = value;
    }
  }
}

/// What Slurm sets in the job, where its header says it.
std::map<std::string, std::string> slurm_variables(const Script& script,
                                                   const std::map<std::string, std::string>& given) {
  std::map<std::string, std::string> known = given;
  const auto pass = [&](const char* option, std::initializer_list<const char*> names) {
    const auto found = script.batch.find(option);
    if (found == script.batch.end()) return;
    std::string digits = found->second;
    if (const std::size_t colon = digits.find_last_of(':'); colon != std::string::npos) digits.erase(0, colon + 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return;
    for (const char* name : names) known.emplace(name, digits);
  };
  pass("nodes", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  pass("ntasks", {"SLURM_NTASKS", "SLURM_NPROCS"});
  pass("ntasks-per-node", {"SLURM_NTASKS_PER_NODE"});
  pass("gpus-per-node", {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"});
  pass("gres", {"SLURM_GPUS_ON_NODE"});
  pass("cpus-per-task", {"SLURM_CPUS_PER_TASK"});
  const auto number = [&](const char* name) {
    const auto found = known.find(name);
    return found == known.end() || found->second.size() > 6 ? 0 : std::atol(found->second.c_str());
  };
  if (const long nodes = number("SLURM_NNODES"), each = number("SLURM_NTASKS_PER_NODE"); nodes > 0 && each > 0) {
    known.emplace("SLURM_NTASKS", std::to_string(nodes * each));
  }
  return known;
}

void choose_training(const shell::Reading& reading, Script& script) {
  const shell::Started* best = nullptr;
  int best_score = 0;
  std::vector<int> lines;
  for (const shell::Started& started : reading.started) {
    const int score = training_score(started);
    if (best == nullptr || score >= best_score) best = &started, best_score = score;
    if (score > 8) lines.push_back(started.line);
  }
  if (best == nullptr || best_score < 0) {
    take_variables(reading, script);
    return;
  }
  ArgumentReader(script, best->line).take(best->words);
  script.command = best->words;
  script.prefix = best->prefix;
  script.line = best->line;
  for (std::string& word : script.command) word = shell::with_dollars(word);
  for (std::string& word : script.prefix) word = shell::with_dollars(word);
  if (lines.size() > 1) {
    script.assumptions.push_back(
        {"", best->line, fmt::format("the script starts {} trainings; the last is read", lines.size())});
  }
}

// "  name ........ value" between the two rules of Megatron's log.
Script read_dump(const std::vector<std::string>& lines, std::size_t begin) {
  Script script;
  script.is_dump = true;
  for (std::size_t i = begin + 1; i < lines.size() && lines[i].find("end of arguments") == std::string::npos; ++i) {
    const std::size_t dots = lines[i].find(" ...");
    if (dots == std::string::npos) continue;
    std::string name = lines[i].substr(0, dots);
    name = name.substr(std::min(name.size(), name.find_last_of(" \t") + 1));
    const std::size_t value = lines[i].find_first_not_of('.', dots + 1);
    if (name.empty() || value == std::string::npos) continue;
    const std::string text = trimmed(lines[i].substr(value));
    if (text == "None" || text == "False" || text.empty()) continue;
    std::replace(name.begin(), name.end(), '_', '-');
    Argument argument{name, {}};
    if (text != "True") argument.values.push_back(text);
    script.arguments.push_back(std::move(argument));
  }
  return script;
}

// Of a value without single quotes: variables of the shell are left to it.
std::string quoted(const std::string& value) {
  if (value.starts_with('$')) return '"' + value + '"';
  const bool plain = value.find_first_of(" |*()") == std::string::npos && !value.empty();
  return plain ? value : "'" + value + "'";
}

}  // namespace

Script read_script(std::string_view text, const std::string& where, const shell::Surroundings& around) {
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("--- arguments ---") != std::string::npos) return read_dump(lines, i);
  }
  Script script;
  read_batch_header(lines, script);
  shell::Surroundings surroundings = around;
  surroundings.given = slurm_variables(script, around.given);
  shell::Reading reading = shell::read(text, where, surroundings);
  script.assumptions = std::move(reading.assumptions);
  choose_training(reading, script);
  script.variables = std::move(reading.variables);
  script.documents = std::move(reading.documents);
  script.files = std::move(reading.files);
  return script;
}

std::string shell_lines(const std::vector<Argument>& arguments) {
  std::string text, line = " ";
  for (const Argument& argument : arguments) {
    std::string words = " --" + argument.name;
    for (const std::string& value : argument.values) words += " " + quoted(value);
    if (line.size() + words.size() > kLineWidth) {
      text += line + " \\\n";
      line = " ";
    }
    line += words;
  }
  return text + line + "\n";
}

}  // namespace trivium::planner::launch
