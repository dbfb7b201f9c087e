#include "runtime/flight/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quote.h"
#include "program/ir/text.h"
#include "runtime/backend.h"

namespace trivium::runtime::flight {
namespace {

using program::Group;
using program::Op;
using program::Program;
using program::Task;

constexpr double kSecondsPerNs = 1e-9;

// Null where the entry names none, also in a record of another program.
const Task* task_of(const Program& program, int rank, const Entry& entry) {
  const auto& tasks = program.role_of(rank).tasks;
  const auto at = static_cast<std::size_t>(entry.task);
  return entry.task >= 0 && at < tasks.size() ? &tasks[at] : nullptr;
}

const Op* op_of(const Program& program, const Task& task, const Entry& entry) {
  const auto& ops = program.body_of(task).ops;
  const auto at = static_cast<std::size_t>(entry.op);
  return entry.op >= 0 && at < ops.size() ? &ops[at] : nullptr;
}

std::string segment_of(const Program& program, const Task& task, const Entry& entry) {
  for (const program::Segment& segment : program.body_of(task).segments) {
    if (entry.op >= segment.begin && entry.op < segment.end) return segment.name;
  }
  return "";
}

bool is_same(const Entry& a, const Entry& b) {
  return a.doing == b.doing && a.step == b.step && a.task == b.task && a.op == b.op;
}

const Log* log_of(const std::vector<Log>& logs, int rank) {
  const auto found = std::find_if(logs.begin(), logs.end(), [&](const Log& log) { return log.rank == rank; });
  return found == logs.end() || found->entries.empty() ? nullptr : &*found;
}

int peer_of(const Program& program, int rank, const Task& task) {
  program::Coordinates other = program.mesh.coordinates(rank);
  other.pipeline = task.peer_stage;
  return program.mesh.rank(other);
}

// Groups whose members may have other tasks: there, being in any collective of that group is having come.
bool crosses_stages(Group group) {
  return group == Group::kModel || group == Group::kWorld || group == Group::kEmbedding;
}

bool has_come(const Program& program, int rank, const Entry& there, const Entry& here, Group group) {
  if (there.step > here.step) return true;
  if (!crosses_stages(group)) return is_same(there, here);
  const Task* task = task_of(program, rank, there);
  const Op* op = task != nullptr ? op_of(program, *task, there) : nullptr;
  return there.step == here.step && there.doing == Doing::kCollective && op != nullptr && op->group == group;
}

std::string waiting(const Program& program, const Log& log, const std::vector<Log>& logs) {
  const std::vector<int> missing = waits_for(program, log.rank, log.entries.back(), logs);
  if (missing.empty()) return "";
  return fmt::format(", waiting for rank{} {}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
}

std::string line_of(const Program& program, const Log& log, const std::vector<Log>& logs, const std::string& fate) {
  if (log.entries.empty()) return fmt::format("rank {} (process {}) {}, nothing recorded\n", log.rank, log.pid, fate);
  return fmt::format("rank {} (process {}) {} in {}{}\n", log.rank, log.pid, fate,
                     describe(program, log.rank, log.entries.back()), waiting(program, log, logs));
}

Finding finding_of(std::vector<int> culprits, std::vector<std::pair<bool, std::string>> lines) {
  std::stable_partition(lines.begin(), lines.end(), [](const auto& line) { return line.first; });
  Finding finding{std::move(culprits), ""};
  for (const auto& [is_culprit, line] : lines) finding.text += line;
  return finding;
}

// Who stands still never comes, though it may have entered the same collective: the others wait for it.
std::vector<Log> without(std::vector<Log> logs, const std::vector<int>& halted) {
  for (Log& log : logs) {
    if (std::find(halted.begin(), halted.end(), log.rank) != halted.end()) log.entries.clear();
  }
  return logs;
}

}  // namespace

std::string describe(const Program& program, int rank, const Entry& entry) {
  const Task* task = task_of(program, rank, entry);
  if (entry.doing == Doing::kCheckpoint) {
    return fmt::format("step {}, not begun: between steps, where a checkpoint is written when it is due", entry.step);
  }
  if (task == nullptr) return fmt::format("step {}, {}", entry.step, name_of(entry.doing));
  if (entry.doing == Doing::kTransfer) {
    return fmt::format("step {}, {}: transfer {} (task {})", entry.step, program::describe(*task), task->transfer,
                       entry.task);
  }
  const Op* op = op_of(program, *task, entry);
  return fmt::format("step {}, {}, {}: {} (task {}, op {})", entry.step, program::describe(*task),
                     segment_of(program, *task, entry), op != nullptr ? name_of(op->kind) : "?", entry.task, entry.op);
}

std::vector<int> waits_for(const Program& program, int rank, const Entry& entry, const std::vector<Log>& logs) {
  Group group = Group::kNone;
  const Task* task = task_of(program, rank, entry);
  if (entry.doing == Doing::kTransfer && task != nullptr) {
    return {peer_of(program, rank, *task)};  // ends when the other end has done its part
  }
  if (entry.doing == Doing::kCollective && task != nullptr) {
    if (const Op* op = op_of(program, *task, entry)) group = op->group;
  } else if (entry.doing == Doing::kStepStart || entry.doing == Doing::kLoss || entry.doing == Doing::kCheckpoint) {
    group = Group::kWorld;
  }
  std::vector<int> missing;
  if (group == Group::kNone) return missing;
  for (const int member : program.mesh.members(group, rank)) {
    const Log* log = log_of(logs, member);
    const bool came = log != nullptr &&
                      (entry.doing == Doing::kCollective ? has_come(program, member, log->entries.back(), entry, group)
                                                         : is_same(log->entries.back(), entry));
    if (member != rank && !came) missing.push_back(member);
  }
  return missing;
}

Finding explain_death(const Program& program, const std::vector<Log>& logs) {
  std::vector<int> culprits;
  std::vector<std::pair<bool, std::string>> lines;
  // Where one vanished without a word, the others were ended, or gave up, because of it.
  const bool vanished = std::any_of(logs.begin(), logs.end(), [](const Log& log) { return log.end == End::kNone; });
  const auto is_culprit = [&](const Log& log) { return log.end == (vanished ? End::kNone : End::kFailed); };
  for (const Log& log : logs) {
    if (is_culprit(log)) culprits.push_back(log.rank);
  }
  const std::vector<Log> others = without(logs, culprits);
  for (const Log& log : logs) {
    std::string fate = "died";
    if (log.end == End::kFailed) fate = fmt::format("gave up ({})", base::one_line(log.message));
    if (log.end == End::kTerminated) fate = "was ended";
    if (log.end == End::kWell) fate = "had finished";
    lines.emplace_back(is_culprit(log), line_of(program, log, others, fate));
  }
  return finding_of(std::move(culprits), std::move(lines));
}

Finding explain_hang(const Program& program, const std::vector<Log>& logs) {
  enum class Kind { kMoves, kStopped, kDead };
  const auto kind_of = [](const Log& log) {
    const std::optional<char> state = process_state(log.pid);
    if (!state || state == 'Z' || state == 'X') return Kind::kDead;
    return state == 'T' || state == 't' ? Kind::kStopped : Kind::kMoves;
  };
  std::vector<Kind> kinds;
  std::vector<int> culprits;
  for (const Log& log : logs) {
    kinds.push_back(kind_of(log));
    if (kinds.back() != Kind::kMoves) culprits.push_back(log.rank);
  }
  const std::vector<Log> others = without(logs, culprits);
  const bool halted = !culprits.empty();
  std::vector<std::pair<bool, std::string>> lines;
  const std::int64_t now = now_ns();
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const Log& log = logs[i];
    const bool waits = !log.entries.empty() && !waits_for(program, log.rank, log.entries.back(), others).empty();
    // Without a process that is stopped or dead, whoever waits for nobody keeps the others.
    const bool culprit = kinds[i] != Kind::kMoves || (!halted && !waits);
    if (culprit && !halted) culprits.push_back(log.rank);
    const double seconds =
        log.entries.empty() ? 0 : static_cast<double>(now - log.entries.back().start_ns) * kSecondsPerNs;
    const std::string fate = kinds[i] == Kind::kDead      ? "died"
                             : kinds[i] == Kind::kStopped ? "is stopped"
                                                          : fmt::format("has been for {:.1f} s", seconds);
    lines.emplace_back(culprit, line_of(program, log, others, fate));
  }
  return finding_of(std::move(culprits), std::move(lines));
}

}  // namespace trivium::runtime::flight
