// trivium capture: what a launch script really starts, found by running it with stand-ins.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/private_folder.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/commands/stand_ins.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/process/confined.h"
#include "cli/render/output.h"

extern char** environ;  // NOLINT: of POSIX

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestCopied = std::uintmax_t{1} << 20;
constexpr std::uintmax_t kMostCopied = std::uintmax_t{128} << 20;
constexpr int kMostFiles = 20'000;

struct CaptureOptions {
  std::vector<std::string> command, environment;
  std::string output;
  int limit = 60, nodes = 0, gpus = 8;
};

/// The folder's small files: what scripts read. Larger ones are data, and links lead elsewhere.
void copy_folder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  std::uintmax_t bytes = 0;
  int files = 0;
  std::error_code ignored;
  for (auto it = fs::recursive_directory_iterator(from, fs::directory_options::skip_permission_denied, ignored);
       it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    const fs::path target = to / it->path().lexically_relative(from);
    if (it->is_symlink(ignored)) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
      if (!it->is_regular_file(ignored)) continue;
    }
    if (it->is_directory(ignored)) {
      const std::string name = it->path().filename().string();
      if (name == ".git" || name == "node_modules" || name == "__pycache__") {
        it.disable_recursion_pending();
      } else {
        fs::create_directories(target, ignored);
      }
      continue;
    }
    if (!it->is_regular_file(ignored) || it->file_size(ignored) > kLargestCopied) continue;
    bytes += it->file_size(ignored);
    if (++files > kMostFiles || bytes > kMostCopied) {
      base::say("warning: {} is large; only {} of its files are in the working copy\n", base::one_line(from.string()),
                files - 1);
      return;
    }
    fs::copy_file(it->path(), target, ignored);
  }
}

std::vector<std::string> environment_of(const CaptureOptions& options, const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (char** pair = environ; *pair != nullptr; ++pair) {
    const std::string text = *pair;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && !text.starts_with("BASH_FUNC"))
      all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const std::string nodes = std::to_string(options.nodes > 0 ? options.nodes : 1);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", "host[0-99]"},
                                          {"SLURM_NODELIST", "host[0-99]"},
                                          {"SLURM_JOBID", "1"},
                                          {"SLURM_JOB_ID", "1"},
                                          {"SLURM_PROCID", "0"},
                                          {"SLURM_LOCALID", "0"},
                                          {"SLURM_NODEID", "0"},
                                          {"SLURM_GPUS_ON_NODE", std::to_string(options.gpus)},
                                          {"SLURM_NNODES", nodes},
                                          {"SLURM_JOB_NUM_NODES", nodes}}) {
    all.emplace(name, value);
  }
  if (options.nodes > 0) all["SLURM_NNODES"] = all["SLURM_JOB_NUM_NODES"] = nodes;
  const fs::path bin = folder / "bin";
  all["TRIVIUM_GPUS"] = std::to_string(options.gpus);
  all["TRIVIUM_BIN"] = bin.string();
  all["TRIVIUM_RECORDS"] = (folder / "records").string();
  all["TRIVIUM_PREFIX"] = "";
  all["BASH_ENV"] = (folder / "before.sh").string();
  all["TMPDIR"] = (folder / "tmp").string();
  all["PATH"] = bin.string() + ":" + all["PATH"];
  for (const std::string& pair : options.environment) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw base::Failure(base::ErrorKind::kUsage, fmt::format("--env: {} is no NAME=VALUE", base::quote(pair)));
    }
    all[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  std::vector<std::string> pairs;
  for (const auto& [name, value] : all) pairs.push_back(name + "=" + value);
  return pairs;
}

/// The last line that the command printed: what it says when it gives up.
std::string last_words(const fs::path& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last.empty() ? "" : "; its last words: " + base::quote(last);
}

void run_capture(const CaptureOptions& options) {
  const base::PrivateFolder room(base::temporary_folder(), "trivium-capture-");
  const fs::path& folder = room.path();
  write_stand_ins(folder);
  fs::create_directories(folder / "tmp");
  copy_folder(fs::current_path(), folder / "work");
  ConfinedCommand command;
  command.words = options.command;
  const fs::path stand_in = folder / "bin" / command.words.front();
  if (command.words.front().find('/') == std::string::npos && fs::exists(stand_in))
    command.words.front() = stand_in.string();
  command.working_folder = folder / "work";
  command.writable = folder;
  command.log = folder / "log";
  command.environment = environment_of(options, folder);
  command.limit = std::chrono::seconds(options.limit);
  const ConfinedOutcome outcome = run_confined(command);
  const std::string title = base::one_line(fmt::format("{}", fmt::join(options.command, " ")));
  if (!outcome.is_sealed) {
    base::say("warning: this system grants no name spaces: what {} writes outside its working copy is written\n",
              title);
  }
  const std::vector<RecordedStart> starts = read_records(folder);
  for (const std::string& file : missing_files(folder)) {
    base::say("warning: {} is not there; what it sets is not known\n", base::one_line(file));
  }
  if (outcome.timed_out) base::say("warning: {} was ended after {} s\n", title, options.limit);
  if (starts.empty()) {
    throw base::Failure(
        base::ErrorKind::kInput,
        fmt::format("{}: starts none of torchrun, python, deepspeed, accelerate, ray, composer and axolotl "
                    "(exit status {}){}",
                    title, outcome.status, last_words(command.log)));
  }
  const std::string script = script_of(starts, title);
  if (options.output.empty()) {
    std::fwrite(script.data(), 1, script.size(), stdout);
  } else {
    base::write_file_atomically(options.output, script);
  }
}

}  // namespace

void add_capture(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CaptureOptions>();
  CLI::App* command =
      app.add_subcommand("capture", "Run a launch script with stand-ins, and write down what it would start");
  command->add_option("COMMAND", options->command, "As you start it, after --: -- sbatch train.sh")
      ->required()
      ->type_name("WORD...");
  command->add_option("--env", options->environment, "NAME=VALUE for the command")->type_name("NAME=VALUE");
  command
      ->add_option("--nodes", options->nodes,
                   "Nodes that Slurm's variables tell of; default: the batch script's, else 1")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--gpus", options->gpus, "GPUs that nvidia-smi's stand-in lists")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--limit", options->limit, "Seconds after which the command is ended")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  add_output(*command, "-o,--output", options->output, "Write the script there instead of on stdout",
             OutputKind::kLaunch);
  command->callback([options, &exit_code] {
    run_capture(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
