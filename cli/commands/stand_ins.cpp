#include "cli/commands/stand_ins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/files.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

/// Writes its words down, and the small files that they name.
constexpr std::string_view kRecorder = R"sh(#!/bin/bash
unset BASH_ENV
case "${0##*/}" in python*) case "$1" in -c|-V|--version|"") exit 0;; esac;; esac
if [ "${0##*/}" = ray ] && [ "$1" != job ]; then exit 0; fi
until mkdir "$TRIVIUM_RECORDS/lock" 2>/dev/null; do /bin/sleep 0.01; done
n=$(printf %06d "$(ls "$TRIVIUM_RECORDS" | grep -c words)")
printf '%s\0' "${0##*/}" "$@" > "$TRIVIUM_RECORDS/$n.words"
printf '%s' "$TRIVIUM_PREFIX" > "$TRIVIUM_RECORDS/$n.prefix"
k=0
for word in "$@"; do
  for name in "$word" "${word#*=}"; do
    if [ -f "$name" ] && [ "${name%.py}" = "$name" ] && [ "$(stat -c %s "$name")" -lt 1000000 ]; then
      printf '%s' "$name" > "$TRIVIUM_RECORDS/$n.name.$k"; cp "$name" "$TRIVIUM_RECORDS/$n.file.$k"; k=$((k + 1)); break
    fi
  done
done
rmdir "$TRIVIUM_RECORDS/lock"
exit 0
)sh";

/// Runs the command that it was given: the first word that is a program.
constexpr std::string_view kThrough = R"sh(#!/bin/bash
self="${0##*/}"
words=("$@")
case "$self" in ssh|pdsh|clush) last="${words[-1]}"; case "$last" in *" "*) exec bash -c "$last";; esac;; esac
i=0
for word in "$@"; do
  base="${word##*/}"; before=""; [ $i -gt 0 ] && before="${words[$((i - 1))]}"
  case "$before" in --container-image|--job-name|-J|--name|-w|--nodelist|--label) i=$((i + 1)); continue;; esac
  case "$base" in
    bash|sh|torchrun|deepspeed|accelerate|composer|python|python3|python3.*|srun|mpirun|mpiexec|singularity|apptainer|docker|env|numactl|nsys|timeout|nohup|axolotl)
      export TRIVIUM_PREFIX="$TRIVIUM_PREFIX$(printf '%s\037' "$self" "${words[@]:0:$i}")"
      shift $i
      program="$1"; shift
      [ -x "$TRIVIUM_BIN/$base" ] && program="$TRIVIUM_BIN/$base"
      exec "$program" "$@";;
  esac
  case "$word" in -*) ;; *.sh|*.slurm|*.sbatch|./*|/*)
    if [ -f "$word" ] && [ -r "$word" ] && head -c 2 "$word" | grep -q '#!' ; then shift $i; exec bash "$@"; fi;;
  esac
  i=$((i + 1))
done
exit 0
)sh";

/// Runs the batch script, with what Slurm sets.
constexpr std::string_view kBatch = R"sh(#!/bin/bash
while [ $# -gt 0 ]; do
  case "$1" in
    --wrap=*) exec bash -c "${1#--wrap=}";;
    --wrap) exec bash -c "$2";;
    --export=*|--*=*) printf '#SBATCH %s\n' "$1" >> "$TRIVIUM_RECORDS/header"; shift;;
    -N|-n|-p|-A|-J|-t|-o|-e|-q|-d|-D|-w|-x|-C|-c|-G|--nodes|--ntasks|--partition|--account|--job-name|--time|--output|--error|--qos|--dependency|--gres|--array)
      printf '#SBATCH %s %s\n' "$1" "$2" >> "$TRIVIUM_RECORDS/header"; shift 2;;
    -*) shift;;
    *) break;;
  esac
done
[ -f "$1" ] || exit 1
grep '^#SBATCH' "$1" >> "$TRIVIUM_RECORDS/header"
value() { sed -nE "s/^#SBATCH +($1)[= ]*([a-zA-Z:0-9]*[:=])?([0-9]+).*/\3/p" "$TRIVIUM_RECORDS/header" | tail -n 1; }
nodes=$(value '--nodes|-N'); [ -n "$nodes" ] && export SLURM_NNODES=$nodes SLURM_JOB_NUM_NODES=$nodes
each=$(value '--ntasks-per-node'); [ -n "$each" ] && export SLURM_NTASKS_PER_NODE=$each
tasks=$(value '--ntasks|-n'); [ -z "$tasks" ] && [ -n "$nodes" ] && [ -n "$each" ] && tasks=$((nodes * each))
[ -n "$tasks" ] && export SLURM_NTASKS=$tasks SLURM_NPROCS=$tasks
gpus=$(value '--gpus-per-node|--gres'); [ -n "$gpus" ] && export SLURM_GPUS_PER_NODE=$gpus SLURM_GPUS_ON_NODE=$gpus
export SLURM_SUBMIT_DIR="$PWD"
bash "$@"
echo "Submitted batch job 1"
)sh";

constexpr std::string_view kHosts =
    "#!/bin/bash\nfor i in $(seq 0 $((${SLURM_NNODES:-1} - 1))); do echo host$i; done\n";
constexpr std::string_view kGpuList =
    "#!/bin/bash\nfor i in $(seq 0 $((${TRIVIUM_GPUS:-8} - 1))); do case \"$*\" in *index*) echo $i;; *) echo \"GPU "
    "$i\";; esac; done\n";
constexpr std::string_view kNothing = "#!/bin/bash\nexit 0\n";

/// Read by every bash that a script starts: what would fail for want of the real machine does not.
constexpr std::string_view kBefore = R"sh(cd() { builtin cd "$@" 2>/dev/null || return 0; }
module() { return 0; }
conda() { return 0; }
ulimit() { return 0; }
activate() { return 0; }
command_not_found_handle() { return 0; }
source() {
  if [ -e "$1" ] || type -P -- "$1" >/dev/null; then builtin source "$@"; return; fi
  printf '%s\n' "$1" >> "$TRIVIUM_RECORDS/missing"; return 0
}
command() { case "$1" in -v|-V) builtin command "$@";; *) "$@";; esac; }
export -f cd module conda ulimit activate source command_not_found_handle
PATH="$TRIVIUM_BIN:${PATH//$TRIVIUM_BIN:/}"
)sh";

void write_program(const fs::path& path, std::string_view text) {
  base::write_file_atomically(path, text);
  fs::permissions(path, fs::perms::owner_all);
}

std::vector<std::string> fields_between(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(at, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

/// As bash reads it back.
std::string quoted_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

void write_stand_ins(const fs::path& folder) {
  fs::create_directories(folder / "bin");
  fs::create_directories(folder / "records");
  for (const char* name : {"torchrun", "python", "python3", "python3.8", "python3.9", "python3.10", "python3.11",
                           "python3.12", "deepspeed", "accelerate", "ray", "composer", "axolotl"}) {
    write_program(folder / "bin" / name, kRecorder);
  }
  for (const char* name : {"srun", "mpirun", "mpiexec", "docker", "podman", "singularity", "apptainer", "ssh", "pdsh",
                           "clush", "numactl", "nsys", "enroot", "salloc", "nohup", "sudo", "uv", "poetry"}) {
    write_program(folder / "bin" / name, kThrough);
  }
  write_program(folder / "bin" / "sbatch", kBatch);
  write_program(folder / "bin" / "scontrol", kHosts);
  write_program(folder / "bin" / "nvidia-smi", kGpuList);
  for (const char* name :
       {"pip",     "pip3",  "git", "wget", "curl",   "scancel", "squeue", "sinfo", "wandb",   "huggingface-cli",
        "kubectl", "rsync", "scp", "aws",  "gsutil", "module",  "conda",  "sleep", "apt-get", "rocm-smi"}) {
    write_program(folder / "bin" / name, kNothing);
  }
  for (const char* name : {"mkdir", "rm", "cp", "mv", "ln", "chmod", "touch", "rmdir"}) {
    write_program(folder / "bin" / name, fmt::format("#!/bin/bash\n/bin/{} \"$@\" 2>/dev/null\nexit 0\n", name));
  }
  base::write_file_atomically(folder / "before.sh", kBefore);
}

std::vector<RecordedStart> read_records(const fs::path& folder) {
  const fs::path records = folder / "records";
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(records)) {
    if (entry.path().extension() == ".words") names.insert(entry.path().stem().string());
  }
  std::vector<std::string> header;
  if (fs::exists(records / "header")) header = fields_between(base::read_file(records / "header"), '\n');
  std::vector<RecordedStart> starts;
  for (const std::string& name : names) {
    RecordedStart start;
    start.words = fields_between(base::read_file(records / (name + ".words")), '\0');
    start.prefix = fields_between(base::read_file(records / (name + ".prefix")), '\037');
    start.batch_header = header;
    for (int k = 0; fs::exists(records / fmt::format("{}.name.{}", name, k)); ++k) {
      start.files.emplace_back(base::read_file(records / fmt::format("{}.name.{}", name, k)),
                               base::read_file(records / fmt::format("{}.file.{}", name, k)));
    }
    starts.push_back(std::move(start));
  }
  return starts;
}

std::vector<std::string> missing_files(const fs::path& folder) {
  const fs::path list = folder / "records" / "missing";
  return fs::exists(list) ? fields_between(base::read_file(list), '\n') : std::vector<std::string>{};
}

std::string script_of(const std::vector<RecordedStart>& starts, const std::string& title) {
  std::string text = "#!/bin/bash\n";
  if (!starts.empty()) {
    for (const std::string& line : starts.front().batch_header) text += line + "\n";
  }
  text += "# Captured by trivium from: " + title + "\n";
  std::map<std::string, std::string> written;
  for (const RecordedStart& start : starts) {
    for (const auto& [name, content] : start.files) {
      if (const auto found = written.find(name); found != written.end() && found->second == content) continue;
      written[name] = content;
      std::string mark = "TRIVIUM_END";
      while (("\n" + content).find("\n" + mark + "\n") != std::string::npos) mark += "_";
      text += fmt::format("cat > {} <<'{}'\n{}{}{}\n", quoted_word(name), mark, content,
                          content.empty() || content.ends_with('\n') ? "" : "\n", mark);
    }
    std::string line;
    for (const std::string& word : start.prefix) line += quoted_word(word) + " ";
    for (const std::string& word : start.words) line += quoted_word(word) + " ";
    line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace trivium::cli
