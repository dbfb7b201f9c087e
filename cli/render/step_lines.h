// The steps of a training on stdout.
#pragma once

#include <cstdint>
#include <string>

namespace trivium::cli {

/// Lines that a training prints while it goes on, whoever still reads them.
class StepLines {
 public:
  /// Prints the line of a step. Where stdout is closed or full, says so once on stderr, and later lines are left out:
  /// the training matters more.
  void add(std::int64_t step, const std::string& line);

  /// At the end of the training. Errors: Failure(kRuntime) naming the first step whose line was lost.
  void require_whole() const;

 private:
  std::string lost_;  ///< what went wrong with the first line that was lost; empty: none was
};

}  // namespace trivium::cli
