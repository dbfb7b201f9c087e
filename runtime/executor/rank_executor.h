// One rank's interpreter: runs the Program's host order, op by op. It takes no scheduling decision.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/timeline.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/arenas.h"
#include "runtime/executor/documents.h"
#include "runtime/executor/lane_order.h"
#include "runtime/executor/replay.h"
#include "runtime/executor/wire.h"
#include "runtime/flight/ring.h"
#include "runtime/kernel.h"

namespace trivium::runtime {

class RankExecutor {
 public:
  /// What parameters hold afterwards: their first values, or 0, where the caller has others for them.
  enum class Start : std::uint8_t { kFirstValues, kEmpty };
  /// Everything that is given must outlive this. The communicator takes the backend's memory.
  RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
               Backend& backend, Start start = Start::kFirstValues);
  /// On a core.
  RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus);

  /// What one step came to, equal on all ranks.
  struct Outcome {
    double loss = 0;       ///< mean over the global batch's tokens
    double grad_norm = 0;  ///< of the loss itself; not finite where gradients overflowed, and then nothing was learnt
  };

  /// Runs one optimizer step. `events`, where given, receives this rank's ops with times relative to a start that all
  /// ranks share. Blocks on partners; throws Aborted when one of them failed.
  Outcome step(const StepValues& values, std::vector<program::Event>* events);

  /// Number of the first sample of the next steps; without it, of each: step x global batch.
  void samples_from(std::int64_t first) { first_sample_ = first; }

  /// Loss of one global batch of `corpus`, from its sample `first_sample` on: forward passes alone, nothing is learnt.
  /// The parameters must be those of a finished step. `values`: of the step before.
  double evaluate(const data::Corpus& corpus, std::int64_t first_sample, const StepValues& values);

  /// From now on segments that are the same work every time are given to the backend as such, in steps without events.
  void replay_segments() { replays_.emplace(program_, role_); }

  /// Called once a step when gradients are reduced and not yet applied.
  void before_optimizer(std::function<void()> call) { before_optimizer_ = std::move(call); }

  /// Every instruction from now on is noted there; it must outlive this.
  /// `names_tasks`: whether who reads the record has this program.
  void record_flight(flight::Ring* ring, bool names_tasks = true) { flight_ = ring, names_tasks_ = names_tasks; }

  const Arenas& arenas() const { return arenas_; }
  Arenas& arenas() { return arenas_; }
  /// What the spaces hold now, in memory of the host.
  Arenas arenas_on_host(std::span<const program::Space> spaces) const { return arenas_.on_host(backend_, spaces); }
  int rank() const { return communicator_.rank(); }

 private:
  RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
               std::unique_ptr<Backend> core);
  /// Every lane of the program on which ranks exchange data, with this one's peers there.
  std::vector<Communicator::LanePeers> lanes_of_transfers() const;
  void begin(const StepValues& values);
  void begin_history();
  void execute();
  double sum_over_ranks(double loss);
  bool is_forward(const program::Task& task) const;
  void keep_apart(const program::Task& task, int segment);
  void run_segment(std::int32_t task, int segment);
  bool is_of_module(const program::Task& task, int segment) const;
  void pass_over(std::int32_t task, int segment);
  void run_ops(std::int32_t task, const program::Segment& segment);
  void replay_segment(std::int32_t task, int segment);
  void run_kernel(const program::Task& task, const program::Op& op);
  void exchange_spills(const program::Task& task, const program::Op& op, int number);
  void run_collective(const program::Task& task, const program::Op& op, int number);
  int place_in(program::Group group) const { return places_[static_cast<std::size_t>(group)]; }
  void post(std::int32_t task);
  void end_batch();
  void finish_transfer(std::int32_t task);
  void await(std::int32_t task, int segment);
  void post_ahead();
  bool may_post(const program::Task& task) const;
  void join_side_lanes();
  std::int64_t first_sample_of(const program::Task& task) const;
  void read_samples(const program::Task& task);
  int peer_rank(const program::Task& task) const;
  std::int32_t stamp(program::Lane lane) { return events_ != nullptr ? backend_.stamp(lane) : -1; }
  void note(std::int32_t task, std::int32_t op, program::Lane lane, std::int32_t start, std::int32_t end);
  void tell_events();
  void record(flight::Doing doing, std::int32_t task = -1, std::int32_t op = -1) {
    if (flight_ != nullptr) flight_->note(doing, now_ns(), values_.step, names_tasks_ ? task : -1, op);
  }

  const program::Program& program_;
  Communicator& communicator_;
  const data::Corpus& corpus_;
  std::unique_ptr<Backend> core_;  // where no backend was given
  Backend& backend_;
  program::Coordinates at_;
  int shard_rank_;
  const program::Role& role_;
  Arenas arenas_;
  LaneOrder lanes_;
  std::optional<Replays> replays_;
  /// By body, segment, chunk and frames.
  std::map<std::array<std::int64_t, 6>, std::uint64_t> replay_numbers_;
  Wire wire_;
  data::Sampler sampler_;
  StepDocuments documents_;
  const data::Corpus* reading_ = &corpus_;  // what samples come from, and in which order
  const data::Sampler* samples_ = &sampler_;
  std::optional<std::int64_t> first_sample_;
  bool forward_only_ = false;
  std::vector<int> groups_;                // handle by program::Group; -1 where this rank is in none
  std::vector<std::vector<int>> members_;  // by program::Group
  std::vector<int> places_;                // by program::Group: of this rank among the members
  enum class Transfer : std::uint8_t { kIdle, kPosted, kDone };
  struct TransferTimes {
    std::int32_t posted = -1, ended = -1;  // stamps
  };
  std::vector<Transfer> transfers_;            // by task
  std::vector<TransferTimes> transfer_times_;  // by task
  std::vector<std::int32_t> ahead_;            // transfers in the host's order; empty where lanes order them
  std::size_t next_ahead_ = 0;                 // of them: all before it are posted
  std::vector<std::int16_t> segments_done_;    // by task
  std::vector<std::int32_t> batch_;            // transfers posted together, not yet under way
  StepValues values_;
  struct Noted {
    std::int32_t task, op;
    program::Lane lane;
    std::int32_t start, end;  // stamps
  };
  std::vector<Noted> noted_;
  std::vector<program::Event>* events_ = nullptr;
  flight::Ring* flight_ = nullptr;
  bool names_tasks_ = true;
  bool optimizer_begun_ = false;
  bool has_history_ = false;  // fp8 delayed: a step before left largest numbers
  std::function<void()> before_optimizer_;
};

}  // namespace trivium::runtime
