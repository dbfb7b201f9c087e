#include "tests/calibration/synthetic_run.h"

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "simulator/schedule/engine.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::calibration {

hardware::Node rated_node(double scale) {
  hardware::Node node = hardware::load_node("generic-cpu");
  node.devices = 2;
  for (int k = 0; k < program::kOpKinds; ++k) {
    const auto kind = static_cast<program::OpKind>(k);
    if (program::is_communication(kind)) continue;
    hardware::OpRate& rate = node.device.op_rates[std::string(program::name_of(kind))];
    rate.overhead = base::Seconds(1e-6 * scale);
    rate.seconds_per_flop = 2e-11 * scale;
    rate.seconds_per_byte = 1e-10 * scale;
  }
  node.intra.latency = base::Seconds(10e-6 * scale);
  node.intra.bandwidth = base::BytesPerSecond(4e9 / scale);
  node.collective_skew = base::Seconds(0);
  node.sources["/device/op_rates"] = "made up";
  return node;
}

program::Job small_job(int tensor, int pipeline, int data, int micro_batch) {
  program::Job job;
  job.model.name = "small";
  job.model.layers = 4;
  job.model.hidden = 128;
  job.model.heads = job.model.kv_heads = 4;
  job.model.head_dim = 32;
  job.model.ffn_hidden = 512;
  job.model.vocab = 256;
  job.model.max_sequence = 64;
  job.training.sequence = 64;
  job.training.global_batch = 8;
  job.plan.tensor = tensor;
  job.plan.pipeline = pipeline;
  job.plan.data = data;
  job.plan.micro_batch = micro_batch;
  job.plan.precision = program::DType::kFp32;
  job.plan.reduce_dtype = program::DType::kFp32;
  return job;
}

hardware::Cluster cluster_of(const hardware::Node& node) { return {"synthetic", {{node, 1}}}; }

program::RunRecord synthetic_run(const program::Job& job, const hardware::Node& node) {
  const hardware::Cluster cluster = cluster_of(node);
  const simulator::Prepared prepared = simulator::prepared(job, cluster);
  const program::Program& program = prepared.program();
  const auto simulation = simulator::simulate(prepared, {simulator::Granularity::kOp, true}).value_or_throw();
  program::RunRecord record;
  record.job = job;
  record.cluster = "generic-cpu";
  record.backend = "synthetic";
  record.program_hash = program::hash_of(program);
  for (int step = 0; step < 3; ++step) {
    program::StepRecord line;
    line.step = step;
    line.seconds = simulation.iteration_s;
    record.steps.push_back(line);
    for (int rank = 0; rank < program.mesh.size(); ++rank) {
      const int like = simulator::representative(program, program.mesh.coordinates(rank).pipeline);
      for (program::Event event : simulation.timeline.events) {
        if (event.rank != like) continue;
        event.step = step;
        event.rank = rank;
        record.timeline.events.push_back(event);
      }
      const auto& memory = simulation.stages[static_cast<std::size_t>(program.mesh.coordinates(rank).pipeline)].memory;
      if (step == 0) record.peak_memory_bytes.push_back(memory.total() - memory.reserved);
    }
  }
  return record;
}

}  // namespace trivium::calibration
