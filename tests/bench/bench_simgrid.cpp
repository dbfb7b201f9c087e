// The task graph of bench_engine through SimGrid (S4U), and through this engine: time of both, without and with jitter.
// One actor for every rank and stream; an execution per op, a barrier and a sleep per collective, a communication over
// the nodes' adapters per transfer. Usage: bench_simgrid [MICRO_BATCHES [REPLICAS]] (16 and 8: 512 GPUs).
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <simgrid/s4u.hpp>

#include "base/seconds.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/collectives/network.h"
#include "simulator/replay/replay.h"

namespace {

using trivium::base::kSecondsPerPs;

using namespace trivium;
namespace sg4 = simgrid::s4u;

constexpr double kFlopsPerSecond = 1e9;

/// What the actors share.
struct Stage {
  const simulator::ReplayProgram& cast;
  double jitter;
  std::vector<sg4::BarrierPtr> barriers;                                                          // by communicator
  std::vector<std::array<sg4::SemaphorePtr, simulator::kStreams * simulator::kStreams>> signals;  // by actor
};

void transfer(const simulator::Instruction& in, const simulator::Step& step, int place) {
  sg4::Mailbox* box = sg4::Mailbox::by_name(fmt::format("{}-{}", in.partner, place));
  if (step.sends) {
    static int token = 0;
    box->put_init(&token, static_cast<std::uint64_t>(step.wire))
        ->set_rate(step.wire / (static_cast<double>(step.ps) * kSecondsPerPs))
        ->wait();
  } else {
    box->get<int>();
  }
}

void run_stream(const Stage& stage, int actor, int stream) {
  const simulator::ReplayTopology& topology = stage.cast.topology;
  const auto p = static_cast<std::size_t>(actor);
  const simulator::InstructionStreams& instructions =
      stage.cast.streams_by_role[static_cast<std::size_t>(topology.role[p])];
  const simulator::Draws draws(1, static_cast<std::uint32_t>(actor), static_cast<std::uint32_t>(stream));
  simulator::Variation variation;
  variation.jitter = stage.jitter;
  std::uint64_t drawn = 0;
  const auto signal = [&](int from, int to) -> const sg4::SemaphorePtr& {
    return stage.signals[p][static_cast<std::size_t>(from * simulator::kStreams + to)];
  };
  for (const simulator::Instruction& in : instructions.streams[static_cast<std::size_t>(stream)]) {
    for (int from = 0; from < simulator::kStreams; ++from) {
      if ((in.waits >> from & 1) != 0) signal(from, stream)->acquire();
    }
    for (std::int32_t s = 0; s < in.steps; ++s, ++drawn) {
      const simulator::Step& step = instructions.steps[static_cast<std::size_t>(in.first_step + s)];
      const double seconds = static_cast<double>(varied(step, variation, draws, drawn, 1.0)) * kSecondsPerPs;
      if (in.rendezvous == simulator::RendezvousKind::kTransfer) {
        transfer(in, step, actor % topology.role_stride);
      } else if (in.rendezvous == simulator::RendezvousKind::kCollective) {
        const auto id =
            topology
                .communicator[p * static_cast<std::size_t>(topology.channels) + static_cast<std::size_t>(in.partner)];
        stage.barriers[static_cast<std::size_t>(id)]->wait();
        sg4::this_actor::sleep_for(seconds);
      } else {
        sg4::this_actor::execute(seconds * kFlopsPerSecond);
      }
    }
    for (int to = 0; to < simulator::kStreams; ++to) {
      if ((in.signals >> to & 1) != 0) signal(stream, to)->release();
    }
  }
}

void build(const hardware::Cluster& cluster, Stage& stage) {
  sg4::NetZone* zone = sg4::create_star_zone("cluster");
  const hardware::Node& node = cluster.groups.front().node;
  const double capacity = simulator::network_share(node, node.devices, 1).value();
  std::vector<const sg4::SplitDuplexLink*> adapters;
  for (int n = 0; n < cluster.nodes(); ++n) {
    adapters.push_back(zone->create_split_duplex_link(fmt::format("adapters-{}", n), capacity));
  }
  for (int p = 0; p < stage.cast.topology.actors(); ++p) {
    sg4::Host* host = zone->create_host(fmt::format("rank-{}", p), kFlopsPerSecond);
    host->set_core_count(simulator::kStreams)->seal();
    const sg4::LinkInRoute out(adapters[static_cast<std::size_t>(p / node.devices)], sg4::LinkInRoute::Direction::UP);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {out}, true);
  }
  zone->seal();
  for (const simulator::Communicator& all : stage.cast.topology.communicators) {
    stage.barriers.push_back(sg4::Barrier::create(static_cast<unsigned>(all.size)));
  }
  stage.signals.resize(static_cast<std::size_t>(stage.cast.topology.actors()));
  for (auto& pairs : stage.signals) {
    for (auto& one : pairs) one = sg4::Semaphore::create(0);
  }
  for (int p = 0; p < stage.cast.topology.actors(); ++p) {
    const auto role = static_cast<std::size_t>(stage.cast.topology.role[static_cast<std::size_t>(p)]);
    for (int s = 0; s < simulator::kStreams; ++s) {
      if (stage.cast.streams_by_role[role].streams[static_cast<std::size_t>(s)].empty()) continue;
      sg4::Actor::create(fmt::format("{}-{}", p, s), sg4::Host::by_name(fmt::format("rank-{}", p)),
                         [&stage, p, s] { run_stream(stage, p, s); });
    }
  }
}

double seconds_of(const auto& work) {
  const std::clock_t begin =
      std::clock();  // both are single-threaded: processor time is what an idle machine's clock shows
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

// SimGrid's engine cannot be started twice in a process: one run, with jitter or without, chosen by a third argument.
int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') argc = 1;  // options of the other benchmarks
  const int micro_batches = argc > 1 ? std::atoi(argv[1]) : 16, replicas = argc > 2 ? std::atoi(argv[2]) : 8;
  const double jitter = argc > 3 ? std::atof(argv[3]) : 0;
  if (argc <= 3) {  // both, each in a process of its own
    const std::string again = fmt::format("{} {} {} ", argv[0], micro_batches, replicas);
    return std::system((again + "0").c_str()) != 0 || std::system((again + "0.05").c_str()) != 0 ? 1 : 0;
  }
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = micro_batches * replicas;
  job.plan.tensor = 8;
  job.plan.pipeline = 8;
  job.plan.data = replicas;
  job.plan.overlap.gradient_reduction = true;
  const hardware::Cluster cluster = hardware::load_cluster(fmt::format("dgx-a100-80gb:{}", 8 * replicas));
  const auto program = simulator::order(std::get<program::Program>(program::lower(job)), cluster).value_or_throw();
  const simulator::CostedProgram costed = simulator::cost(program, cluster);
  const simulator::ReplayProgram cast =
      simulator::compile_replay(costed, {simulator::Granularity::kOp, simulator::Ranks::kEvery, true}).value_or_throw();
  simulator::Variation variation;
  variation.jitter = jitter;
  variation.seed = 1;
  double ours_s = 0;
  const double ours = seconds_of([&] {
    const auto simulated = simulator::replay(costed, cast, variation, simulator::Keep::kNothing).value_or_throw();
    ours_s = static_cast<double>(simulated.makespan_ps) * kSecondsPerPs;
  });
  int count = 5;
  std::array<std::string, 5> words{"bench_simgrid", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                                   "--cfg=contexts/stack-size:64", "--log=root.threshold:critical"};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  sg4::Engine engine(&count, arguments.data());
  Stage stage{cast, jitter, {}, {}};
  const double theirs = seconds_of([&] {
    build(cluster, stage);
    engine.run();
  });
  fmt::print(
      "{} GPUs, {} micro-batches, jitter {:.0f} %: SimGrid {:.2f} s (iteration {:.4f} s), this engine {:.3f} s "
      "(iteration {:.4f} s), ratio {:.0f}\n",
      64 * replicas, micro_batches, 100 * jitter, theirs, sg4::Engine::get_clock(), ours, ours_s, theirs / ours);
  return 0;
}
