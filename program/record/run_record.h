// What a real run leaves behind: the plan, one line a step, and the measured timeline.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/timeline.h"

namespace trivium::program {

struct StepRecord {
  std::int64_t step = 0;  ///< 0-based
  double loss = 0;        ///< mean over the tokens of the global batch
  double grad_norm = 0;   ///< before clipping
  double learning_rate = 0;
  double seconds = 0;  ///< wall time of the step, all ranks
  double tokens_per_s = 0;
  double loss_scale = 0;      ///< of fp16 runs: what the loss was multiplied by; 0: the run has none
  bool skipped = false;       ///< gradients overflowed at that scale: nothing was learnt, and grad_norm is 0
  std::optional<double> mfu;  ///< of the ranks' devices' dense peak, where that is known
  std::optional<double> validation_loss;  ///< after this step, where it was measured
};

/// A step that stands out (runtime/executor/spikes.h).
struct Spike {
  std::int64_t step = 0;
  std::string of;  ///< "loss" or "grad_norm"
  double value = 0;
  double typical = 0;  ///< median of the steps before
};

struct RunRecord {
  Job job;
  nlohmann::json cluster;    ///< as it stood in the plan file, or its name
  std::string backend;       ///< "cpu-threads", "cpu-mpi", "cuda-nccl"
  std::string program_hash;  ///< of the ordered program's text: events are keys into it
  std::vector<StepRecord> steps;
  std::vector<Spike> spikes;
  Timeline timeline;                            ///< of the last steps
  std::vector<std::int64_t> peak_memory_bytes;  ///< by rank, what the arenas really hold
  std::string file = "run record";              ///< what errors name: where it was read, with the pointer inside
  std::map<std::string, std::string> host;  ///< what ran it: "processor", "cores", "system", "compiler", "library"…
};

/// Schema `trivium.run/1`. Events are arrays in the order of `fields`.
nlohmann::json to_json(const RunRecord& record);
nlohmann::json to_json(const StepRecord& step);
/// Errors: Failure(kInput) with file and pointer.
RunRecord run_record_from_json(const nlohmann::json& json, const std::string& where);

/// FNV-1a of the ordered program's text over all stages, as 16 hexadecimal digits.
std::string hash_of(const Program& program);

}  // namespace trivium::program
