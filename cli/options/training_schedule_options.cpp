#include "cli/options/training_schedule_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/options/values.h"

namespace trivium::cli {
namespace {

using runtime::Decay;
using runtime::RateScaling;

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr Decay kDecays[] = {Decay::kCosine, Decay::kConstant, Decay::kLinear, Decay::kWsd};
constexpr RateScaling kScalings[] = {RateScaling::kNone, RateScaling::kLinear, RateScaling::kSquareRoot};

template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(runtime::name_of(value));
  return names;
}

[[noreturn]] void refuse(const std::string& why) { throw base::Failure(base::ErrorKind::kUsage, why); }

runtime::BatchRamp ramp_of(const TrainingScheduleOptions& options, const program::Job& job) {
  if (options.ramp.empty()) return {};
  const runtime::BatchRamp ramp{options.ramp[0], options.ramp[1], options.ramp[2]};
  const std::int64_t parts = samples_of_pass(job.plan), batch = job.training.global_batch;
  if (ramp.start > batch)
    refuse(fmt::format("--ramp-batch: begins with {} samples, the global batch is {}", ramp.start, batch));
  if (ramp.start % parts != 0 || ramp.increment % parts != 0) {
    refuse(fmt::format("--ramp-batch: {} and {} must be multiples of the {} samples of all replicas' micro-batches",
                       ramp.start, ramp.increment, parts));
  }
  const program::ScheduleTraits& schedule = program::traits_of(job.plan.schedule);
  const std::int64_t round = parts * schedule.round(job.plan.pipeline);
  if (ramp.start % round != 0 || ramp.increment % round != 0) {
    refuse(fmt::format("--ramp-batch: the {} schedule needs multiples of these times pipeline = {}", schedule.name,
                       round));
  }
  return ramp;
}

}  // namespace

void add_course_options(CLI::App& command, TrainingScheduleOptions& options) {
  command.add_option("--rate-schedule", options.decay, "The learning rate after the warm-up")
      ->check(one_of(names_of(kDecays)))
      ->capture_default_str();
  command.add_option("--cooldown-steps", options.cooldown_steps, "wsd: number of final decay steps (0: a tenth)")
      ->check(CLI::Range(std::int64_t{0}, kMost));
  CLI::Option* base =
      command.add_option("--base-batch", options.base_batch, "Batch that the learning rate is meant for")
          ->check(CLI::Range(std::int64_t{1}, kMost));
  CLI::Option* scaling =
      command.add_option("--rate-scaling", options.scaling, "How the learning rate follows batch / base batch")
          ->check(one_of(names_of(kScalings)))
          ->needs(base)
          ->capture_default_str();
  base->needs(scaling);
  command.add_option("--ramp-batch", options.ramp, "Begin with START samples, INCREMENT more every STEPS steps")
      ->expected(3)
      ->check(CLI::Range(std::int64_t{1}, kMost))
      ->type_name("START INCREMENT STEPS");
  CLI::Option* file =
      command.add_option("--validation", options.validation, "Validation corpus: a text or token file")
          ->check([](const std::string& name) { return name.empty() ? "the name of the file is empty" : ""; })
          ->type_name("FILE");
  command
      .add_option("--validate-every", options.validate_every, "Validate every N steps (0: after the last step only)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->needs(file);
}

runtime::TrainingSchedule training_schedule_of(const TrainingScheduleOptions& options, const program::Job& job) {
  runtime::TrainingSchedule training_schedule;
  for (const Decay decay : kDecays) {
    if (options.decay == runtime::name_of(decay)) training_schedule.decay = decay;
  }
  for (const RateScaling scaling : kScalings) {
    if (options.scaling == runtime::name_of(scaling)) training_schedule.scaling = scaling;
  }
  if (options.cooldown_steps > 0 && training_schedule.decay != Decay::kWsd)
    refuse("--cooldown-steps: only --rate-schedule wsd has a cooldown");
  training_schedule.cooldown_steps = options.cooldown_steps;
  training_schedule.base_batch = options.base_batch;
  training_schedule.ramp = ramp_of(options, job);
  return training_schedule;
}

}  // namespace trivium::cli
