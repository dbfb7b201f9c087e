// One job on one cluster, simulated: the figures everything else shows.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "simulator/breakdown.h"
#include "simulator/memory/memory.h"
#include "simulator/uncertainty.h"

namespace trivium::simulator {

class Worlds;

/// Of a role: a stage, or where micro-batches differ what one kind of replica does of it.
struct StageResult {
  int stage = 0;
  Breakdown breakdown{};  ///< ps; sums to the iteration
  StageMemory memory;
};

struct Simulation {
  std::int64_t iteration_ps = 0;  ///< with links shared by what overlaps on them
  double iteration_s = 0;
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  ///< shares of the devices' dense peak in the plan's precision
  double model_flops_per_s_per_device = 0, hardware_flops_per_s_per_device = 0;
  std::array<double, kParts> breakdown_s{};  ///< mean over ranks; sums to iteration_s
  std::vector<StageResult> stages;           ///< in the order of the Program's roles
  std::optional<double> unshared_s;          ///< as if nothing shared a link, where asked for and shorter
  std::int64_t peak_memory_bytes = 0;        ///< of the fullest rank
  program::Timeline timeline;                ///< of every rank that was played; empty unless asked for
};

struct SimulationOptions {
  Granularity granularity = Granularity::kOp;
  bool timeline = false;
  /// Play every rank instead of one rank for every stage where that is the same; needed for a disturbance. The timeline
  /// is then that of every rank, the breakdown of a stage the mean over its ranks: over all, or where they have
  /// millions of spans together over some that lie evenly among them. Ranks that share cores are always all played, op
  /// by op.
  bool every_rank = false;
  /// Communication that overlaps on a link shares it: played by one rank for all of a stage that sit alike. False:
  /// every transfer has its links to itself.
  bool shared_links = true;
  bool unshared = false;  ///< find Simulation::unshared_s too
  Disturbance disturbance{};
  std::uint64_t seed = 0;    ///< of the jitter
  Worlds* worlds = nullptr;  ///< of the same cluster: what simulations leave for each other; not owned
};

/// Simulates an ordered program (or, in the order of readiness, one that is not). Cores of one machine run any number
/// of ranks, in turns (docs/cost-model.md). Errors: kUsage when the cluster has too few devices or lacks the precision;
/// kRuntime when the program cannot proceed; kInterrupted where `stop` was asked for, before the start or while ranks
/// were played.
base::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options, const std::stop_token& stop = {});

/// The iteration alone that simulate() finds of an ordered program with links shared (ps). Errors: as simulate().
base::Result<std::int64_t> iteration_ps(const program::Program& program, const hardware::Cluster& cluster,
                                        const std::stop_token& stop, Worlds* worlds = nullptr);

/// Whether the cluster can run the job at all, memory apart: enough devices, stages on nodes that are there, and on
/// every kind of device that takes part the arithmetic and flash attention.
std::optional<program::Infeasible> unsupported_by(const program::Job& job, const hardware::Cluster& cluster);

/// Dense peak of one device in the plan's precision (mean over the devices it uses), FLOP/s.
double peak_flops(const program::Plan& plan, const hardware::Cluster& cluster);

/// FLOPs of one iteration over all ranks: what the model asks for, and what the hardware does with recomputation.
struct IterationFlops {
  double model = 0, hardware = 0;
};
IterationFlops iteration_flops(const program::Job& job);

}  // namespace trivium::simulator
