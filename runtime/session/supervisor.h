// What the ranks of a supervised run know of the process that watches over them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trivium::runtime::session {

/// The process that started this one's ranks with `run --processes`, told in the environment. Immutable.
class Supervisor {
 public:
  /// That of this process; one that never goes where there is none.
  static Supervisor of_this_process();

  bool exists() const { return process_ > 0; }
  /// Whether it has ended, however it did: nobody would end or explain this rank any more.
  bool is_gone() const;

  const std::string& flight_record() const { return flight_record_; }  ///< where this rank notes what it does
  bool wants_resume() const { return resume_; }                        ///< whether to go on from the newest checkpoint

 private:
  int process_ = 0;
  std::uint64_t start_ = 0;
  std::string flight_record_;
  bool resume_ = false;
};

/// The variables that tell ranks that this process is their supervisor.
std::vector<std::pair<std::string, std::string>> environment_of_ranks(const std::string& flight_record, bool resume);

/// When a process of this machine was started, in ticks since the machine was; 0: there is no such process. With its
/// number it names a process for good.
std::uint64_t start_of_process(int process);

/// Whether a process of this machine has children, dead ones that nobody asked for their exit code aside. True where
/// the system does not say.
bool has_children(int process);

/// Whether `process` is `ancestor` or was started by it, by one of its children and so on.
bool descends_from(int process, int ancestor);

}  // namespace trivium::runtime::session
