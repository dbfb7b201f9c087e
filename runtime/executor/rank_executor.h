// One rank's interpreter: runs the Program's host order, op by op. It takes no scheduling decision.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.h"
#include "program/timeline.h"
#include "runtime/communicator.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/arenas.h"
#include "runtime/kernel.h"

namespace trivium::runtime {

class RankExecutor {
 public:
  /// Parameters hold their first values afterwards. The program, the communicator and the corpus must outlive this.
  RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus);

  /// What one step came to, equal on all ranks.
  struct Outcome {
    double loss = 0;  ///< mean over the global batch's tokens
    double grad_norm = 0;
  };

  /// Runs one optimizer step. `events`, where given, receives this rank's ops with times relative to a start that all
  /// ranks share. Blocks on partners; throws Aborted when one of them failed.
  Outcome step(const StepValues& values, std::vector<program::Event>* events);

  /// Called once a step when gradients are reduced and not yet applied.
  void before_optimizer(std::function<void()> call) { before_optimizer_ = std::move(call); }

  const Arenas& arenas() const { return arenas_; }
  int rank() const { return communicator_.rank(); }

 private:
  void run_segment(std::int32_t task, int segment);
  void run_collective(const program::Task& task, const program::Op& op, int number);
  int place_in(program::Group group) const { return places_[static_cast<std::size_t>(group)]; }
  void post(std::int32_t task);
  void finish_transfer(std::int32_t task);
  void await(const program::Task& task, int segment);
  void read_samples(const program::Task& task);
  void note(std::int32_t task, std::int32_t op, program::Lane lane, std::int64_t start_ns, std::int64_t end_ns);
  int peer_rank(const program::Task& task) const;

  const program::Program& program_;
  Communicator& communicator_;
  const data::Corpus& corpus_;
  program::Coordinates at_;
  int shard_rank_;
  const program::Role& role_;
  Arenas arenas_;
  data::Sampler sampler_;
  std::vector<int> groups_;                   // handle by program::Group; -1 where this rank is in none
  std::vector<std::vector<int>> members_;     // by program::Group
  std::vector<int> places_;                   // by program::Group: of this rank among the members
  std::vector<std::vector<Kernel>> kernels_;  // by body, by op; null for communication
  enum class Transfer : std::uint8_t { kIdle, kPosted, kDone };
  std::vector<Transfer> transfers_;      // by task
  std::vector<std::int64_t> posted_ns_;  // by task
  StepValues values_;
  std::vector<program::Event>* events_ = nullptr;
  std::int64_t step_start_ns_ = 0;
  bool optimizer_begun_ = false;
  std::function<void()> before_optimizer_;
};

}  // namespace trivium::runtime
