#include "runtime/microbench/kernel_times.h"

#include <fmt/format.h>

#include <barrier>
#include <thread>
#include <tuple>

#include "base/seconds.h"
#include "program/ir/op_views.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/cores.h"
#include "runtime/microbench/alone_communicator.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

using base::kSecondsPerPs;
using program::Event;
using program::Op;

class RandomCorpus final : public data::Corpus {
 public:
  RandomCorpus(std::int64_t tokens, std::int32_t vocabulary) : tokens_(tokens), vocabulary_(vocabulary) {}
  std::int64_t tokens() const override { return tokens_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int32_t token(std::int64_t position) const override {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;  // golden ratio: Knuth's multiplicative hash
    return static_cast<std::int32_t>((static_cast<std::uint64_t>(position) * kOdd >> 33U) %
                                     static_cast<std::uint64_t>(vocabulary_));
  }
  std::string description() const override { return "pseudo-random tokens"; }

 private:
  std::int64_t tokens_;
  std::int32_t vocabulary_;
};

using StepEvents = std::vector<Event>;

std::unique_ptr<data::Corpus> corpus_of(const program::Job& job) {
  return random_corpus(64 * job.training.sequence * job.training.global_batch + 1,
                       static_cast<std::int32_t>(job.model.vocab));
}

/// Calls visit(events) for every step but the first, which warms up; before(step) comes before each.
template <class Before, class Visit>
void run_steps(RankExecutor& executor, const program::Job& job, int steps, const Before& before, const Visit& visit) {
  StepValues values;
  values.learning_rate = job.training.optimizer.learning_rate;
  values.loss_weight = 1.0 / static_cast<double>(job.training.global_batch * job.training.sequence);
  for (int step = 0; step <= steps; ++step) {
    values.step = step;
    StepEvents events;
    before();
    executor.step(values, &events);
    if (step > 0) visit(std::move(events));
  }
}

/// Events of every measured step, by rank.
std::vector<std::vector<StepEvents>> run(const program::Program& program, int ranks, int steps) {
  const program::Job& job = program.job;
  const auto corpus = corpus_of(job);
  std::vector<std::vector<StepEvents>> measured(static_cast<std::size_t>(ranks));
  std::barrier together(ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      inproc::pin_to_core(rank, ranks);
      AloneCommunicator alone(program.mesh.size());
      RankExecutor executor(program, alone, *corpus);
      run_steps(
          executor, job, steps, [&] { together.arrive_and_wait(); },
          [&](StepEvents&& events) { measured[static_cast<std::size_t>(rank)].push_back(std::move(events)); });
    });
  }
  threads.clear();
  return measured;
}

auto shape_of(const Op& op) {
  return std::tuple(op.kind, op.dtype, op.m, op.n, op.k, op.elements, op.heads, op.sequence, op.window, op.flash,
                    op.weight_transposed, op.flops, op.bytes);
}

struct Shape {
  const Op* op = nullptr;
  std::vector<double> means;  // one a step and rank
  std::vector<double> singles;
};
using Shapes = std::map<decltype(shape_of(Op{})), Shape>;

void add_step(const program::Program& program, const StepEvents& events, Shapes& shapes, std::vector<double>& gaps) {
  std::map<decltype(shape_of(Op{})), std::vector<double>> step;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    const program::Task& task = program.roles.front().tasks[static_cast<std::size_t>(e.task)];
    const Op& op = program.body_of(task).ops[static_cast<std::size_t>(e.op)];
    if (program::is_communication(op.kind)) continue;
    // Rates are those of 16 bits: products in 8 take other times, and of such a program casts alone are new.
    if (program.job.plan.fp8 != program::Fp8::kNone && op.kind != program::OpKind::kQuantize) continue;
    std::int64_t end = e.end_ps;
    if (i + 1 < events.size() && events[i + 1].task == e.task) {
      end = events[i + 1].start_ps;
      gaps.push_back(static_cast<double>(end - e.end_ps) * kSecondsPerPs);
    }
    const double seconds = static_cast<double>(end - e.start_ps) * kSecondsPerPs;
    Shape& shape = shapes[shape_of(op)];
    shape.op = &op;
    shape.singles.push_back(seconds);
    step[shape_of(op)].push_back(seconds);
  }
  for (const auto& [key, seconds] : step) shapes[key].means.push_back(mean_without_interruptions(seconds));
}

void add_shapes(const Shapes& shapes, KernelTimes& times) {
  for (const auto& [key, shape] : shapes) {
    const double seconds = quantile(shape.means, 0.5);
    if (seconds <= 0) continue;
    const program::RateKind kind = program::rate_kind_of(*shape.op);
    times.shapes[kind].push_back({shape.op->flops, shape.op->bytes, program::query_blocks(*shape.op), seconds});
    for (const double single : shape.singles) times.spread[kind].push_back(single / seconds);
  }
}

/// Whether the device has kernels for all of it.
bool is_run_by(const Backend& device, const program::Program& program) {
  for (const program::Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      if (!program::is_communication(op.kind) && !device.refusal(program, op).empty()) return false;
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<data::Corpus> random_corpus(std::int64_t tokens, std::int32_t vocabulary) {
  return std::make_unique<RandomCorpus>(tokens, vocabulary);
}

KernelTimes time_kernels(const std::vector<program::Program>& programs, int ranks, int steps,
                         const std::function<void(const std::string&)>& progress) {
  KernelTimes times;
  std::vector<double> gaps;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const program::Program& program = programs[p];
    if (progress) {
      const program::Job& job = program.job;
      progress(fmt::format("kernels {} of {}: hidden {}, {} tokens, tensor {}, context {}{}, on {} cores", p + 1,
                           programs.size(), job.model.hidden, job.plan.micro_batch * job.training.sequence,
                           job.plan.tensor, job.plan.context, job.model.experts ? ", mixtures of experts" : "", ranks));
    }
    Shapes shapes;
    for (const auto& rank : run(program, ranks, steps)) {
      for (const StepEvents& events : rank) add_step(program, events, shapes, gaps);
    }
    add_shapes(shapes, times);
  }
  times.host_gap = quantile(gaps, 0.5);
  times.host_gap_spread = spread(gaps);
  return times;
}

KernelTimes time_kernels_on(Backend& device, const std::vector<program::Program>& programs, int steps,
                            const std::function<void(const std::string&)>& progress) {
  KernelTimes times;
  std::vector<double> gaps;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const program::Program& program = programs[p];
    const program::Job& job = program.job;
    if (progress) {
      progress(fmt::format("kernels {} of {}: hidden {}, {} tokens, tensor {}", p + 1, programs.size(),
                           job.model.hidden, job.plan.micro_batch * job.training.sequence, job.plan.tensor));
    }
    if (!is_run_by(device, program)) continue;
    const auto corpus = corpus_of(job);
    AloneCommunicator alone(program.mesh.size());
    RankExecutor executor(program, alone, *corpus, device);
    Shapes shapes;
    run_steps(
        executor, job, steps, [] {}, [&](const StepEvents& events) { add_step(program, events, shapes, gaps); });
    add_shapes(shapes, times);
  }
  times.host_gap = quantile(gaps, 0.5);
  times.host_gap_spread = spread(gaps);
  return times;
}

}  // namespace trivium::runtime::microbench
