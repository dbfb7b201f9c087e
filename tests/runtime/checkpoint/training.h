// Toy trainings that leave checkpoints behind.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "program/verify/verified.h"
#include "runtime/checkpoint/checkpointer.h"
#include "runtime/executor/collect.h"
#include "tests/runtime/executor/harness.h"
#include "tests/support/verified_program.h"

namespace trivium::runtime::checkpoint {

/// A fresh folder that lives as long as one test.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Values and moments by "value of NAME", "first moment of NAME", …
using Whole = std::map<std::string, std::vector<double>>;

using support::verified_program;

/// The toy job with fewer layers, so that many of them take seconds.
program::Job small_job(const program::Plan& plan);

struct Toy {
  std::vector<double> losses, scales;
  Whole whole;  ///< after the last step
};

/// Trains with checkpoints in `folder`; `total`: steps the schedule of the learning rate knows, `stop_after`: steps
/// after which it is interrupted (0: never).
Toy train(const program::Job& job, const std::filesystem::path& folder, std::int64_t total, bool resume = false,
          std::int64_t stop_after = 0, std::int64_t every = 0, std::int64_t keep = 0, const BatchRamp& ramp = {});

/// What the ranks of `program` hold once they loaded the checkpoint.
Whole loaded(const program::Program& program, const std::filesystem::path& checkpoint, bool& replicas_agree);

/// The name of the first tensor that differs in any bit; empty when none does.
std::string first_difference(const Whole& a, const Whole& b);

}  // namespace trivium::runtime::checkpoint
