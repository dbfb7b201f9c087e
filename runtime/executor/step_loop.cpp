#include "runtime/executor/step_loop.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/executor/rank_executor.h"
#include "runtime/executor/spikes.h"
#include "runtime/executor/step_timeline.h"
#include "runtime/told_by.h"

namespace trivium::runtime {
namespace {

// A rank that fails tells the others while its buffers still stand: a partner may be reading them.
template <class Work>
auto or_abort(Communicator& communicator, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    communicator.abort(told_by(communicator.rank(), error.what()));
    throw;
  }
}

/// A rank's executor and checkpointer, made anew for every size of the batch: what lasts from step to step moves along.
class Phases {
 public:
  Phases(const program::Program& program, Communicator& communicator, const data::Corpus& corpus, Backend& backend,
         const TrainOptions& options, flight::Ring* ring)
      : program_(program),
        communicator_(communicator),
        corpus_(corpus),
        backend_(backend),
        options_(options),
        ring_(ring) {
    start(program, RankExecutor::Start::kFirstValues);
  }

  RankExecutor& executor() { return *executor_; }
  StepCheckpointer* checkpointer() { return checkpointer_.get(); }
  const program::Program& running() const { return smaller_ ? smaller_->get() : program_; }

  /// Before a step of so many samples. Whether that is another number than before.
  bool enter(std::int64_t batch) {
    if (batch == running().settings.batch.samples) return false;
    if (ring_ != nullptr) ring_->note(flight::Doing::kStarting, now_ns(), 0);  // it may take longer than a step
    const Arenas kept = executor_->arenas_on_host(kLasting);
    const auto before = std::exchange(smaller_, std::nullopt);  // whose map `kept` has
    checkpointer_.reset();
    executor_.reset();
    if (batch != program_.settings.batch.samples) {
      smaller_ = options_.program_for(batch);
    }
    start(running(), RankExecutor::Start::kEmpty);
    executor_->arenas().take(backend_, kept, kLasting);
    backend_.finish();
    return true;
  }

 private:
  static constexpr std::array kLasting{program::Space::kParameter, program::Space::kOffloadedParameter,
                                       program::Space::kOptimizer, program::Space::kOffloadedState};

  void start(const program::Program& program, RankExecutor::Start with) {
    executor_ = std::make_unique<RankExecutor>(program, communicator_, corpus_, backend_, with);
    executor_->record_flight(ring_, !smaller_);
    if (options_.replay) executor_->replay_segments();
    if (options_.checkpointer)
      checkpointer_ = options_.checkpointer(program, communicator_, executor_->arenas(), backend_);
  }

  const program::Program& program_;
  Communicator& communicator_;
  const data::Corpus& corpus_;
  Backend& backend_;
  const TrainOptions& options_;
  flight::Ring* ring_;
  std::optional<program::VerifiedProgram> smaller_;  // while the batch is ramped up
  std::unique_ptr<RankExecutor> executor_;
  std::unique_ptr<StepCheckpointer> checkpointer_;
};

/// On rank 0: the records of the steps, told as they come, and what stands out of them.
class StepLog {
 public:
  StepLog(const program::Program& program, const TrainOptions& options)
      : options_(options), token_flops_(program.settings.model_flops_per_token) {}

  void add(program::StepRecord record) {
    if (options_.peak_flops_per_s > 0) record.mfu = token_flops_ * record.tokens_per_s / options_.peak_flops_per_s;
    steps_.push_back(record);
    if (options_.on_step) options_.on_step(record);
    if (record.skipped) return;
    for (program::Spike& spike : watch_.after(record)) {
      if (options_.on_spike) options_.on_spike(spike);
      spikes_.push_back(std::move(spike));
    }
  }

  void move_to(TrainResult& result) {
    result.steps = std::move(steps_);
    result.spikes = std::move(spikes_);
  }

 private:
  const TrainOptions& options_;
  double token_flops_;
  SpikeWatch watch_;
  std::vector<program::StepRecord> steps_;
  std::vector<program::Spike> spikes_;
};

class StepLoop {
 public:
  StepLoop(const program::Program& program, Communicator& communicator, const data::Corpus& corpus, Backend& backend,
           const TrainOptions& options, flight::Ring* ring)
      : program_(program),
        communicator_(communicator),
        backend_(backend),
        options_(options),
        ring_(ring),
        phases_(program, communicator, corpus, backend, options, ring),
        timeline_(options.timeline_steps),
        log_(program, options),
        now_{.scale = first_scale(program.settings)} {
    std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
    for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
    world_ = communicator.make_group(everyone);
  }

  TrainResult run() {
    if (phases_.checkpointer() != nullptr) now_ = phases_.checkpointer()->begin(now_);
    bool stopped = false;
    while (now_.step < options_.steps && !stopped && result_.diverged.empty()) {
      stopped = is_told_to_stop();
      if (!stopped) step();
    }
    if (stopped) keep(true);
    result_.timeline = timeline_.gathered(program_, communicator_, world_);
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      std::int64_t bytes = phases_.executor().arenas().bytes() + backend_.own_bytes();
      communicator_.broadcast(world_, &bytes, sizeof bytes, rank);
      result_.memory_bytes.push_back(bytes);
    }
    log_.move_to(result_);
    return std::move(result_);
  }

 private:
  /// Decided by rank 0: all ranks do the same number of steps.
  bool is_told_to_stop() {
    std::int64_t stop = communicator_.rank() == 0 && options_.stop.stop_requested() ? 1 : 0;
    communicator_.broadcast(world_, &stop, sizeof stop, 0);
    return stop != 0;
  }

  void step() {
    const program::Settings& settings = program_.settings;
    const std::int64_t batch = batch_at(options_.training_schedule.ramp, settings.batch.samples, now_.step);
    if (phases_.enter(batch)) timeline_.clear();
    RankExecutor& executor = phases_.executor();
    executor.samples_from(samples_before(options_.training_schedule.ramp, settings.batch.samples, now_.step));
    const StepValues values = values_of(batch);
    std::vector<program::Event>* const events = batch == settings.batch.samples ? timeline_.next() : nullptr;
    const auto start = std::chrono::steady_clock::now();
    const RankExecutor::Outcome outcome = or_abort(communicator_, [&] { return executor.step(values, events); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The figures are the same on all ranks, so all stop here, or leave the step out.
    const bool scaled = settings.scales_loss, overflow = !std::isfinite(outcome.grad_norm);
    if (!std::isfinite(outcome.loss) || (overflow && !(scaled && can_back_off(now_.scale)))) {
      result_.diverged =
          fmt::format("step {}: the loss or its gradient is not finite; lower the learning rate", now_.step);
      return;
    }
    const bool last = now_.step + 1 == options_.steps;
    const std::optional<double> validation_loss = validate(values, batch, last);
    if (communicator_.rank() == 0) {
      log_.add({.step = now_.step,
                .loss = outcome.loss,
                .grad_norm = overflow ? 0 : outcome.grad_norm,
                .learning_rate = values.learning_rate,
                .seconds = seconds,
                .tokens_per_s = static_cast<double>(batch * settings.batch.sequence) / seconds,
                .loss_scale = scaled ? values.loss_scale : 0,
                .skipped = overflow,
                .mfu = {},
                .validation_loss = validation_loss});
    }
    ++now_.step;
    if (scaled) now_.scale = next_scale(now_.scale, settings.loss_scaling, overflow);
    keep(last);
  }

  StepValues values_of(std::int64_t batch) const {
    const program::Settings& settings = program_.settings;
    StepValues values;
    values.step = now_.step;
    values.learning_rate = learning_rate(options_.training_schedule, settings.optimizer, settings.batch.samples,
                                         now_.step, options_.steps);
    values.loss_weight = 1 / static_cast<double>(batch * settings.batch.sequence);
    values.loss_scale = now_.scale.scale;
    values.skipped_steps = now_.scale.skipped;
    return values;
  }

  /// Where it is due, the loss over the first samples of the validation corpus: as many as a whole global batch has,
  /// and while the batch is ramped up what fills the last of its own.
  std::optional<double> validate(const StepValues& values, std::int64_t batch, bool last) {
    const bool due = last || (options_.validate_every > 0 && (now_.step + 1) % options_.validate_every == 0);
    if (options_.validation == nullptr || !due) return std::nullopt;
    const std::int64_t rounds = (program_.settings.batch.samples + batch - 1) / batch;
    return or_abort(communicator_, [&] {
      double sum = 0;
      for (std::int64_t i = 0; i < rounds; ++i) {
        sum += phases_.executor().evaluate(*options_.validation, i * batch, values);
      }
      return sum / static_cast<double>(rounds);
    });
  }

  /// The checkpoint after a step; `last`: no further step follows now.
  void keep(bool last) {
    if (phases_.checkpointer() == nullptr) return;
    if (ring_ != nullptr) ring_->note(flight::Doing::kCheckpoint, now_ns(), now_.step);
    phases_.checkpointer()->after_step(now_, last);
  }

  const program::Program& program_;
  Communicator& communicator_;
  Backend& backend_;
  const TrainOptions& options_;
  flight::Ring* ring_;
  Phases phases_;
  StepTimeline timeline_;
  StepLog log_;
  Progress now_;
  int world_ = 0;
  TrainResult result_;
};

}  // namespace

TrainResult run_steps(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                      Backend& backend, const TrainOptions& options, flight::Ring* ring) {
  return StepLoop(program, communicator, corpus, backend, options, ring).run();
}

}  // namespace trivium::runtime
