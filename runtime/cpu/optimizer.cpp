// The optimizer's kernels over one bucket: clear gradients, norm of the gradients, AdamW.
// A rank works on its part of the bucket: all of it, or with a sharded optimizer its shard
// (program::Bucket::own_begin), wherever the chunk keeps it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime/cpu/clear.h"
#include "runtime/cpu/clipping.h"
#include "runtime/cpu/double_double.h"
#include "runtime/cpu/optimizer_loops.h"
#include "runtime/cpu/own_part.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {
namespace {

using program::Parameter;
using program::Space;
using program::StateArrays;

/// How gradients are stored with 16-bit parameters.
bool keeps_half_gradients(const KernelArguments& a) {
  const auto trained = std::ranges::find(a.kind->parameters, false, &Parameter::frozen);
  return a.kind->buffers[static_cast<std::size_t>(trained->gradient)].dtype == program::DType::kFp16;
}

template <class T>
DoubleDouble sum_of_squares(const T* x, std::int64_t count) {
  DoubleDouble sum;
  optimizer_loops<T>(chosen_variant()).squares(x, count, &sum.hi, &sum.lo);
  return sum;
}

DoubleDouble sum_of_squares(const std::uint16_t* x, std::int64_t count) {
  constexpr std::int64_t kPart = 1024;
  std::array<float, kPart> wide{};
  DoubleDouble sum;
  for (std::int64_t begin = 0; begin < count; begin += kPart) {
    const std::int64_t part = std::min(kPart, count - begin);
    std::transform(x + begin, x + begin + part, wide.begin(), reduction::float_of_fp16);
    sum = sum + sum_of_squares(wide.data(), part);
  }
  return sum;
}

/// Of the rows of a parameter the columns that no rank before this one holds: flat ranges within [begin, end).
template <class Visit>
void for_each_own_row(const Parameter& p, std::int64_t begin, std::int64_t end, Visit visit) {
  const std::int64_t own = p.local_columns - p.key_columns;
  for (std::int64_t row = (begin - p.offset) / p.local_columns; p.offset + row * p.local_columns < end; ++row) {
    const std::int64_t first = p.offset + row * p.local_columns;
    const std::int64_t from = std::max(begin, first), to = std::min(end, first + own);
    if (from < to) visit(from, to);
  }
}

// Every element of the model counts once: a tied copy counts where the original is, a replicated parameter on the first
// rank of the tensor group, key heads on the first of the ranks that share them.
template <class G>
void add_norm(const KernelArguments& a) {
  const program::Bucket& bucket = bucket_of(a);
  const bool sharded = bucket.shard < bucket.elements;
  if (sharded && a.shard_replica != 0) return;  // counted in the first shard group
  // The group that adds the norms up has the dense part once for every expert rank, unless it is sharded.
  if (!sharded && !bucket.expert && a.expert_replica != 0) return;
  double* norm = output<double>(a, 0);
  DoubleDouble total{norm[0], norm[1]};
  for (int part = 0; part < bucket.parts; ++part) {
    const Range own = own_run(a, part);
    const G* gradient = space<G>(a, Space::kGradient) + bucket.own_gradients(a.shard_rank, part) - own.begin;
    for_each_parameter(a, own, [&](const Parameter& parameter, std::int64_t begin, std::int64_t end) {
      if (parameter.tied_copy) return;
      if (!program::is_first_holder(parameter, a.tensor_rank)) return;
      if (parameter.key_columns > 0 && a.tensor_rank % parameter.key_ranks != 0) {
        for_each_own_row(parameter, begin, end, [&](std::int64_t from, std::int64_t to) {
          total = total + sum_of_squares(gradient + from, to - from);
        });
        return;
      }
      total = total + sum_of_squares(gradient + begin, end - begin);
    });
  }
  norm[0] = total.hi;
  norm[1] = total.lo;
}

template <class G>
void clear_gradients(const KernelArguments& a) {
  if (a.out[0] != nullptr) {  // one buffer that lies outside all buckets: a tied weight's other gradient
    clear(a.out[0], static_cast<std::size_t>(a.op->elements) * sizeof(G));
    return;
  }
  const program::Bucket& bucket = bucket_of(a);
  const bool shard = bucket.gradient_shard >= 0;
  G* gradients = space<G>(a, Space::kGradient) + (shard ? bucket.gradient_shard : bucket.begin + bucket.gradient_shift);
  clear(gradients, static_cast<std::size_t>(shard ? bucket.shard : bucket.elements) * sizeof(G));
}

/// AdamW (Loshchilov, Hutter 2019, arXiv 1711.05101, algorithm 2) of clipped gradients g' (clipping.h):  m = b1 m + (1
/// - b1) g',  v = b2 v + (1 - b2) g'^2,
///   p -= lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p),  t = steps that were not skipped.
/// One element's arithmetic
/// reads that element alone, so a result is bitwise the same however the bucket is shared out.
template <class T>
class Stepper {
 public:
  explicit Stepper(const KernelArguments& a) : o_(*a.optimizer), clipping_(clipping_of(a)) {
    const double steps = static_cast<double>(a.values->step + 1 - a.values->skipped_steps);
    factors_ = {.clip = static_cast<T>(clipping_.factor),
                .rate = static_cast<T>(a.values->learning_rate),
                .beta1 = static_cast<T>(o_.beta1),
                .rest1 = static_cast<T>(1 - o_.beta1),
                .beta2 = static_cast<T>(o_.beta2),
                .rest2 = static_cast<T>(1 - o_.beta2),
                .correct1 = static_cast<T>(1 / (1 - std::pow(o_.beta1, steps))),
                .correct2 = static_cast<T>(1 / (1 - std::pow(o_.beta2, steps))),
                .epsilon = static_cast<T>(o_.epsilon),
                .decay = T(0)};
  }

  bool finite() const { return clipping_.finite(); }

  void operator()(const Parameter& parameter, T* p, const T* g, T* first, T* second, std::int64_t count) const {
    AdamWFactors<T> factors = factors_;
    factors.decay = parameter.decayed ? static_cast<T>(o_.weight_decay) : T(0);
    loops_.adamw(factors, p, g, first, second, count);
  }

  /// Moments in bf16 are widened, and rounded again after they were used.
  void operator()(const Parameter& parameter, T* p, const T* g, std::uint16_t* first, std::uint16_t* second,
                  std::int64_t count) const {
    constexpr std::int64_t kPart = 1024;
    std::array<T, kPart> m{}, v{};
    for (std::int64_t begin = 0; begin < count; begin += kPart) {
      const std::int64_t part = std::min(kPart, count - begin);
      const auto widen = [&](const std::uint16_t* kept, std::array<T, kPart>& wide) {
        std::transform(kept + begin, kept + begin + part, wide.begin(), reduction::float_of_bf16);
      };
      const auto round = [&](const std::array<T, kPart>& wide, std::uint16_t* kept) {
        std::transform(wide.begin(), wide.begin() + part, kept + begin, bf16_of);
      };
      widen(first, m), widen(second, v);
      (*this)(parameter, p + begin, g + begin, m.data(), v.data(), part);
      round(m, first), round(v, second);
    }
  }

 private:
  static std::uint16_t bf16_of(T value) {
    if constexpr (std::is_same_v<T, double>) {
      return reduction::bf16_of_double(value);
    } else {
      return reduction::bf16_of_float(value);
    }
  }

  const program::Optimizer& o_;
  Clipping clipping_;
  AdamWFactors<T> factors_{};
  OptimizerLoops<T> loops_ = optimizer_loops<T>(chosen_variant());
};

/// The optimizer's arrays of a bucket, of which run `part` is in use; elements are numbered as those of the chunk's
/// parameters are.
class State {
 public:
  State(const KernelArguments& a, int part, const Range& own)
      : arrays_{a.op->dtype, a.op->moments},
        shard_(bucket_of(a).shard),
        begin_(part * bucket_of(a).own_run() - own.begin) {
    std::byte* kept = a.chunk_base[static_cast<std::size_t>(Space::kOptimizer)] + bucket_of(a).optimizer_offset;
    base_ = a.in[1] != nullptr ? a.in[1] : kept;  // fetched, where it is offloaded
  }

  template <class E>
  E* array(int number) const {
    return reinterpret_cast<E*>(base_ + arrays_.offset(number, shard_)) + begin_;
  }

  /// Steps elements begin … end - 1 of p by the gradients g.
  template <class T>
  void step(const Stepper<T>& stepper, const Parameter& parameter, T* p, const T* g, std::int64_t begin,
            std::int64_t end) const {
    const auto with = [&]<class E>(E* first, E* second) {
      stepper(parameter, p + begin, g + begin, first + begin, second + begin, end - begin);
    };
    constexpr int kFirst = StateArrays::kFirstMoment, kSecond = StateArrays::kSecondMoment;
    if (arrays_.moments == program::Moments::kBf16) {
      with(array<std::uint16_t>(kFirst), array<std::uint16_t>(kSecond));
    } else {
      with(array<T>(kFirst), array<T>(kSecond));
    }
  }

 private:
  StateArrays arrays_;
  std::int64_t shard_, begin_;
  std::byte* base_ = nullptr;
};

}  // namespace

template <class T>
static void zero_gradients(const KernelArguments& a) {
  clear_gradients<T>(a);
}

static void zero_gradients_half(const KernelArguments& a) { clear_gradients<std::uint16_t>(a); }

template <class T>
static void gradient_norm(const KernelArguments& a) {
  add_norm<T>(a);
}

static void gradient_norm_half(const KernelArguments& a) { add_norm<std::uint16_t>(a); }

template <class T>
static void adamw(const KernelArguments& a) {
  const Stepper<T> step(a);
  if (!step.finite()) return;
  const program::Bucket& bucket = bucket_of(a);
  for (int part = 0; part < bucket.parts; ++part) {
    const Range own = own_run(a, part);
    T* parameters = space<T>(a, Space::kParameter) + bucket.own_parameters(a.shard_rank, part) - own.begin;
    const T* gradients = space<T>(a, Space::kGradient) + bucket.own_gradients(a.shard_rank, part) - own.begin;
    const State state(a, part, own);
    for_each_parameter(a, own, [&](const Parameter& parameter, std::int64_t begin, std::int64_t end) {
      state.step(step, parameter, parameters, gradients, begin, end);
    });
  }
}

// The fp32 copy is stepped; parameters are what it rounds to. fp16 gradients have an fp32 copy in the state as well.
static void adamw_half(const KernelArguments& a) {
  const Stepper<float> step(a);
  if (!step.finite()) return;
  const program::Bucket& bucket = bucket_of(a);
  for (int part = 0; part < bucket.parts; ++part) {
    const Range own = own_run(a, part);
    const std::int64_t at = bucket.own_gradients(a.shard_rank, part) - own.begin;
    std::uint16_t* parameters = space<std::uint16_t>(a, Space::kParameter) + bucket.own_parameters(a.shard_rank, part);
    const State state(a, part, own);
    float* master = state.array<float>(StateArrays::kMaster);
    const float* gradients = space<float>(a, Space::kGradient) + at;
    const bool half_gradients = keeps_half_gradients(a);
    const bool bf16 = a.op->dtype == program::DType::kBf16;
    for_each_parameter(a, own, [&](const Parameter& parameter, std::int64_t begin, std::int64_t end) {
      if (half_gradients) {
        float* wide = state.array<float>(StateArrays::kWideGradient);
        const std::uint16_t* narrow = space<std::uint16_t>(a, Space::kGradient) + at;
        std::transform(narrow + begin, narrow + end, wide + begin, reduction::float_of_fp16);
        gradients = wide;
      }
      state.step(step, parameter, master, gradients, begin, end);
      std::uint16_t* out = parameters - own.begin;
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = bf16 ? reduction::bf16_of_float(master[i]) : reduction::fp16_of_float(master[i]);
      }
    });
  }
}

// Fetches and stores: `elements` bytes.
static void copy(const KernelArguments& a) { std::memcpy(a.out[0], a.in[0], static_cast<std::size_t>(a.op->elements)); }

void add_optimizer(KernelTable& table) {
  table.add(program::OpKind::kZeroGradients, zero_gradients<float>, zero_gradients<double>);
  table.add(program::OpKind::kGradientNorm, gradient_norm<float>, gradient_norm<double>);
  table.add(program::OpKind::kAdamW, adamw<float>, adamw<double>);
  table.add_half(program::OpKind::kZeroGradients, zero_gradients_half);
  table.add_half(program::OpKind::kGradientNorm, gradient_norm_half);
  table.add_half(program::OpKind::kAdamW, adamw_half);
  for (const auto kind : {program::OpKind::kFetch, program::OpKind::kStore}) table.add_any(kind, copy);
}

}  // namespace trivium::runtime::cpu
