// Programs: those that start a training are written down, those that only start others are looked through.
#include <fmt/format.h>

#include <algorithm>

#include "planner/launch/shell/interpreter.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr std::size_t kMostStarted = 2000;
constexpr std::size_t kManyOptions = 4;
constexpr std::size_t kLongestHole = 60;

std::string base_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool is_shell(const std::string& name) { return name == "bash" || name == "sh" || name == "zsh" || name == "dash"; }

bool is_python(const std::string& name) {
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

bool is_launcher(const std::string& name) {
  static const std::set<std::string> kAll{"torchrun", "deepspeed",  "accelerate", "composer",   "torchx",
                                          "axolotl",  "colossalai", "paddlejob",  "horovodrun", "llamafactory-cli",
                                          "ds",       "nemo",       "nemorun"};
  return kAll.contains(name) || is_python(name);
}

bool is_wrapper(const std::string& name) {
  static const std::set<std::string> kAll{
      "srun",     "sudo",      "env",        "nohup",    "time",      "numactl",       "taskset",
      "stdbuf",   "docker",    "podman",     "nsys",     "ncu",       "singularity",   "mpirun",
      "mpiexec",  "apptainer", "ssh",        "pdsh",     "timeout",   "enroot",        "poetry",
      "uv",       "conda",     "micromamba", "aprun",    "jsrun",     "flux",          "bsub",
      "sbatch",   "salloc",    "setsid",     "nice",     "ionice",    "dlprof",        "rocprof",
      "xvfb-run", "kubectl",   "clush",      "parallel", "chronic",   "mpiexec.hydra", "orterun",
      "prun",     "ibrun",     "prterun",    "unbuffer", "catchsegv", "rlaunch",       "ray"};
  return kAll.contains(name);
}

bool is_script(const std::string& word) { return word.ends_with(".py"); }

std::string all_of(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

}  // namespace

void Interpreter::start(std::vector<std::string> words) {
  if (reading_.started.size() >= kMostStarted) fail("the script starts too many programs");
  reading_.started.push_back({std::move(words), prefix_, line_});
}

std::optional<std::string> Interpreter::content_of(const std::string& path) {
  const auto own = reading_.files.find(with_dollars(path));
  if (own != reading_.files.end()) return own->second;
  if (path.starts_with("./")) {
    const auto plain = reading_.files.find(path.substr(2));
    if (plain != reading_.files.end()) return plain->second;
  }
  if (has_hole(path) || !surroundings_.read_file) return std::nullopt;
  return surroundings_.read_file(path);
}

bool Interpreter::run_file(const std::string& path, const std::vector<std::string>& arguments, bool own_shell) {
  const auto content = content_of(path);
  if (!content) return false;
  if (++depth_ > 300 || reading_.sourced.size() > 2000) fail("files source each other without end");
  reading_.sourced.push_back(path);
  const std::string file = std::exchange(file_, path);
  const int line = line_;
  const auto outside = arguments_;
  const bool known = knows_arguments_;
  const auto variables = own_shell ? variables_ : std::map<std::string, Variable>{};
  if (own_shell || !arguments.empty()) {
    arguments_ = arguments;
    knows_arguments_ = true;
  }
  const std::string script = own_shell ? std::exchange(script_, path) : script_;
  std::string plain;
  for (const char c : *content) {
    if (c != '\r' && c != kHoleBegin && c != kHoleEnd && c != '\0') plain += c;
  }
  run_text(plain, 1);
  if (own_shell) {
    variables_ = variables;
    script_ = script;
    if (leaving_ == Leaving::kExit) leaving_ = Leaving::kNot;
  }
  if (leaving_ == Leaving::kReturn) leaving_ = Leaving::kNot;
  if (own_shell || !arguments.empty()) {
    arguments_ = outside;
    knows_arguments_ = known;
  }
  file_ = file;
  line_ = line;
  --depth_;
  return true;
}

Status Interpreter::run_shell(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool takes_text = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') && word.size() < 7;
    if (takes_text && i + 1 < words.size()) {
      const auto variables = variables_;
      const auto outside = arguments_;
      arguments_.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i + 3, words.size())), words.end());
      run_text(words[i + 1], line_);
      arguments_ = outside;
      variables_ = variables;
      if (leaving_ == Leaving::kExit) leaving_ = Leaving::kNot;
      return last_;
    }
    if (word == "-o" || word == "+o") {
      ++i;
      continue;
    }
    if (word.starts_with('-') || word.starts_with('+')) continue;
    const std::vector<std::string> arguments(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
    if (run_file(word, arguments, true)) return 0;
    assume(fmt::format("{} is not read: there is no such file here", word));
    if (arguments.size() >= kManyOptions) start(words);
    return 0;
  }
  if (input_) {
    run_text(*input_, line_);
    return last_;
  }
  return 0;
}

// srun, mpirun, docker and their like: the first word that is a program is what they start.
bool Interpreter::run_wrapper(const std::vector<std::string>& words, Status& status) {
  const std::string name = base_of(words.front());
  if (!is_wrapper(name)) return false;
  status = 0;
  const std::vector<std::string> outside = prefix_;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string base = base_of(words[i]);
    if (name == "sbatch" && (words[i].starts_with("--wrap"))) {
      const bool joined = words[i].starts_with("--wrap=");
      if (joined || i + 1 < words.size()) run_text(joined ? words[i].substr(7) : words[i + 1], line_);
      return true;
    }
    const bool is_file =
        !words[i].starts_with('-') && (base.ends_with(".sh") || base.ends_with(".slurm") || base.ends_with(".sbatch"));
    const bool starts =
        is_launcher(base) || is_shell(base) || functions_.contains(words[i]) || is_wrapper(base) || is_script(base);
    if (!starts && !(is_file && content_of(words[i]))) continue;
    if (words[i - 1] == "--container-image" || words[i - 1] == "--job-name" || words[i - 1] == "-J" ||
        words[i - 1] == "--name")
      continue;
    prefix_.insert(prefix_.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<std::string> inner(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    if (is_file && !starts) inner.insert(inner.begin(), "bash");
    Node none;
    status = run_words(std::move(inner), none);
    prefix_ = outside;
    return true;
  }
  // A command in one string, as ssh and pdsh take it.
  for (const std::string& word : words) {
    if (word.find(' ') == std::string::npos || word.find("--") == std::string::npos) continue;
    prefix_.insert(prefix_.end(), words.begin(), words.end() - 1);
    run_text(word, line_);
    prefix_ = outside;
    return true;
  }
  return true;
}

Status Interpreter::run_program(std::vector<std::string> words) {
  if (++depth_ > 300) fail("programs start each other without end");
  const std::string name = base_of(words.front());
  Status status = 0;
  const auto options = std::ranges::count_if(words, [](const std::string& word) { return word.starts_with("--"); });
  // In a substitution a program is asked for its output, unless it has the options of a training.
  const bool has_many = options >= static_cast<std::ptrdiff_t>(kManyOptions);
  const bool is_training = is_launcher(name) || is_script(words.front());
  if (is_training && (substituting_ == 0 || has_many)) {
    start(std::move(words));
  } else if (is_shell(name)) {
    status = run_shell(words);
  } else if (run_wrapper(words, status)) {
    // looked through
  } else if (words.front().find('/') != std::string::npos && !has_hole(words.front()) &&
             run_file(words.front(), {words.begin() + 1, words.end()}, true)) {
    // a script of the user's own
  } else if (has_many || (substituting_ == 0 && std::ranges::any_of(words, is_script))) {
    start(std::move(words));
  } else if (output_ != nullptr) {
    emit(hole_for("(" + with_dollars(all_of(words)).substr(0, kLongestHole) + ")"));
    status = kUnknown;
  } else {
    status = name == "grep" || name == "which" || name == "command" || name == "diff" || name == "cmp" ? kUnknown : 0;
  }
  --depth_;
  return status;
}

}  // namespace trivium::planner::launch::shell
