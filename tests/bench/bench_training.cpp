// GPT-2 124M trained on this machine's cores: tokens per second, and the share of its fastest matrix products.
//   bench_training [SEQUENCE...] [data] [tensor]
// Batches of 4 samples of 64 and of 1,024 tokens, split over replicas and split over the matrices' columns, unless
// told; options are passed over.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "runtime/executor/train.h"
#include "simulator/predict/prepare.h"
#include "tests/bench/gemm_peak.h"

namespace {

using namespace trivium;

constexpr int kBatch = 4;
constexpr int kFewTokens = 256;               // up to so many in a sample a step takes about a second
constexpr int kManySteps = 6, kFewSteps = 4;  // the first warms caches
constexpr double kReferenceStep = 2.8;  // s: llm.c's CPU trainer, 4 x 64 tokens, two threads of a machine like this one

/// Tokens all over the vocabulary, as text in GPT-2's encoding has them.
class RandomTokens : public runtime::data::Corpus {
 public:
  explicit RandomTokens(std::int64_t vocabulary) : vocabulary_(vocabulary) {}
  std::int64_t tokens() const override { return std::int64_t{1} << 24; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::int32_t token(std::int64_t position) const override {
    auto x = static_cast<std::uint64_t>(position) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::int32_t>((x >> 33) % static_cast<std::uint64_t>(vocabulary_));
  }
  std::string description() const override { return "pseudo-random tokens"; }

 private:
  std::int64_t vocabulary_;
};

enum class Split { kData, kTensor };

/// Over as many ranks as cores and samples allow: replicas that share the optimizer's work, or parts of every matrix.
program::Job job_of(std::int64_t sequence, Split split, int ranks) {
  program::Job job;
  job.model = models::load_model("gpt2-124m");
  job.training.sequence = sequence;
  job.training.global_batch = kBatch;
  (split == Split::kData ? job.plan.data : job.plan.tensor) = ranks;
  job.plan.zero_stage = job.plan.data > 1 ? 1 : 0;
  job.plan.micro_batch = sequence <= kFewTokens ? kBatch / job.plan.data : 1;
  job.plan.precision = job.plan.reduce_dtype = program::DType::kFp32;
  job.plan.attention = program::Attention::kFlash;
  return job;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void train(std::int64_t sequence, Split split, int ranks, const bench::GemmPeak& peak) {
  const program::Job job = job_of(sequence, split, ranks);
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu");
  cluster.groups.front().node.devices = job.plan.ranks();
  const auto program = simulator::prepare(job, cluster, {.fits = false}).value_or_throw().verified();
  runtime::TrainOptions options;
  options.steps = sequence <= kFewTokens ? kManySteps : kFewSteps;
  options.timeline_steps = 1;
  const runtime::TrainResult result = runtime::train_in_threads(program, RandomTokens(job.model.vocab), options);
  std::vector<double> seconds;
  for (std::size_t i = 1; i < result.steps.size(); ++i) seconds.push_back(result.steps[i].seconds);
  const double step = median(seconds), tokens = static_cast<double>(kBatch * sequence);
  const double flops = models::flops_per_token(job.model, sequence).model * tokens / step;
  fmt::print("{} of {} x {} tokens, {}: {:.3f} s a step, {:.0f} tokens/s, {:.1f} GFLOP/s, {:.1f} % of the peak\n",
             job.model.name, kBatch, sequence, program::summary(job.plan), step, tokens / step, flops * 1e-9,
             100 * flops / peak.flops_per_s);
  if (sequence == 64) fmt::print("  {:.2f} times as fast as llm.c's {} s\n", kReferenceStep / step, kReferenceStep);
  std::map<std::string_view, double> by_kind;
  for (const program::Event& e : result.timeline.events) {
    if (e.rank != 0) continue;
    const program::Task& task = program.role_of(0).tasks[static_cast<std::size_t>(e.task)];
    const program::OpKind kind = program.body_of(task).ops[static_cast<std::size_t>(e.op)].kind;
    by_kind[name_of(kind)] += static_cast<double>(e.end_ps - e.start_ps) * 1e-12;
  }
  for (const auto& [kind, spent] : by_kind)
    fmt::print("    {:<24} {:6.1f} %  {:.3f} s\n", kind, 100 * spent / step, spent);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--openblas") return bench::measure_openblas(std::atoi(argv[2]));
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int ranks = cores >= 4 ? 4 : cores >= 2 ? 2 : 1;
  const bench::GemmPeak peak = bench::gemm_peak(ranks, std::filesystem::read_symlink("/proc/self/exe"));
  fmt::print("{} cores; fastest matrix products on {} of them: {:.1f} GFLOP/s ({})\n", cores, ranks,
             peak.flops_per_s * 1e-9, peak.from);
  std::vector<std::int64_t> sequences;
  std::vector<Split> splits;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "data") splits.push_back(Split::kData);
    if (word == "tensor") splits.push_back(Split::kTensor);
    const int sequence = std::atoi(argv[i]);
    if (sequence > 0) sequences.push_back(sequence);
    if (word != "data" && word != "tensor" && sequence <= 0) {
      fmt::print(stderr, "bench_training: \"{}\" is neither data, tensor nor a number of tokens\n", word);
      return 2;
    }
  }
  if (sequences.empty()) sequences = {64, 1024};
  if (splits.empty()) splits = {Split::kData, Split::kTensor};
  for (const std::int64_t sequence : sequences) {
    for (const Split split : splits) train(sequence, split, ranks, peak);
  }
  return 0;
}
