#include "tests/cli/process.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

// In /proc/net/tcp and tcp6 127.0.0.1, ::1 and ::ffff:127.0.0.1 are what foreign_listeners leaves out.
// A child that has ended is reaped by the shell while it waits for `sleep`, so its folder in /proc goes.
constexpr const char* kFunctions =
    "await() { while [ -e /proc/$1 ] && ! eval \"$2\"; do sleep 0.05; done; }\n"
    "asked_by_signals() { grep -Eq 'SigBlk:.*[2367abef]$' /proc/$1/status; }\n"
    "foreign_listeners() { for q in $@; do for f in /proc/$q/fd/*; do\n"
    "s=$(readlink $f | sed -n 's/socket:.\\(.*\\)./\\1/p'); [ -z \"$s\" ] ||\n"
    "awk -v s=$s '$10 == s && $4 == \"0A\" && $2 !~ /^(0100007F|0*01000000|0*FFFF00000100007F):/ { print $2 }' "
    "/proc/$q/net/tcp /proc/$q/net/tcp6; done; done; }\n";

}  // namespace

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Workplace::Workplace() {
  std::string name = (fs::temp_directory_path() / "trivium-cli-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  folder_ = name;
  fs::create_directory(folder_ / "work");
}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Outcome Workplace::run(const std::string& command) const {
  write(".command", kFunctions + command + "\n");
  const std::string home = folder_.string();
  const std::string line = "cd '" + home + "/work' && env COLUMNS= TRIVIUM_NO_PROGRESS=1 PATH='" +
                           fs::path(TRIVIUM_PROGRAM).parent_path().string() +
                           "':\"$PATH\" NO_COLOR=1 LC_ALL=C XDG_DATA_HOME='" + home + "/data' sh ./.command >'" + home +
                           "/out' 2>'" + home + "/err' </dev/null";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content_of(folder_ / "out");
  outcome.err = content_of(folder_ / "err");
  return outcome;
}

std::string Workplace::read(const std::string& name) const { return content_of(folder_ / "work" / name); }

void Workplace::write(const std::string& name, const std::string& content) const {
  std::ofstream(folder_ / "work" / name, std::ios::binary) << content;
}

}  // namespace trivium::cli
