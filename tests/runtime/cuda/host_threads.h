// Kernels on the host: every thread of a block is a fiber, so that barriers, shuffles and products of a warp mean what
// they mean on the device. The kernels' source is that of the device.
#pragma once

#include <setjmp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/simt.h"
#include "runtime/kernel.h"

namespace trivium::runtime::cuda {

/// In which order a block's threads, and a grid's blocks, take their turns between barriers. On the device there is
/// none: where results depend on it, something is read or written that nobody waited for. But for kAscending a warp
/// runs as far ahead of the others as the block's barriers let it.
enum class Turns { kAscending, kDescending, kShuffled };

/// 0 … count - 1 in the order of the turns; `seed` makes one shuffle differ from another.
std::vector<int> in_turns(int count, Turns turns, unsigned seed);

/// A block's threads, run in turn on the caller's thread. A fiber that waits for others gives way to the next.
class HostBlock {
 public:
  explicit HostBlock(int threads);
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  /// That of the calling thread with so many threads: fibers begin once and run block after block.
  static HostBlock& of(int threads);

  /// Runs body(thread) for all threads, with so much shared memory.
  void run(const std::function<void(int)>& body, int shared_bytes, Turns turns = Turns::kAscending);

  /// Waits until all threads of the block, or of the caller's warp, that have not ended came here as often.
  void wait_for_block(int thread) { wait(thread, block_, next_); }
  void wait_for_warp(int thread) { wait(thread, warps_[static_cast<std::size_t>(thread / kWarp)], *next_in_warp_); }

  static constexpr std::size_t kSharedAlignment = 1024;
  struct Exchange {  ///< what the threads of a warp show each other
    std::uint64_t bits[kWarp][4];
  };
  Exchange& exchange(int thread) { return exchanges_[static_cast<std::size_t>(thread / kWarp)]; }
  bool& vote() { return vote_; }
  /// Where a multiple of kSharedAlignment bytes begins.
  std::byte* shared() {
    const auto at = reinterpret_cast<std::uintptr_t>(shared_.data());
    return shared_.data() + (kSharedAlignment - at % kSharedAlignment) % kSharedAlignment;
  }
  std::size_t shared_bytes() const { return shared_.size() - kSharedAlignment; }
  int threads() const { return threads_; }
  Turns turns() const { return turns_; }

 private:
  struct Barrier {
    int members = 0, arrived = 0;
    std::uint64_t round = 0;
  };
  struct Fiber {
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    bool begun = false, ended = false;
  };
  void wait(int thread, Barrier& barrier, const std::vector<int>& next);
  void yield(int thread, const std::vector<int>& next);
  void leave(int thread);
  /// From the place that is noted in `from` to where the thread stands.
  void go_on(jmp_buf& from, int thread);
  static void enter();

  int threads_, running_ = 0;
  Turns turns_ = Turns::kAscending;  // of the block at hand
  unsigned blocks_run_ = 0;
  std::vector<int> next_, next_of_warp_;           // by thread: whose turn comes after its own
  const std::vector<int>* next_in_warp_ = &next_;  // while the warp is waited for
  Barrier block_;
  std::vector<Barrier> warps_;
  std::vector<Exchange> exchanges_;
  std::vector<Fiber> fibers_;
  jmp_buf caller_;
  std::vector<std::byte> shared_;
  const std::function<void(int)>* body_ = nullptr;
  bool vote_ = false;
};

/// The kernels' `Thread` (runtime/cuda/kernels/simt.h).
class HostThread {
 public:
  HostThread(HostBlock& block, int thread, std::int64_t number, std::int64_t blocks)
      : host_(block), thread_(thread), block_(number), blocks_(blocks) {}
  int thread() const { return thread_; }
  int threads() const { return host_.threads(); }
  std::int64_t block() const { return block_; }
  std::int64_t blocks() const { return blocks_; }
  std::byte* shared() { return host_.shared(); }
  void sync() { host_.wait_for_block(thread_); }

  bool any(bool mine) {
    host_.vote() = false;
    sync();
    if (mine) host_.vote() = true;
    sync();
    const bool result = host_.vote();
    sync();
    return result;
  }

  void raise(float* at, float value) { *at = std::max(*at, value); }

  template <class V>
  V shuffle_xor(V v, int mask) {
    static_assert(sizeof(V) <= 8);
    std::memcpy(host_.exchange(thread_).bits[lane()], &v, sizeof v);
    host_.wait_for_warp(thread_);
    std::memcpy(&v, host_.exchange(thread_).bits[lane() ^ mask], sizeof v);
    host_.wait_for_warp(thread_);
    return v;
  }

  std::uint32_t ballot(bool mine) {
    host_.exchange(thread_).bits[lane()][0] = mine ? 1 : 0;
    host_.wait_for_warp(thread_);
    std::uint32_t all = 0;
    for (int i = 0; i < kWarp; ++i) all |= static_cast<std::uint32_t>(host_.exchange(thread_).bits[i][0] & 1U) << i;
    host_.wait_for_warp(thread_);
    return all;
  }

  // At once, or as late as may be: nobody may count on either.
  void copy_ahead(void* to, const void* from, bool valid) { copy_bytes_ahead(to, from, valid, 16); }
  void copy_word_ahead(void* to, const void* from, bool valid) { copy_bytes_ahead(to, from, valid, 4); }
  void await_copies() {
    for (const Copy& copy : copies_) {
      if (copy.from != nullptr) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      } else {
        std::memset(copy.to, 0, copy.bytes);
      }
    }
    copies_.clear();
  }

  void matrix(const void* row, std::uint32_t (&to)[4]) { matrices(row, to, false); }
  void matrix_transposed(const void* row, std::uint32_t (&to)[4]) { matrices(row, to, true); }
  template <class T>
  void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, T) {
    multiply_as(c, a, b0, b1, [](std::uint16_t bits) { return widen(T{bits}); });
  }

  struct Tile {
    const std::byte* at;
    Tile after(int bytes) const { return {at + bytes}; }
  };
  Tile tile(const void* place) const {
    if (reinterpret_cast<std::uintptr_t>(place) % HostBlock::kSharedAlignment != 0)
      throw std::logic_error("a tile that does not begin where products read it");
    return {static_cast<const std::byte*>(place)};
  }
  void await_copies_for_products() { await_copies(); }
  void begin_products() {}
  void end_products() { ++batches_; }
  template <int kUnderWay, class Accumulators>
  void await_products(Accumulators&) {
    while (!products_.empty() && products_.front().batch < batches_ - kUnderWay) {
      const std::function<void()> work = std::move(products_.front().work);
      products_.pop_front();
      work();
    }
  }
  template <bool kColumns, int N, class T>
  void multiply_group(float (&c)[N][4], const std::uint32_t (&a)[4], Tile b, bool adds, T) {
    const std::array<std::uint32_t, 4> left{a[0], a[1], a[2], a[3]};
    later([this, &c, left, b, adds] { multiply_tile<T>(c, left, b, kColumns, adds); });
  }
  template <class T>
  void multiply_group_shared(float (&c)[8][4], Tile a, Tile b, bool adds, T) {
    later([this, &c, a, b, adds] { multiply_tile<T>(c, rows_of(a), b, false, adds); });
  }

 private:
  int lane() const { return thread_ % kWarp; }
  void copy_bytes_ahead(void* to, const void* from, bool valid, std::size_t bytes) {
    check_vector(from, bytes);
    check_shared(to, bytes);
    copies_.push_back({to, valid ? from : nullptr, bytes});
    if (host_.turns() == Turns::kAscending) await_copies();
  }
  /// What the device moves as so many bytes is aligned to them.
  static void check_vector(const void* place, std::size_t bytes) {
    if (reinterpret_cast<std::uintptr_t>(place) % bytes != 0) throw std::logic_error("a vector that is not aligned");
  }
  void check_shared(const void* place, std::size_t bytes) const {
    check_vector(place, bytes);
    const auto* at = static_cast<const std::byte*>(place);
    if (at < host_.shared() || at + bytes > host_.shared() + host_.shared_bytes())
      throw std::logic_error("a vector outside of shared memory");
  }
  void multiply_as(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                   float (*widen_bits)(std::uint16_t));
  void matrices(const void* row, std::uint32_t (&to)[4], bool transposed);
  /// Products of a warpgroup are done at once or as late as they are awaited.
  void later(std::function<void()> product) {
    if (host_.turns() == Turns::kAscending) return product();
    products_.push_back({batches_, std::move(product)});
  }
  /// Element (row, column) of a tile in the layout of flash_warpgroup_tiles.h, of whose first columns `from` is a part.
  std::uint16_t element_of(Tile from, int row, int column) const;
  /// The thread's part of the warp's 16 rows and 16 columns.
  std::array<std::uint32_t, 4> rows_of(Tile a) const;
  template <class T, int N>
  void multiply_tile(float (&c)[N][4], const std::array<std::uint32_t, 4>& a, Tile b, bool columns, bool adds) {
    const std::uint32_t left[4] = {a[0], a[1], a[2], a[3]};
    for (int n = 0; n < N; ++n) {
      if (!adds) std::fill(c[n], c[n] + 4, 0.0F);
      const int column = 8 * n + lane() / 4, row = lane() % 4 * 2;
      const auto pair = [&](int k) {
        const auto at = [&](int i) { return columns ? element_of(b, i, column) : element_of(b, column, i); };
        return at(k) | static_cast<std::uint32_t>(at(k + 1)) << 16;
      };
      multiply(c[n], left, pair(row), pair(row + 8), T{});
    }
  }

  struct Copy {
    void* to;
    const void* from;  ///< null for zeros
    std::size_t bytes;
  };
  struct Product {
    int batch;
    std::function<void()> work;
  };
  HostBlock& host_;
  int thread_;
  std::int64_t block_, blocks_;
  std::vector<Copy> copies_;
  int batches_ = 0;  // of products that were closed
  std::deque<Product> products_;
};

/// What ops_*.h ask of a launcher, done at once.
class HostLauncher {
 public:
  template <class Kernel>
  void run(const Kernel& kernel, std::int64_t blocks, int threads, int shared_bytes = 0) {
    launches.emplace_back(blocks, threads);
    if (threads % kWarp != 0) throw std::logic_error("a block of broken warps");
    HostBlock& block = HostBlock::of(threads);
    for (const int b : in_turns(static_cast<int>(blocks), turns, 0)) {
      const auto body = [&](int thread) {
        HostThread t(block, thread, b, blocks);
        kernel(t);
      };
      block.run(body, shared_bytes, turns);
    }
  }
  void gemm(const Gemm& gemm);
  bool try_gemm(const Gemm& g) {
    if (!fuses) return false;
    gemm(g);
    return true;
  }
  void zero(void* to, std::int64_t bytes) { std::memset(to, 0, static_cast<std::size_t>(bytes)); }
  void copy(void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); }
  bool has_tiles() const { return true; }
  bool has_warpgroups() const { return warpgroups; }
  ScaledProducts scaled_products() const { return scaled; }
  void note(std::string_view words) { notes.emplace_back(words); }
  bool warpgroups = false;
  ScaledProducts scaled = ScaledProducts::kNone;
  std::vector<std::string> notes;
  bool fuses = true;  ///< whether its products do epilogues
  Turns turns = Turns::kAscending;
  std::vector<std::pair<std::int64_t, int>> launches;  ///< blocks and threads of what has run
  std::byte* scratch(std::int64_t bytes) {
    scratch_.resize(static_cast<std::size_t>(bytes));
    return scratch_.data();
  }

 private:
  std::vector<std::byte> scratch_;
};

}  // namespace trivium::runtime::cuda
