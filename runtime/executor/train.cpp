#include "runtime/executor/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "models/model.h"
#include "runtime/cpu/backend.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/executor/spikes.h"
#include "runtime/flight/ring.h"
#include "runtime/flight/watchdog.h"
#include "runtime/inproc/threads.h"
#include "runtime/told_by.h"

namespace trivium::runtime {
namespace {

using program::Event;

// Bytes of rank `root`, known to all afterwards.
void share(Communicator& communicator, int world, std::vector<Event>& events, int root) {
  auto count = static_cast<std::int64_t>(events.size());
  communicator.broadcast(world, &count, sizeof count, root);
  events.resize(static_cast<std::size_t>(count));
  if (count > 0) communicator.broadcast(world, events.data(), count * static_cast<std::int64_t>(sizeof(Event)), root);
}

// A collective cannot begin before its last member came: what the others spent until then is waiting.
void mark_waits(const program::Program& program, program::Timeline& timeline) {
  std::map<std::tuple<int, int, int, int>, std::int64_t> last_start;  // step, task, op, first member of the group
  const auto key_of = [&](const Event& e) -> std::optional<std::tuple<int, int, int, int>> {
    const program::Role& role = program.role_of(e.rank);
    const program::Task& task = role.tasks[static_cast<std::size_t>(e.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(e.op)];
    if (!program::is_communication(op.kind)) return std::nullopt;
    if (task.transfer >= 0) {  // both ends share the transfer's number
      program::Coordinates at = program.mesh.coordinates(e.rank);
      at.pipeline = 0;
      return std::tuple{e.step, -1 - task.transfer, 0, program.mesh.rank(at)};
    }
    if (op.group == program::Group::kModel || op.group == program::Group::kWorld ||
        op.group == program::Group::kEmbedding) {
      return std::tuple{e.step, static_cast<int>(op.group), e.op, program.mesh.members(op.group, e.rank).front()};
    }
    return std::tuple{e.step, e.task, e.op + 16, program.mesh.members(op.group, e.rank).front()};
  };
  for (const Event& e : timeline.events) {
    if (const auto key = key_of(e)) {
      auto& latest = last_start[*key];
      latest = std::max(latest, e.start_ps);
    }
  }
  for (Event& e : timeline.events) {
    if (const auto key = key_of(e))
      e.wait_ps = std::clamp<std::int64_t>(last_start[*key] - e.start_ps, 0, e.end_ps - e.start_ps);
  }
}

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

// Where asked for: this rank's record, made before anyone can wait for it.
std::unique_ptr<flight::Ring> ring_of(const program::Program& program, const Communicator& communicator,
                                      const TrainOptions& options) {
  if (options.flight_folder.empty()) return nullptr;
  return std::make_unique<flight::Ring>(options.flight_folder, communicator.rank(), communicator.size(),
                                        std::stoull(program::hash_of(program), nullptr, 16));
}

void between_steps(flight::Ring* ring, std::int64_t done) {
  if (ring != nullptr) ring->note(flight::Doing::kCheckpoint, now_ns(), done);
}

}  // namespace

std::string cannot_run(const program::Program& program, const Backend& backend) {
  for (const program::Role& role : program.roles) {
    if (role.order.empty()) return "the program's communication is not ordered";
  }
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      if (program::is_communication(op.kind)) continue;
      if (std::string why = backend.refusal(program, op); !why.empty()) return why;
    }
  }
  return "";
}

std::string cannot_run_on_cpu(const program::Program& program) { return cannot_run(program, cpu::CpuBackend()); }

TrainResult train_rank(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                       const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run_on_cpu(program); !result.refused.empty()) return result;
  cpu::CpuBackend core;
  return train_rank(program, communicator, corpus, core, options);
}

namespace {

/// A rank's executor and keeper, made anew for every size of the batch: what lasts from step to step moves along.
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
    start(program);
  }

  RankExecutor& executor() { return *executor_; }
  StepKeeper* keeper() { return keeper_.get(); }
  const program::Program& running() const { return smaller_ ? *smaller_ : program_; }

  /// Before a step of so many samples. Whether that is another number than before.
  bool enter(std::int64_t batch) {
    if (batch == running().settings.batch.samples) return false;
    if (ring_ != nullptr) ring_->note(flight::Doing::kStarting, now_ns(), 0);  // it may take longer than a step
    const Arenas kept = executor_->arenas_on_host(kLasting);
    const std::unique_ptr<program::Program> before = std::move(smaller_);  // whose map `kept` has
    keeper_.reset();
    executor_.reset();
    if (batch != program_.settings.batch.samples) {
      smaller_ = std::make_unique<program::Program>(options_.program_for(batch));
    }
    start(running());
    executor_->arenas().take(backend_, kept, kLasting);
    backend_.finish();
    return true;
  }

 private:
  static constexpr std::array kLasting{program::Space::kParameter, program::Space::kOptimizer,
                                       program::Space::kAwayState};

  void start(const program::Program& program) {
    executor_ = std::make_unique<RankExecutor>(program, communicator_, corpus_, backend_);
    executor_->record_flight(ring_, smaller_ == nullptr);
    if (options_.replay) executor_->replay_segments();
    if (options_.keeper) keeper_ = options_.keeper(program, communicator_, executor_->arenas(), backend_);
  }

  const program::Program& program_;
  Communicator& communicator_;
  const data::Corpus& corpus_;
  Backend& backend_;
  const TrainOptions& options_;
  flight::Ring* ring_;
  std::unique_ptr<program::Program> smaller_;  // while the batch is ramped up
  std::unique_ptr<RankExecutor> executor_;
  std::unique_ptr<StepKeeper> keeper_;
};

/// The loss over the first samples of the validation corpus: as many as a whole global batch has, and while the batch
/// is ramped up what fills the last of its own.
double validate(RankExecutor& executor, const TrainOptions& options, StepValues values, std::int64_t global_batch,
                std::int64_t batch) {
  const std::int64_t rounds = (global_batch + batch - 1) / batch;
  double sum = 0;
  for (std::int64_t i = 0; i < rounds; ++i) sum += executor.evaluate(*options.validation, i * batch, values);
  return sum / static_cast<double>(rounds);
}

TrainResult train_recorded(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                           Backend& backend, const TrainOptions& options, flight::Ring* ring) {
  TrainResult result;
  Phases phases(program, communicator, corpus, backend, options, ring);
  std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
  for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
  const int world = communicator.make_group(everyone);
  const program::Settings& settings = program.settings;
  const std::int64_t global_batch = settings.batch.samples;
  std::vector<std::vector<Event>> kept;  // of the last steps
  SpikeWatch watch;
  Progress now{.scale = first_scale(settings)};
  if (phases.keeper() != nullptr) now = phases.keeper()->begin(now);
  bool stopped = false;
  while (now.step < options.steps) {
    // Whether to go on is decided once, by rank 0: all ranks do the same number of steps.
    std::int64_t stop = communicator.rank() == 0 && options.stop.stop_requested() ? 1 : 0;
    communicator.broadcast(world, &stop, sizeof stop, 0);
    if (stopped = stop != 0; stopped) break;
    const std::int64_t batch = batch_at(options.course.ramp, global_batch, now.step);
    if (phases.enter(batch)) kept.clear();
    RankExecutor& executor = phases.executor();
    executor.samples_from(samples_before(options.course.ramp, global_batch, now.step));
    const double tokens = static_cast<double>(batch * settings.batch.sequence);
    StepValues values;
    values.step = now.step;
    values.learning_rate = learning_rate(options.course, settings.optimizer, global_batch, now.step, options.steps);
    values.loss_weight = 1 / tokens;
    values.loss_scale = now.scale.scale;
    values.skipped_steps = now.scale.skipped;
    std::vector<Event>* events = nullptr;
    if (options.timeline_steps > 0 && batch == global_batch) {
      if (static_cast<std::int64_t>(kept.size()) == options.timeline_steps) kept.erase(kept.begin());
      events = &kept.emplace_back();
    }
    const auto start = std::chrono::steady_clock::now();
    const RankExecutor::Outcome outcome = or_abort(communicator, [&] { return executor.step(values, events); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The figures are the same on all ranks, so all stop here, or leave the step out.
    const bool scaled = settings.scales_loss, overflow = !std::isfinite(outcome.grad_norm);
    if (!std::isfinite(outcome.loss) || (overflow && !(scaled && can_back_off(now.scale)))) {
      result.diverged =
          fmt::format("step {}: the loss or its gradient is not finite; lower the learning rate", now.step);
      break;
    }
    const bool last = now.step + 1 == options.steps;
    const bool validates = options.validation != nullptr &&
                           (last || (options.validate_every > 0 && (now.step + 1) % options.validate_every == 0));
    std::optional<double> validation_loss;
    if (validates) {
      validation_loss =
          or_abort(communicator, [&] { return validate(executor, options, values, global_batch, batch); });
    }
    if (communicator.rank() == 0) {
      program::StepRecord record{.step = now.step,
                                 .loss = outcome.loss,
                                 .grad_norm = overflow ? 0 : outcome.grad_norm,
                                 .learning_rate = values.learning_rate,
                                 .seconds = seconds,
                                 .tokens_per_s = tokens / seconds,
                                 .loss_scale = scaled ? values.loss_scale : 0,
                                 .skipped = overflow,
                                 .mfu = {},
                                 .validation_loss = validation_loss};
      if (options.peak_flops_per_s > 0)
        record.mfu = settings.model_flops_per_token * record.tokens_per_s / options.peak_flops_per_s;
      result.steps.push_back(record);
      if (options.on_step) options.on_step(record);
      for (program::Spike& spike : overflow ? std::vector<program::Spike>{} : watch.after(record)) {
        if (options.on_spike) options.on_spike(spike);
        result.spikes.push_back(std::move(spike));
      }
    }
    ++now.step;
    if (scaled) now.scale = next_scale(now.scale, settings.loss_scaling, overflow);
    if (phases.keeper() != nullptr) between_steps(ring, now.step), phases.keeper()->after_step(now, last);
  }
  if (phases.keeper() != nullptr && stopped) between_steps(ring, now.step), phases.keeper()->after_step(now, true);
  const RankExecutor& executor = phases.executor();
  for (int rank = 0; rank < communicator.size(); ++rank) {
    for (std::vector<Event>& mine : kept) {
      std::vector<Event> events = rank == communicator.rank() ? mine : std::vector<Event>{};
      share(communicator, world, events, rank);
      if (communicator.rank() == 0)
        result.timeline.events.insert(result.timeline.events.end(), events.begin(), events.end());
    }
    std::int64_t bytes = executor.arenas().bytes() + backend.own_bytes();
    communicator.broadcast(world, &bytes, sizeof bytes, rank);
    result.memory_bytes.push_back(bytes);
  }
  mark_waits(program, result.timeline);
  return result;
}

}  // namespace

TrainResult train_rank(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                       Backend& backend, const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run(program, backend); !result.refused.empty()) return result;
  const std::unique_ptr<flight::Ring> ring = ring_of(program, communicator, options);
  if (!ring) return train_recorded(program, communicator, corpus, backend, options, nullptr);
  // Whoever is told to end says so: those that say nothing were killed.
  const std::stop_callback told(options.stop, [&] { ring->ended(flight::End::kTerminated); });
  std::optional<flight::Watchdog> watchdog;
  if (options.deadline.count() > 0) {
    watchdog.emplace(options.flight_folder, program, communicator.rank(), options.deadline,
                     [&](const std::string& why) {
                       ring->ended(flight::End::kTerminated);
                       communicator.abort(why);
                     });
  }
  try {
    result = train_recorded(program, communicator, corpus, backend, options, ring.get());
    ring->ended(result.diverged.empty() ? flight::End::kWell : flight::End::kFailed, result.diverged);
  } catch (const std::exception& error) {
    ring->ended(flight::End::kFailed, error.what());
    throw;
  }
  return result;
}

TrainResult train_in_threads(const program::Program& program, const data::Corpus& corpus, const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run_on_cpu(program); !result.refused.empty()) return result;
  inproc::run_ranks(program.mesh.size(), [&](Communicator& communicator) {
    TrainResult mine = train_rank(program, communicator, corpus, options);
    if (communicator.rank() == 0) result = std::move(mine);
  });
  return result;
}

}  // namespace trivium::runtime
