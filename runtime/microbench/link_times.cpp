#include "runtime/microbench/link_times.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "runtime/microbench/bench_jobs.h"
#include "runtime/microbench/kernel_times.h"
#include "runtime/microbench/rate_fit.h"
#include "runtime/microbench/statistics.h"

namespace trivium::runtime::microbench {
namespace {

using program::DType;
using program::OpKind;

constexpr std::int64_t kElements[] = {256, 4096, 16384, 65536, 262144, 1048576};  // fp32: 1 KiB to 4 MiB
constexpr OpKind kKinds[] = {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kSend};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One call on this rank; of a send, rank 0 sends and rank 1 receives.
void call(Communicator& communicator, int group, int members, OpKind kind, std::int64_t count,
          std::vector<float>& whole, std::vector<float>& part, std::int64_t number) {
  const std::int64_t even = count / members * members;
  switch (kind) {
    case OpKind::kAllReduce:
      return communicator.all_reduce(group, whole.data(), count, DType::kFp32, program::Reduction::kSum);
    case OpKind::kReduceScatter:
      return communicator.reduce_scatter(group, whole.data(), part.data(), even, DType::kFp32);
    case OpKind::kAllGather:
      return communicator.all_gather(group, part.data(), whole.data(), even, DType::kFp32);
    default:
      break;
  }
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * count;
  if (communicator.rank() == 0) {
    communicator.post_send(1, number, whole.data(), bytes);
    communicator.wait_send(1, number);
  } else if (communicator.rank() == 1) {
    communicator.post_recv(0, number, whole.data(), bytes);
    communicator.wait_recv(0, number);
  }
}

/// Of every repetition what a call takes from the arrival of its last rank, the mean over ranks. As in a
/// training, ranks do not arrive together: some sleep meanwhile and have to be woken.
std::vector<double> time_call(int members, OpKind kind, std::int64_t count, int repeats) {
  constexpr double kLatest = 60e-6;  // s
  std::vector<int> everyone(static_cast<std::size_t>(members));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<std::vector<double>> starts(static_cast<std::size_t>(repeats)), ends;
  for (auto& each : starts) each.resize(static_cast<std::size_t>(members));
  ends = starts;
  inproc::run_ranks(members, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const int group = communicator.make_group(everyone);
    std::minstd_rand random(static_cast<unsigned>(rank + 1));
    std::uniform_real_distribution<double> late(0, kLatest);
    std::vector<float> whole(static_cast<std::size_t>(count), 1.0F), part(whole);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      communicator.barrier(group);
      const double ready = now() + late(random);
      while (now() < ready) continue;
      starts[i][rank] = now();
      call(communicator, group, members, kind, count, whole, part, static_cast<std::int64_t>(i));
      ends[i][rank] = now();
      whole.assign(whole.size(), 1.0F);  // sums of sums would overflow
    }
  });
  const int taking_part = kind == OpKind::kSend ? 2 : members;
  std::vector<double> seconds;
  for (std::size_t i = 1; i < starts.size(); ++i) {
    const double last = *std::max_element(starts[i].begin(), starts[i].begin() + taking_part);
    const double end = std::accumulate(ends[i].begin(), ends[i].begin() + taking_part, 0.0) / taking_part;
    seconds.push_back(end - last);
  }
  return seconds;
}

/// Reads of shared memory as the cost rule counts them: all-reduce sums the buffers of all members.
double bytes_read(OpKind kind, int members, std::int64_t count) {
  return static_cast<double>(sizeof(float)) * static_cast<double>(count) * (kind == OpKind::kAllReduce ? members : 1);
}

/// Of every step of a training split over tensor ranks: mean wait at a collective, over log2(ranks). Ranks on cores
/// part in proportion to what they compute between collectives, so a small training is taken: where ops are long, its
/// wait is too short by a share of an op that does not matter, while that of long ops is a third of a short one.
std::vector<double> skews(int ranks, bool quick) {
  const int split = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(ranks, 8))));  // divides the heads
  const program::VerifiedProgram verified = tensor_program(split);
  const program::Program& program = verified;
  const auto corpus = random_corpus(1 << 20, static_cast<std::int32_t>(program.job.model.vocab));
  TrainOptions options;
  options.steps = quick ? 20 : 60;
  options.timeline_steps = options.steps - 1;
  const TrainResult result = train_in_threads(verified, *corpus, options);
  std::map<int, std::pair<double, double>> by_step;  // waits, collectives
  for (const program::Event& event : result.timeline.events) {
    const program::Task& task = program.role_of(event.rank).tasks[static_cast<std::size_t>(event.task)];
    if (!program::is_communication(program.body_of(task).ops[static_cast<std::size_t>(event.op)].kind)) continue;
    by_step[event.step].first += static_cast<double>(event.wait_ps) * 1e-12;
    by_step[event.step].second += 1;
  }
  std::vector<double> means;
  for (const auto& [step, sum] : by_step) means.push_back(sum.first / sum.second / std::log2(split));
  return means;
}

}  // namespace

std::vector<double> time_small_all_reduces(int threads, bool quick) {
  constexpr int kCalls = 20;
  const int batches = quick ? 300 : 1000;
  std::vector<int> everyone(static_cast<std::size_t>(threads));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<double> seconds;
  inproc::run_ranks(threads, [&](Communicator& communicator) {
    const int group = communicator.make_group(everyone);
    std::vector<float> zeros(static_cast<std::size_t>(kElements[1]));
    for (int batch = 0; batch <= batches; ++batch) {
      const double began = now();
      for (int i = 0; i < kCalls; ++i) {
        communicator.all_reduce(group, zeros.data(), kElements[1], DType::kFp32, program::Reduction::kSum);
      }
      if (communicator.rank() == 0 && batch > 0) seconds.push_back((now() - began) / kCalls);  // the first warms up
    }
  });
  return seconds;
}

LinkTimes time_links(int ranks, bool quick) {
  std::vector<ShapeTime> shapes;
  std::vector<double> spreads;
  for (int members = 2; members <= ranks; members *= 2) {
    for (const OpKind kind : kKinds) {
      if (kind == OpKind::kSend && members > 2) continue;
      for (const std::int64_t count : kElements) {
        const int repeats = (quick ? 20 : 100) + (count < kElements[2] ? 200 : 0);
        const std::vector<double> seconds = time_call(members, kind, count, repeats);
        shapes.push_back({.bytes = bytes_read(kind, members, count), .seconds = quantile(seconds, 0.5)});
        spreads.push_back(spread(seconds));
      }
    }
  }
  const hardware::OpRate rate = fit_rate(shapes);
  LinkTimes times;
  times.link.latency = rate.overhead;
  times.link.bandwidth = base::BytesPerSecond(1 / rate.seconds_per_byte);
  times.link.efficiency = 1;
  for (const ShapeTime& s : shapes) {
    const double predicted = rate.overhead.value() + s.bytes * rate.seconds_per_byte;
    times.fit_error += std::abs(predicted / s.seconds - 1) / static_cast<double>(shapes.size());
  }
  times.spread = quantile(std::move(spreads), 0.5);
  const std::vector<double> skew = skews(ranks, quick);
  times.skew = base::Seconds(quantile(skew, 0.5));
  times.skew_spread = spread(skew);
  return times;
}

}  // namespace trivium::runtime::microbench
