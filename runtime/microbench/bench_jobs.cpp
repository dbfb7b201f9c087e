#include "runtime/microbench/bench_jobs.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "program/lower/lower.h"

namespace trivium::runtime::microbench {
namespace {

constexpr std::int64_t kLayers =
    2;  // the first reads what the embedding left in the caches, the second what a layer did
constexpr std::int64_t kMicroBatches = 2;

struct Variant {
  std::int64_t hidden, sequence;
  int micro_batch, tensor;
  bool llama = false;  ///< rotary positions, gated MLP, root-mean-square norms
  std::int64_t vocab = 256;
  bool gpu = false;  ///< bf16, fused attention, heads of 64
  program::Fp8 fp8 = program::Fp8::kNone;
};

/// Attention alone: many or few heads, narrow or wide ones, over short and long samples.
struct Heads {
  std::int64_t hidden, sequence;
  int micro_batch;
  std::int64_t heads, head_dim;
};

/// A variant whose sequence lies on two ranks, or whose layers are mixtures of experts.
enum class Kind : std::uint8_t { kRing, kAllToAll, kMixture };
struct Special {
  Kind kind;
  Variant variant;
};

// Tokens of a micro-batch 64 to 2,048. The vocabularies are the byte's and one large enough to fill a core's cache.
constexpr Variant kFull[] = {
    {64, 64, 1, 1},   {64, 128, 4, 1},   {128, 128, 1, 1},       {128, 128, 4, 1},       {128, 128, 1, 2},
    {128, 128, 4, 2}, {128, 128, 16, 1}, {256, 256, 1, 1},       {256, 128, 4, 2},       {384, 256, 1, 1},
    {384, 256, 2, 2}, {384, 256, 4, 1},  {128, 128, 2, 1, true}, {256, 256, 1, 2, true}, {128, 128, 2, 1, false, 4096}};
constexpr Variant kQuick[] = {{64, 64, 1, 1},   {128, 128, 1, 1}, {128, 128, 4, 1},      {128, 128, 2, 2},
                              {256, 256, 1, 1}, {384, 256, 1, 1}, {128, 128, 2, 1, true}};

// Blocks of a ring grow with the square of the sequence; what passes between the ranks and the experts with the tokens.
constexpr Special kSpecialFull[] = {
    {Kind::kRing, {64, 128, 1, 1}},      {Kind::kRing, {128, 128, 2, 1}},     {Kind::kRing, {128, 256, 1, 1}},
    {Kind::kRing, {192, 128, 4, 1}},     {Kind::kRing, {256, 256, 2, 1}},     {Kind::kAllToAll, {64, 128, 1, 1}},
    {Kind::kAllToAll, {128, 128, 4, 1}}, {Kind::kAllToAll, {256, 256, 2, 1}}, {Kind::kMixture, {64, 128, 1, 1}},
    {Kind::kMixture, {128, 128, 4, 1}},  {Kind::kMixture, {256, 256, 1, 1}}};
constexpr Special kSpecialQuick[] = {{Kind::kRing, {64, 128, 1, 1}},      {Kind::kRing, {128, 128, 2, 1}},
                                     {Kind::kRing, {256, 256, 1, 1}},     {Kind::kAllToAll, {64, 128, 1, 1}},
                                     {Kind::kAllToAll, {256, 128, 2, 1}}, {Kind::kMixture, {64, 128, 1, 1}},
                                     {Kind::kMixture, {256, 128, 2, 1}}};

// Sequences of 512 to 2,048 tokens; micro-batches of 4,096 to 32,768.
constexpr Variant kGpuFull[] = {{768, 1024, 4, 1, false, 50304, true},  {768, 1024, 32, 1, false, 50304, true},
                                {1024, 512, 32, 1, false, 50304, true}, {1024, 1024, 16, 1, true, 32000, true},
                                {1600, 1024, 8, 1, false, 50304, true}, {2048, 2048, 4, 1, false, 50304, true},
                                {2048, 1024, 8, 2, true, 32000, true},  {4096, 2048, 4, 1, true, 32000, true},
                                {4096, 1024, 4, 4, false, 50304, true}};
constexpr Variant kGpuQuick[] = {{768, 1024, 8, 1, false, 50304, true},
                                 {1600, 1024, 8, 1, false, 50304, true},
                                 {2048, 1024, 8, 2, true, 32000, true}};
// For the casts to 8 bits alone, where a device has them.
constexpr Variant kGpuCasts[] = {{768, 1024, 8, 1, false, 256, true, program::Fp8::kCurrent},
                                 {2048, 1024, 8, 2, true, 256, true, program::Fp8::kCurrent}};

// What a head costs apart from its FLOPs and bytes shows where heads are many and samples short; what a byte costs,
// where heads are wide. Both kernels run all of them.
constexpr Heads kHeadsFull[] = {{128, 64, 1, 4, 32},   {128, 64, 8, 16, 32},  {256, 64, 4, 4, 64},
                                {128, 128, 4, 8, 16},  {256, 128, 4, 8, 64},  {256, 256, 1, 4, 64},
                                {128, 256, 2, 16, 32}, {256, 512, 1, 8, 32},  {128, 512, 2, 4, 64},
                                {128, 1024, 1, 4, 32}, {128, 1024, 1, 4, 128}};
constexpr Heads kHeadsQuick[] = {{128, 64, 1, 4, 32},  {128, 64, 4, 16, 32}, {128, 128, 4, 4, 64},
                                 {128, 256, 1, 8, 32}, {128, 512, 1, 4, 64}, {64, 1024, 1, 2, 32}};

program::Job job_of(const Variant& v) {
  const std::int64_t head_dim = v.gpu ? 64 : 32;
  program::Job job;
  models::Model& model = job.model;
  model.name = "microbenchmark";
  model.layers = kLayers;
  model.hidden = v.hidden;
  model.head_dim = head_dim;
  model.heads = model.kv_heads = v.hidden / head_dim;
  model.ffn_hidden = 4 * v.hidden;
  model.vocab = v.vocab;
  model.max_sequence = v.sequence;
  if (v.llama) {
    model.norm = models::Norm::kRmsNorm;
    model.positions = models::Positions::kRotary;
    model.activation = models::Activation::kSwiglu;
  }
  job.training.sequence = v.sequence;
  job.training.global_batch = v.micro_batch * kMicroBatches;
  job.plan.tensor = v.tensor;
  job.plan.micro_batch = v.micro_batch;
  job.plan.precision = v.gpu ? program::DType::kBf16 : program::DType::kFp32;
  job.plan.attention = v.gpu ? program::Attention::kFlash : program::Attention::kUnfused;
  job.plan.fp8 = v.fp8;
  return job;
}

program::Program program_of(const program::Job& job) {
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) throw std::logic_error(no->reason);
  auto program = std::get<program::Program>(std::move(lowered));
  order_by_dependencies(program);
  return program;
}

program::Job job_of(const Heads& h, program::Attention attention) {
  program::Job job = job_of(Variant{h.hidden, h.sequence, h.micro_batch, 1});
  job.model.heads = job.model.kv_heads = h.heads;
  job.model.head_dim = h.head_dim;
  job.plan.attention = attention;
  return job;
}

program::Job job_of(const Special& special) {
  program::Job job = job_of(special.variant);
  if (special.kind == Kind::kMixture) {
    job.model.linear_bias = false;  // experts have none
    job.model.experts = models::Experts{4, 2};
    return job;
  }
  job.plan.context = 2;
  job.plan.attention = program::Attention::kFlash;
  job.plan.context_method =
      special.kind == Kind::kRing ? program::ContextMethod::kRing : program::ContextMethod::kAllToAll;
  return job;
}

std::vector<program::Program> programs_of(std::span<const Variant> variants, std::span<const Heads> heads,
                                          std::span<const Special> specials) {
  std::vector<program::Program> programs;
  for (const Variant& variant : variants) programs.push_back(program_of(job_of(variant)));
  for (const Heads& each : heads) {
    for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
      programs.push_back(program_of(job_of(each, attention)));
    }
  }
  for (const Special& special : specials) programs.push_back(program_of(job_of(special)));
  return programs;
}

/// Whether everything that a segment waits for stands in the order.
bool is_ready(const program::Role& role, const program::Program& program, const program::Issue& issue) {
  const auto issued = [&](std::int32_t task, std::int16_t segment) {
    return std::find(role.order.begin(), role.order.end(), program::Issue{task, segment}) != role.order.end();
  };
  for (const program::Dependency& d : role.tasks[static_cast<std::size_t>(issue.task)].after) {
    if (d.before != issue.segment) continue;
    const auto& body = program.body_of(role.tasks[static_cast<std::size_t>(d.task)]);
    const auto last = static_cast<std::int16_t>(body.segments.size() - 1);
    if (!issued(d.task, d.segment == program::kWholeTask ? last : d.segment)) return false;
  }
  return true;
}

}  // namespace

void order_by_dependencies(program::Program& program) {
  program::Role& role = program.roles.front();
  std::vector<std::int16_t> next(role.tasks.size(), 0);  // segment by task
  role.order.clear();
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t t = 0; t < role.tasks.size(); ++t) {
      const auto segments = static_cast<std::int16_t>(program.body_of(role.tasks[t]).segments.size());
      while (next[t] < segments && is_ready(role, program, {static_cast<std::int32_t>(t), next[t]})) {
        role.order.push_back({static_cast<std::int32_t>(t), next[t]++});
        moved = true;
      }
    }
  }
}

std::vector<program::Program> bench_programs(bool quick) {
  return quick ? programs_of(kQuick, kHeadsQuick, kSpecialQuick) : programs_of(kFull, kHeadsFull, kSpecialFull);
}

std::vector<program::Program> gpu_bench_programs(bool quick) {
  std::vector<program::Program> all = quick ? programs_of(kGpuQuick, {}, {}) : programs_of(kGpuFull, {}, {});
  for (program::Program& casts : programs_of(kGpuCasts, {}, {})) all.push_back(std::move(casts));
  return all;
}

program::VerifiedProgram tensor_program(int ranks) {
  constexpr Variant kSplit{128, 64, 1, 1};
  Variant variant = kSplit;
  variant.tensor = ranks;
  return program::VerifiedProgram::of(program_of(job_of(variant))).value_or_throw();
}

program::VerifiedProgram data_program(std::int64_t hidden, int ranks) {
  program::Job job = job_of({hidden, 128, 1, 1});
  job.plan.data = ranks;
  job.training.global_batch *= ranks;
  return program::VerifiedProgram::of(program_of(job)).value_or_throw();
}

}  // namespace trivium::runtime::microbench
