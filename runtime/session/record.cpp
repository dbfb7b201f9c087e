#include "runtime/session/record.h"

#include <utility>

#include "runtime/cuda/loader.h"
#include "runtime/executor/host_facts.h"
#include "runtime/executor/library_facts.h"

namespace trivium::runtime::session {
namespace {

const char* backend_of(Ranks ranks) {
  switch (ranks) {
    case Ranks::kThreads:
      return "cpu-threads";
    case Ranks::kProcesses:
      return "cpu-mpi";
    case Ranks::kGpus:
      return "cuda-nccl";
  }
  return "";
}

}  // namespace

program::RunRecord record_of(const program::PlanFile& job, const program::Program& program, TrainResult result,
                             Ranks ranks, const std::string& timing) {
  program::RunRecord record;
  record.job = job.job;
  record.cluster = job.cluster;
  record.backend = backend_of(ranks);
  record.program_hash = program::hash_of(program);
  record.steps = std::move(result.steps);
  record.spikes = std::move(result.spikes);
  record.timeline = std::move(result.timeline);
  record.peak_memory_bytes = std::move(result.memory_bytes);
  record.host = host_facts();
  if (ranks != Ranks::kThreads) record.host.merge(mpi_facts());
  if (ranks == Ranks::kGpus) {
    record.host.merge(gpu_facts(cuda::describe_devices().value_or_throw().front()));
    record.host["timing"] = timing;
  }
  return record;
}

}  // namespace trivium::runtime::session
