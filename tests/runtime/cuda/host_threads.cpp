#include "tests/runtime/cuda/host_threads.h"

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>

#include "runtime/cuda/kernels/activation.h"
#include "runtime/reduction/fp8.h"
#include "tests/runtime/cuda/scale_layouts.h"

namespace trivium::runtime::cuda {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 17;
constexpr int kRowBytes = 128, kPartRows = 64, kPartColumns = 64;  // of a tile that warpgroups read

thread_local HostBlock* entered = nullptr;  // what a fiber that begins belongs to

float element(const void* from, std::int64_t i, program::DType type) {
  if (type == program::DType::kBf16) return widen(static_cast<const Bf16*>(from)[i]);
  if (type == program::DType::kFp16) return widen(static_cast<const Fp16*>(from)[i]);
  return static_cast<const float*>(from)[i];
}

/// Of an operand that may be in 8 bits, whose scale is not part of it.
float element(const void* from, std::int64_t i, program::DType type, Codes codes) {
  if (codes == Codes::kNone) return element(from, i, type);
  const auto format = codes == Codes::kE4M3 ? reduction::Fp8Type::kE4M3 : reduction::Fp8Type::kE5M2;
  return reduction::float_of_fp8(static_cast<const std::uint8_t*>(from)[i], format);
}

void put(void* to, std::int64_t i, program::DType type, float value) {
  if (type == program::DType::kBf16) {
    static_cast<Bf16*>(to)[i] = narrow<Bf16>(value);
  } else if (type == program::DType::kFp16) {
    static_cast<Fp16*>(to)[i] = narrow<Fp16>(value);
  } else {
    static_cast<float*>(to)[i] = value;
  }
}

/// u (1 + tanh g) / 2 with g = sqrt(2/pi) (u + 0.044715 u^3), and its derivative.
CurvePoint gelu(float u) {
  const float root = std::sqrt(2.0F / std::numbers::pi_v<float>);
  const float tanh = std::tanh(root * (u + 0.044715F * u * u * u));
  return {0.5F * u * (1 + tanh), 0.5F * (1 + tanh) + 0.5F * u * (1 - tanh * tanh) * root * (1 + 3 * 0.044715F * u * u)};
}

}  // namespace

std::vector<int> in_turns(int count, Turns turns, unsigned seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (turns == Turns::kDescending) std::reverse(order.begin(), order.end());
  if (turns == Turns::kShuffled) std::shuffle(order.begin(), order.end(), std::minstd_rand(seed + 1));
  return order;
}

HostBlock::HostBlock(int threads)
    : threads_(threads),
      next_(static_cast<std::size_t>(threads)),
      next_of_warp_(static_cast<std::size_t>(threads)),
      warps_(static_cast<std::size_t>(threads / kWarp)),
      exchanges_(warps_.size()),
      fibers_(static_cast<std::size_t>(threads)) {
  for (Fiber& fiber : fibers_) fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
}

HostBlock& HostBlock::of(int threads) {
  thread_local std::map<int, std::unique_ptr<HostBlock>> all;
  std::unique_ptr<HostBlock>& block = all[threads];
  if (!block) block = std::make_unique<HostBlock>(threads);
  return *block;
}

// A fiber's whole life: one block after the other.
void HostBlock::enter() {
  HostBlock* const self = entered;
  const int thread = self->running_;
  for (;;) {
    (*self->body_)(thread);
    self->leave(thread);
  }
}

// Contexts begin a fiber; to switch between those that have begun they would ask the system for its signals each time.
void HostBlock::go_on(jmp_buf& from, int thread) {
  running_ = thread;
  Fiber& fiber = fibers_[static_cast<std::size_t>(thread)];
  if (_setjmp(from) != 0) return;
  if (std::exchange(fiber.begun, true)) _longjmp(fiber.place, 1);
  ucontext_t start{};
  getcontext(&start);
  start.uc_stack.ss_sp = fiber.stack.get();
  start.uc_stack.ss_size = kStackBytes;
  start.uc_link = nullptr;
  makecontext(&start, &HostBlock::enter, 0);
  entered = this;
  setcontext(&start);
}

void HostBlock::run(const std::function<void(int)>& body, int shared_bytes, Turns turns) {
  body_ = &body;
  turns_ = turns;
  block_ = {threads_};
  for (Barrier& warp : warps_) warp = {kWarp};
  shared_.assign(static_cast<std::size_t>(shared_bytes) + kSharedAlignment,
                 std::byte{0xff});  // NaN: nobody may count on zeros
  for (Fiber& fiber : fibers_) fiber.ended = false;
  const std::vector<int> order = in_turns(threads_, turns, blocks_run_++);
  for (std::size_t i = 0; i < order.size(); ++i) {
    next_[static_cast<std::size_t>(order[i])] = order[(i + 1) % order.size()];
  }
  for (int thread = 0; thread < threads_; ++thread) {
    int mate = thread;
    do mate = next_[static_cast<std::size_t>(mate)];
    while (mate / kWarp != thread / kWarp);
    next_of_warp_[static_cast<std::size_t>(thread)] = mate;
  }
  next_in_warp_ = turns == Turns::kAscending ? &next_ : &next_of_warp_;
  go_on(caller_, order.front());
}

// Those that have ended are not waited for, as on the device.
void HostBlock::leave(int thread) {
  fibers_[static_cast<std::size_t>(thread)].ended = true;
  for (Barrier* barrier : {&block_, &warps_[static_cast<std::size_t>(thread / kWarp)]}) {
    --barrier->members;
    if (barrier->arrived > 0 && barrier->arrived == barrier->members) {
      barrier->arrived = 0;
      ++barrier->round;
    }
  }
  Fiber& fiber = fibers_[static_cast<std::size_t>(thread)];
  if (block_.members > 0) return yield(thread, next_);
  if (_setjmp(fiber.place) == 0) _longjmp(caller_, 1);
}

void HostBlock::yield(int thread, const std::vector<int>& next) {
  int other = thread;
  do other = next[static_cast<std::size_t>(other)];
  while (fibers_[static_cast<std::size_t>(other)].ended && other != thread);
  if (other != thread) go_on(fibers_[static_cast<std::size_t>(thread)].place, other);
}

void HostBlock::wait(int thread, Barrier& barrier, const std::vector<int>& next) {
  const std::uint64_t round = barrier.round;
  if (++barrier.arrived == barrier.members) {
    barrier.arrived = 0;
    ++barrier.round;
    return;
  }
  while (barrier.round == round) yield(thread, next);
}

// PTX ISA, ldmatrix: thread 8 i + r names row r of matrix i; thread l receives of each matrix the elements 2 (l % 4)
// and the next of row l / 4, or with .trans of column l / 4.
void HostThread::matrices(const void* row, std::uint32_t (&to)[4], bool transposed) {
  check_shared(row, 16);
  HostBlock::Exchange& shown = host_.exchange(thread_);
  std::memcpy(&shown.bits[lane()][0], row, 16);
  host_.wait_for_warp(thread_);
  for (int i = 0; i < 4; ++i) {
    const auto at = [&](int r, int c) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const char*>(&shown.bits[8 * i + r][0]) + 2 * c, 2);
      return static_cast<std::uint32_t>(bits);
    };
    const int major = lane() / 4, minor = lane() % 4 * 2;
    to[i] = transposed ? at(minor, major) | at(minor + 1, major) << 16 : at(major, minor) | at(major, minor + 1) << 16;
  }
  host_.wait_for_warp(thread_);
}

// PTX ISA, mma.m16n8k16 with 16-bit elements: with g = lane / 4 and t = lane % 4, A's registers hold rows g, g + 8, g,
// g + 8 at columns 2t (the last two at 2t + 8), B's rows 2t and 2t + 8 of column g, C's rows g, g, g + 8, g + 8 at
// columns 2t and 2t + 1.
void HostThread::multiply_as(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                             float (*widen_bits)(std::uint16_t)) {
  HostBlock::Exchange& shown = host_.exchange(thread_);
  shown.bits[lane()][0] = a[0] | static_cast<std::uint64_t>(a[1]) << 32;
  shown.bits[lane()][1] = a[2] | static_cast<std::uint64_t>(a[3]) << 32;
  shown.bits[lane()][2] = b0 | static_cast<std::uint64_t>(b1) << 32;
  host_.wait_for_warp(thread_);
  const auto half_of = [&](int of_lane, int word, int half) {
    const std::uint64_t bits = shown.bits[of_lane][word / 2] >> (32 * (word % 2) + 16 * half);
    return widen_bits(static_cast<std::uint16_t>(bits));
  };
  float result[4];
  for (int i = 0; i < 4; ++i) {
    const int row = lane() / 4, column = lane() % 4 * 2 + i % 2;
    float sum = c[i];
    for (int k = 0; k < 16; ++k) {
      const int register_of_a = k / 8 * 2 + i / 2, register_of_b = 4 + k / 8;
      sum += half_of(row * 4 + k % 8 / 2, register_of_a, k % 2) * half_of(column * 4 + k % 8 / 2, register_of_b, k % 2);
    }
    result[i] = sum;
  }
  host_.wait_for_warp(thread_);
  std::copy(result, result + 4, c);
}

// PTX ISA, "Shared Memory Matrix Layout": the address decides, not the place in the tile: bits 4 to 6 xor bits 7 to 9.
std::uint16_t HostThread::element_of(Tile from, int row, int column) const {
  const int part = column / kPartColumns;  // of 64 columns
  const auto plain = static_cast<std::uintptr_t>(from.at - host_.shared()) +
                     static_cast<std::uintptr_t>((part * kPartRows + row) * kRowBytes + column % kPartColumns * 2);
  const std::byte* const at = host_.shared() + (plain ^ (plain / kRowBytes % 8 * 16));
  check_shared(at, 2);
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

std::array<std::uint32_t, 4> HostThread::rows_of(Tile a) const {
  std::array<std::uint32_t, 4> result{};
  for (int i = 0; i < 4; ++i) {
    const int row = thread_ / kWarp % 4 * 16 + lane() / 4 + i % 2 * 8, column = lane() % 4 * 2 + i / 2 * 8;
    result[static_cast<std::size_t>(i)] =
        element_of(a, row, column) | static_cast<std::uint32_t>(element_of(a, row, column + 1)) << 16;
  }
  return result;
}

void HostLauncher::gemm(const Gemm& g) {
  const bool is_coded = g.a_codes != Codes::kNone;
  if (is_coded && (g.a_transposed || !g.b_transposed || g.lda % 16 != 0 || g.ldb % 16 != 0 || g.n % 16 != 0))
    throw std::logic_error("a product in 8 bits as cuBLASLt has none");
  for (const void* scale : {g.a_scale, g.b_scale}) {
    if (reinterpret_cast<std::uintptr_t>(scale) % 16 != 0)
      throw std::logic_error("a scale that cuBLASLt does not read");
  }
  if (is_coded && !go_together(g.a_scaling, g.b_scaling))
    throw std::logic_error("scales that cuBLASLt has no product of");
  for (int batch = 0; batch < g.batch; ++batch) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k) {
          const std::int64_t a = batch * g.stride_a + (g.a_transposed ? k * g.lda + i : i * g.lda + k);
          const std::int64_t b = batch * g.stride_b + (g.b_transposed ? j * g.ldb + k : k * g.ldb + j);
          float product = element(g.a, a, g.type, g.a_codes) * element(g.b, b, g.type, g.b_codes);
          if (is_coded) product *= scale_at(g.a_scaling, g.a_scale, i, g.m, k, g.k);
          if (is_coded) product *= scale_at(g.b_scaling, g.b_scale, j, g.n, k, g.k);
          sum += product;
        }
        const std::int64_t at = batch * g.stride_c + i * g.ldc + j;
        sum *= g.alpha;
        if (g.beta != 0) sum += g.beta * element(g.c, at, g.out);
        if (g.bias != nullptr) sum += element(g.bias, j, g.out);
        if (g.epilogue == Epilogue::kGelu) put(g.aux, i * g.n + j, g.out, sum);
        if (g.epilogue == Epilogue::kGelu) sum = gelu(sum).value;
        if (g.epilogue == Epilogue::kGeluGradient) sum *= gelu(element(g.aux, i * g.n + j, g.out)).slope;
        put(g.c, at, g.out, sum);
      }
    }
  }
}

}  // namespace trivium::runtime::cuda
