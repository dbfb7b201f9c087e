#include "runtime/microbench/core_sharing.h"

#include <map>

#include "runtime/executor/train.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

/// Seconds a rank computes, the mean over ranks, of every timed step.
std::vector<double> computing(const program::VerifiedProgram& verified, int steps) {
  const program::Program& program = verified;
  const auto corpus = random_corpus(1 << 20, static_cast<std::int32_t>(program.job.model.vocab));
  TrainOptions options;
  options.steps = steps + 1;  // the first warms up
  options.timeline_steps = steps;
  const TrainResult result = train_in_threads(verified, *corpus, options);
  std::map<std::int64_t, double> by_step;
  for (const program::Event& event : result.timeline.events) {
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    if (program::is_communication(program.body_of(task).ops[static_cast<std::size_t>(event.op)].kind)) continue;
    by_step[event.step] += static_cast<double>(event.end_ps - event.start_ps) * 1e-12 / program.mesh.size();
  }
  std::vector<double> seconds;
  for (const auto& [step, sum] : by_step) seconds.push_back(sum);
  return seconds;
}

}  // namespace

std::vector<CoreSharing> time_core_sharing(int cores, bool quick) {
  const int steps = quick ? 3 : 4, pairs = quick ? 3 : 8;
  std::vector<CoreSharing> out;
  for (const std::int64_t hidden : {64, 128, 384}) {
    const program::VerifiedProgram shared = data_program(hidden, 2 * cores);
    const program::VerifiedProgram apart = data_program(hidden, cores);
    CoreSharing& one = out.emplace_back();
    one.bytes_per_core = 2 * shared->roles.front().total_bytes();
    for (int pair = 0; pair < pairs; ++pair) {  // in turn, as a machine's pace changes from second to second
      const double alone = quantile(computing(apart, steps), 0.5);
      for (const double seconds : computing(shared, steps)) one.slowdowns.push_back(seconds / alone - 1);
    }
  }
  return out;
}

}  // namespace trivium::runtime::microbench
