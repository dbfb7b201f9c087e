// trivium run: the plan carried out on this machine's cores, as threads or as processes under mpirun; or on GPUs, a
// process a rank.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "calibration/replan/replan.h"
#include "cli/commands/run_options.h"
#include "cli/options/command.h"
#include "cli/options/gpu_options.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/options/training_schedule_options.h"
#include "cli/options/values.h"
#include "cli/process/interrupts.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "cli/render/step_lines.h"
#include "hardware_profiles/cluster_text.h"
#include "program/record/chrome_trace.h"
#include "program/record/run_record.h"
#include "runtime/executor/train.h"
#include "runtime/mpi/loader.h"
#include "runtime/session/gpu_ranks.h"
#include "runtime/session/record.h"
#include "runtime/session/session.h"
#include "runtime/session/supervise.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"
#include "simulator/predict/simulate.h"

namespace trivium::cli {
namespace {

namespace session = runtime::session;

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr double kMsPerSecond = 1000;

struct RunOptions {
  JobOptions job;
  std::string corpus, record, trace;
  std::string backend = "cpu";
  GpuOptions gpu;
  std::int64_t steps = 10;
  std::int64_t timeline_steps = 3;
  std::int64_t rebalance = 0;  ///< steps; 0: never
  bool json = false;
  TrainingScheduleOptions training_schedule;
  session::CheckpointOptions checkpoint;
  session::SupervisionOptions supervision;
};

bool on_gpus(const RunOptions& options) { return options.backend == "cuda"; }

/// More ranks than GPUs run all the same, only slower: the GPUs are shared, and so the machine counts as larger.
void share_gpus(JobRequest& request, bool speaks) {
  hardware::Cluster& cluster = request.cluster;
  const int ranks = request.file.job.plan.ranks();
  if (!cluster.homogeneous() || cluster.nodes() != 1 || ranks <= cluster.devices() ||
      ranks > hardware::kMostClusterDevices) {
    return;
  }
  if (speaks) base::say("note: {} ranks share {} GPUs\n", ranks, cluster.devices());
  cluster.groups.front().node.devices = ranks;
}

/// The plan's devices must be what the backend runs on: times of cores say nothing about GPUs.
void require_devices(const JobRequest& request, bool gpus) {
  const models::Model& model = request.file.job.model;
  if (const std::vector<std::string> lacking = models::not_run(model); !lacking.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("no backend runs {} yet: {}; it can be planned and simulated",
                                    base::one_line(model.name), fmt::join(lacking, ", ")));
  }
  for (const hardware::NodeGroup& group : request.cluster.groups) {
    const bool is_gpu = group.node.device.kind == hardware::DeviceKind::kGpu;
    if (is_gpu == gpus) continue;
    const int ranks = request.file.job.plan.ranks();
    const std::string& name = group.node.device.name;
    throw base::Failure(
        base::ErrorKind::kHardware,
        gpus ? fmt::format("the plan targets {} x {}, but --backend cuda runs on GPUs; plan again with --cluster for "
                           "GPUs, such as h200",
                           ranks, name)
             : fmt::format("the plan targets {} x {}, but --backend cpu runs on CPU cores; plan again with "
                           "--cluster this-machine",
                           ranks, name));
  }
}

std::string line_of(const program::StepRecord& step, const program::Plan& plan, bool json) {
  if (json) {
    nlohmann::json line = program::to_json(step);
    line["schema"] = "trivium.step/1";
    return base::json_text(line) + "\n";
  }
  const std::string norm =
      step.skipped ? "gradients overflowed, skipped" : fmt::format("grad norm {:.4f}", step.grad_norm);
  const std::string scale = step.loss_scale > 0 ? fmt::format("  scale {:g}", step.loss_scale) : "";
  return fmt::format("step {:>4}  loss {:.6f}  {}{}  {:.1f} ms  {} tokens/s{}{}\n", step.step, step.loss, norm, scale,
                     step.seconds * kMsPerSecond, integer(step.tokens_per_s),
                     step.mfu ? "  MFU " + simulator::mfu_text(*step.mfu, plan) : "",
                     step.validation_loss ? fmt::format("  validation loss {:.6f}", *step.validation_loss) : "");
}

void print_spike(const program::Spike& spike) {
  base::say("note: step {}: {} {:.4g} stands out from {:.4g}, the median of the steps before\n", spike.step,
            spike.of == "loss" ? "loss" : "gradient norm", spike.value, spike.typical);
}

void save(const RunOptions& options, const JobRequest& request, const program::Program& program,
          runtime::TrainResult result, session::Ranks ranks) {
  if (options.trace.empty() && options.record.empty()) return;
  const program::RunRecord record =
      session::record_of(request.file, program, std::move(result), ranks, options.gpu.timing);
  if (!options.trace.empty()) {
    base::write_file_atomically(options.trace, program::chrome_trace(program, record.timeline, &record));
  }
  if (!options.record.empty())
    base::write_file_atomically(options.record, base::json_text(program::to_json(record)) + "\n");
}

JobRequest request_of(const RunOptions& options, bool speaks) {
  JobOptions job = options.job;
  if (job.plan_path.empty() && job.cluster.empty()) job.cluster = hardware::kThisMachine;
  JobRequest request = resolve_plan(job);
  const program::Optimizer& optimizer = request.file.job.training.optimizer;
  if (!job.given.at("min_learning_rate")->empty() && optimizer.min_learning_rate > optimizer.learning_rate) {
    fail_usage(fmt::format("--min-learning-rate {:g} is above the learning rate, {:g}", optimizer.min_learning_rate,
                           optimizer.learning_rate));
  }
  if (speaks && simulator::shares_cores(request.file.job.plan, request.cluster)) {
    base::say("note: {} ranks share {} cores\n", request.file.job.plan.ranks(), request.cluster.devices());
  }
  if (on_gpus(options)) share_gpus(request, speaks);
  return request;
}

/// Whether a profile, or the one that it is based on, cites no source of a constant ("base generic-cpu: assumption …").
bool is_assumed(std::string_view source) {
  while (source.starts_with("base ") && source.find(": ") != std::string_view::npos) {
    source.remove_prefix(source.find(": ") + 2);
  }
  return source.starts_with("assumption");
}

/// Dense peak of all ranks' devices, FLOP/s; 0 where a profile only assumes it, as a share of that says nothing.
double known_peak(const JobRequest& request) {
  for (const hardware::NodeGroup& group : request.cluster.groups) {
    for (const auto& [pointer, source] : group.node.sources) {
      const bool of_peak = pointer == "/device" || pointer == "/device/peak" || pointer.starts_with("/device/peak/");
      if (of_peak && is_assumed(source)) return 0;
    }
  }
  const program::Plan& plan = request.file.job.plan;
  return simulator::peak_flops(plan, request.cluster) * std::min(plan.ranks(), request.cluster.devices());
}

/// What the options say of a training, but for what its session has.
runtime::TrainOptions how_to_train(const RunOptions& options, const JobRequest& request, const Interrupts& interrupts) {
  const program::Job& job = request.file.job;
  runtime::TrainOptions how;
  how.training_schedule = training_schedule_of(options.training_schedule, job);
  how.program_for = [&request](std::int64_t batch) {
    JobRequest smaller = request;
    smaller.file.job.training.global_batch = batch;
    return prepare(smaller, false).verified();
  };
  how.validate_every = options.training_schedule.validate_every;
  how.peak_flops_per_s = known_peak(request);
  how.on_spike = print_spike;
  how.steps = options.steps;
  how.timeline_steps = options.timeline_steps;
  how.stop = interrupts.token();
  how.deadline = std::chrono::milliseconds(std::llround(options.supervision.deadline_s * kMsPerSecond));
  return how;
}

/// What became of the training, told and kept. Errors: Failure(kUsage) where it was refused, Failure(kRuntime) where it
/// left the finite numbers, Failure(kInterrupted).
void conclude(const RunOptions& options, const JobRequest& request, const program::Program& program,
              runtime::TrainResult result, const runtime::Communicator* communicator, const Interrupts& interrupts) {
  if (!result.refused.empty()) throw base::Failure(base::ErrorKind::kUsage, result.refused);
  const bool speaks = communicator == nullptr || communicator->rank() == 0;
  const session::Ranks ranks = on_gpus(options)          ? session::Ranks::kGpus
                               : communicator == nullptr ? session::Ranks::kThreads
                                                         : session::Ranks::kProcesses;
  const std::size_t done = result.steps.size();
  const std::string diverged = result.diverged;
  if (speaks) save(options, request, program, std::move(result), ranks);
  if (!diverged.empty()) throw base::Failure(base::ErrorKind::kRuntime, diverged);
  if (speaks && interrupts.happened()) {
    throw base::Failure(base::ErrorKind::kInterrupted,
                        fmt::format("interrupted after {} steps{}{}", done,
                                    options.record.empty() ? "" : "; " + options.record + " holds them",
                                    options.checkpoint.folder.empty() ? "" : "; --resume goes on from there"));
  }
}

void require_rebalancing(const RunOptions& options, const program::Plan& plan) {
  const char* why = nullptr;
  if (options.checkpoint.folder.empty()) why = "goes on from a checkpoint; give --checkpoint";
  if (plan.pipeline == 1) why = "moves layers between stages; the plan has one";
  if (options.supervision.processes > 0 || on_gpus(options) || runtime::mpi::launched_by_mpi()) {
    why = "is for ranks that are threads of this process; elsewhere use `trivium replan` and --resume";
  }
  if (why != nullptr) fail_usage(std::string("--rebalance ") + why);
}

std::string layers_of(const program::Plan& plan, int layers) {
  if (plan.stage_layers.empty()) return fmt::format("{} even stages of {} layers", plan.pipeline, layers);
  return fmt::format("{}", fmt::join(plan.stage_layers, ","));
}

/// The plan to go on with, by what the last steps measured.
program::Plan rebalanced(const program::RunRecord& record, const hardware::Cluster& cluster) {
  const calibration::Replan better = calibration::replan(record, cluster);
  const auto step = record.steps.back().step;
  const auto layers = static_cast<int>(record.job.model.layers);
  if (!better.changed) {
    base::say("note: step {}: the stages are balanced as they are: {}\n", step, layers_of(record.job.plan, layers));
    return record.job.plan;
  }
  base::say("note: step {}: stages of {} layers instead of {}, {:.1f} ms predicted instead of {:.1f} ms\n", step,
            layers_of(better.plan, layers), layers_of(record.job.plan, layers),
            better.predicted_iteration_s * kMsPerSecond, better.measured_iteration_s * kMsPerSecond);
  return better.plan;
}

/// Trains, stops after every `rebalance` steps as Ctrl-C would, with a checkpoint, and resumes from it under the plan
/// that the measurements call for. The record is that of the last plan.
int train_rebalanced(RunOptions options, const Interrupts& interrupts) {
  JobRequest request = request_of(options, true);
  require_devices(request, false);
  require_rebalancing(options, request.file.job.plan);
  StepLines lines;
  for (;;) {
    const simulator::Prepared prepared = prepare(request, false);
    const program::VerifiedProgram& program = prepared.verified();
    if (const std::string why = runtime::cannot_run_on_cpu(program); !why.empty()) fail_usage(why);
    std::stop_source pause;
    const std::stop_callback forward(interrupts.token(), [&] { pause.request_stop(); });
    runtime::TrainOptions how = how_to_train(options, request, interrupts);
    how.stop = pause.get_token();
    how.timeline_steps = std::max<std::int64_t>(how.timeline_steps, 2);
    std::int64_t done = 0;
    how.on_step = [&](const program::StepRecord& step) {
      lines.add(step.step, line_of(step, request.file.job.plan, options.json));
      if (++done >= options.rebalance && step.step + 1 < options.steps) pause.request_stop();
    };
    const session::Session training({.job = request.file,
                                     .corpus = options.corpus,
                                     .validation = options.training_schedule.validation,
                                     .checkpoint = options.checkpoint,
                                     .flight_record = options.supervision.flight_record});
    runtime::TrainResult result = training.train(program, how, nullptr, nullptr);
    const bool ended = interrupts.happened() || !result.refused.empty() || !result.diverged.empty() ||
                       result.steps.empty() || result.steps.back().step + 1 >= options.steps;
    if (ended) {
      conclude(options, request, program, std::move(result), nullptr, interrupts);
      lines.require_whole();
      return 0;
    }
    const program::RunRecord record =
        session::record_of(request.file, program, std::move(result), session::Ranks::kThreads, options.gpu.timing);
    request.file.job.plan = rebalanced(record, request.cluster);
    options.checkpoint.resume = true;
  }
}

/// The work of one process: all ranks as threads, or one rank of `communicator`, on a core or on `backend`.
int train(const RunOptions& options, runtime::Communicator* communicator, runtime::Backend* backend,
          const Interrupts& interrupts) {
  const bool speaks = communicator == nullptr || communicator->rank() == 0;
  const JobRequest request = request_of(options, speaks);
  require_devices(request, on_gpus(options));
  const simulator::Prepared prepared = prepare(request, false);
  const program::VerifiedProgram& program = prepared.verified();
  const std::string why =
      backend != nullptr ? runtime::cannot_run(program, *backend) : runtime::cannot_run_on_cpu(program);
  if (!why.empty()) throw base::Failure(base::ErrorKind::kUsage, why);
  if (options.supervision.processes > 0 && communicator == nullptr) {
    return session::supervise(options.supervision, program, options.checkpoint.folder, interrupts.token());
  }
  if (communicator != nullptr && communicator->size() != program->mesh.size()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("the plan has {} ranks, {} started {}", program->mesh.size(),
                                    on_gpus(options) ? "the launcher" : "mpirun", communicator->size()));
  }
  const session::Session training({.job = request.file,
                                   .corpus = options.corpus,
                                   .validation = options.training_schedule.validation,
                                   .checkpoint = options.checkpoint,
                                   .flight_record = options.supervision.flight_record});
  runtime::TrainOptions how = how_to_train(options, request, interrupts);
  how.replay =
      backend != nullptr && use_graphs(options.gpu, program, communicator->rank(), options.timeline_steps > 0, speaks);
  StepLines lines;
  how.on_step = [&](const program::StepRecord& step) {
    lines.add(step.step, line_of(step, request.file.job.plan, options.json));
  };
  conclude(options, request, program, training.train(program, how, communicator, backend), communicator, interrupts);
  lines.require_whole();
  return 0;
}

/// What stops one rank before the start stops all; one line of it is enough.
int train_one_of(const RunOptions& options, runtime::Communicator& communicator, runtime::Backend* backend,
                 const Interrupts& interrupts) {
  try {
    return train(options, &communicator, backend, interrupts);
  } catch (const base::Failure& failure) {
    if (communicator.rank() == 0) throw;
    return static_cast<int>(failure.error().kind);
  }
}

int run_on_gpus(const RunOptions& options, const Interrupts& interrupts) {
  if (!session::started_as_rank()) {
    const JobRequest request = request_of(options, false);
    require_devices(request, true);
    if (const int ranks = request.file.job.plan.ranks(); ranks > 1)
      return session::start_ranks(ranks, interrupts.token());
  }
  const session::GpuRank here = session::open_gpu_rank(rank_options(options.gpu));
  RunOptions opened = options;
  opened.gpu.timing = here.timing;
  return train_one_of(opened, *here.communicator, here.backend.get(), interrupts);
}

int run(const RunOptions& options) {
  require_gpu(options.gpu, options.backend);
  const Interrupts interrupts;
  if (options.rebalance > 0) return train_rebalanced(options, interrupts);
  if (on_gpus(options)) return run_on_gpus(options, interrupts);
  if (!runtime::mpi::launched_by_mpi()) return train(options, nullptr, nullptr, interrupts);
  const std::unique_ptr<runtime::Communicator> communicator = runtime::mpi::connect_mpi().value_or_throw();
  return train_one_of(options, *communicator, nullptr, interrupts);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Train for real on this machine's cores (under mpirun: a rank a process) or GPUs");
  add_job_options(*command, options->job);
  command->add_option("--corpus", options->corpus, "Text, or a token file (.bin)")->required()->type_name("FILE");
  command->add_option("--steps", options->steps, "Optimizer steps")
      ->check(CLI::Range(std::int64_t{1}, kMostSteps))
      ->capture_default_str();
  add_course_options(*command, options->training_schedule);
  add_checkpoint_options(*command, options->checkpoint);
  add_supervision_options(*command, options->supervision);
  command
      ->add_option("--rebalance", options->rebalance,
                   "Every N steps: measure the stages, move layers from slow ones to fast ones where that helps, and "
                   "go on from a checkpoint")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{2}, kMostSteps));
  add_output(*command, "--record", options->record, "Write steps and measured timeline", OutputKind::kRecord);
  command->add_option("--timeline-steps", options->timeline_steps, "How many of the last steps keep their timeline")
      ->check(CLI::Range(std::int64_t{0}, kMostSteps))
      ->capture_default_str();
  add_output(*command, "--trace", options->trace, "Write the measured timeline for chrome://tracing and Perfetto",
             OutputKind::kTrace);
  command->add_option("--backend", options->backend, "What runs the kernels")
      ->check(one_of({"cpu", "cuda"}))
      ->capture_default_str();
  add_gpu_options(*command, options->gpu);
  command->add_flag("--json", options->json, "One JSON object per step on stdout");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace trivium::cli
