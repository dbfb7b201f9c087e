#include "tests/runtime/fake_gpu/machine.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/cuda/backoff.h"

namespace trivium::fake_gpu {
namespace {

constexpr std::size_t kArenaBytes = std::size_t{512} << 30;  // of addresses; pages come when they are touched
constexpr std::size_t kAlignment = 256, kRim = 256;          // cudaMalloc's alignment
constexpr std::size_t kSpoiled = std::size_t{1} << 20;       // of either end of an allocation
constexpr std::byte kRimByte{0xa5}, kSpoiltByte{0xff};       // NaN in every type

std::string_view wish(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

std::size_t number(std::string_view text) {
  return text.empty() ? 0 : std::strtoull(std::string(text).c_str(), nullptr, 10);
}

std::size_t room(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment + kRim; }

void spoil(std::byte* memory, std::size_t bytes) {
  const std::size_t some = std::min(bytes, kSpoiled);
  std::fill_n(memory, some, kSpoiltByte);
  std::fill_n(memory + bytes - some, some, kSpoiltByte);
}

}  // namespace

// FAKE_GPU: eager, late, or the seed of a shuffle. FAKE_GPU_DEVICES, FAKE_GPU_BYTES (of each), FAKE_GPU_QUEUE (places
// of a stream; NVIDIA documents none, about a thousand are seen), FAKE_GPU_SM (90), FAKE_GPU_COMPUTE=0,
// FAKE_GPU_GUARD=1 (the host cannot touch device memory: it ends by a signal where it does).
Machine::Machine() {
  const std::string_view pace = wish("FAKE_GPU");
  pace_ = pace == "eager" ? Pace::kEager : pace == "late" ? Pace::kLate : Pace::kShuffled;
  dice_.seed(static_cast<unsigned>(number(pace)));
  if (const std::size_t devices = number(wish("FAKE_GPU_DEVICES")); devices > 0) devices_ = static_cast<int>(devices);
  if (const std::size_t bytes = number(wish("FAKE_GPU_BYTES")); bytes > 0) bytes_of_device_ = bytes;
  if (const std::size_t places = number(wish("FAKE_GPU_QUEUE")); places > 0) queue_ = places;
  if (const std::size_t sm = number(wish("FAKE_GPU_SM")); sm > 0) compute_capability_ = static_cast<int>(sm);
  computes_ = wish("FAKE_GPU_COMPUTE") != "0";
  guards_ = wish("FAKE_GPU_GUARD") == "1";
  void* memory = ::mmap(nullptr, kArenaBytes, guards_ ? PROT_NONE : PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) refuse("no addresses for device memory");
  arena_ = static_cast<std::byte*>(memory);
}

Machine& Machine::get() {
  static Machine* const machine = new Machine();  // outlives whoever frees at exit
  return *machine;
}

void Machine::refuse(const std::string& what) {
  fmt::print(stderr, "fake GPU: {}\n", what);
  std::abort();
}

void Machine::open_memory(bool open) {
  if (guards_) ::mprotect(arena_, room(used_), open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool Machine::attempt(cudaStream_t stream) {
  const bool done = stream->work.front()();
  if (done) stream->work.pop_front();
  return done;
}

bool Machine::progress() {
  constexpr unsigned kStreak = 16;  // a stream that goes first does so for a while, and gets far ahead of the others
  if (ordered_ != streams || dice_() % kStreak == 0) {
    ordered_ = streams;
    order_.assign(streams.begin(), streams.end());
    std::shuffle(order_.begin(), order_.end(), dice_);
  }
  open_memory(true);
  bool any = false;
  for (const cudaStream_t stream : order_) {
    if (!stream->work.empty() && attempt(stream)) {
      any = true;
      break;
    }
  }
  open_memory(false);
  return any;
}

void Machine::await(const std::function<bool()>& done) {
  runtime::cuda::Backoff backoff;
  while (!done()) {
    if (progress()) {
      backoff = {};
      continue;
    }
    mutex.unlock();
    backoff.pause();
    mutex.lock();
  }
}

void Machine::load(const void* kernel) {
  const int device = current_device();
  if (loaded_.emplace(device, kernel).second) await([&] { return idle(device); });
}

bool Machine::idle(int device) const {
  return std::all_of(streams.begin(), streams.end(),
                     [&](cudaStream_t s) { return s->device != device || s->work.empty(); });
}

bool Machine::is_full(cudaStream_t stream) const { return stream->work.size() >= queue_; }

void Machine::issue(cudaStream_t stream, Work work) {
  if (!streams.contains(stream)) refuse("work for a stream that is not there");
  if (stream->device != current_device()) refuse("work for a stream of another device than the thread's");
  if (stream->records) {
    stream->recorded.push_back(std::move(work));
    return;
  }
  await([&] { return !is_full(stream); });
  stream->work.push_back(std::move(work));
  constexpr int kMostAtOnce = 3;
  int left = pace_ == Pace::kLate ? 0 : pace_ == Pace::kEager ? 1 << 30 : static_cast<int>(dice_() % kMostAtOnce);
  while (left-- > 0 && progress()) {
  }
}

std::byte* Machine::allocate(int device, std::size_t bytes) {
  if (taken_[device] + bytes > bytes_of_device_) return nullptr;
  std::byte* memory = nullptr;
  const std::size_t whole = room(bytes);
  if (const auto old = freed_.find(whole); old != freed_.end()) {
    memory = old->second;
    freed_.erase(old);
  } else {
    if (used_ + whole > kArenaBytes) refuse("no addresses left");
    memory = arena_ + used_;
    used_ += whole;
  }
  taken_[device] += bytes;
  open_memory(true);
  spoil(memory, bytes);
  std::fill(memory + bytes, memory + whole, kRimByte);
  open_memory(false);
  blocks_[memory] = {bytes, device};
  return memory;
}

void Machine::check_rim(const std::byte* memory, const Block& block) {
  const std::byte* const end = memory + room(block.bytes);
  if (std::any_of(memory + block.bytes, end, [](std::byte b) { return b != kRimByte; })) {
    refuse(fmt::format("something wrote past the end of an allocation of {} bytes", block.bytes));
  }
}

bool Machine::free(void* memory) {
  const auto found = blocks_.find(static_cast<const std::byte*>(memory));
  if (found == blocks_.end()) return false;
  open_memory(true);
  check_rim(found->first, found->second);
  spoil(static_cast<std::byte*>(memory), found->second.bytes);
  open_memory(false);
  taken_[found->second.device] -= found->second.bytes;
  freed_.emplace(room(found->second.bytes), static_cast<std::byte*>(memory));
  blocks_.erase(found);
  return true;
}

std::byte* Machine::allocate_pinned(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, room(bytes)));
  spoil(memory, bytes);
  pinned_[memory] = {bytes, 0};
  return memory;
}

bool Machine::free_pinned(void* memory) {
  const auto found = pinned_.find(static_cast<const std::byte*>(memory));
  if (found == pinned_.end()) return false;
  pinned_.erase(found);
  std::free(memory);
  return true;
}

std::size_t Machine::bytes_left(int device) const {
  const auto taken = taken_.find(device);
  return bytes_of_device_ - (taken == taken_.end() ? 0 : taken->second);
}

template <class Blocks>
static bool holds(const Blocks& blocks, const void* memory, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(memory);
  auto next = blocks.upper_bound(from);
  if (next == blocks.begin()) return false;
  const auto& [start, block] = *--next;
  return from + bytes <= start + block.bytes;
}

bool Machine::on_device(const void* memory, std::size_t bytes) const { return holds(blocks_, memory, bytes); }
bool Machine::pinned(const void* memory, std::size_t bytes) const { return holds(pinned_, memory, bytes); }

int& current_device() {
  thread_local int device = 0;
  return device;
}

}  // namespace trivium::fake_gpu
