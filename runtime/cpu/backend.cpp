#include "runtime/cpu/backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "program/ir/alignment.h"
#include "runtime/cpu/kernels.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;    // x86-64's
constexpr std::size_t kManyPages = std::size_t{16} << 20;  // from here on rounding up to huge pages weighs little

std::size_t rounded_up(std::int64_t bytes, std::size_t to) { return (static_cast<std::size_t>(bytes) + to) / to * to; }

}  // namespace

std::string CpuBackend::refusal(const program::Program&, const program::Op& op) const {
  if (op.fp8 == program::Fp8::kNvfp4) {
    return fmt::format("the CPU backend emulates fp8 delayed, current, block and mxfp8, not {}; use --fp8 current",
                       name_of(op.fp8));
  }
  if (find_kernel(op.kind, op.dtype) != nullptr) return "";
  return fmt::format("the CPU backend has no {} kernel in {}", name_of(op.kind), name_of(op.dtype));
}

Memory CpuBackend::allocate(std::int64_t bytes) {
  // A step walks gigabytes, which is faster over huge pages (docs/journal/benchmarks.md).
  const bool many = static_cast<std::size_t>(bytes) >= kManyPages;
  const std::size_t alignment = many ? kHugePage : std::size_t{program::kAlignment},
                    size = rounded_up(bytes, alignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (memory == nullptr) throw std::bad_alloc();
  if (many) ::madvise(memory, size, MADV_HUGEPAGE);  // a wish: where the kernel has none, small pages do
  std::memset(memory, 0, size);
  return Memory(memory, [](std::byte* p) { std::free(p); });
}

void CpuBackend::upload(program::Lane, std::byte* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void CpuBackend::download(void* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void CpuBackend::run(const KernelArguments& a, program::Lane) { kernel_of(*a.op, a.op->dtype)(a); }

void CpuBackend::start_clock(std::int64_t shared_ns) {
  start_ns_ = shared_ns;
  stamps_.clear();
}

std::int32_t CpuBackend::stamp(program::Lane) {
  stamps_.push_back(now_ns());
  return static_cast<std::int32_t>(stamps_.size()) - 1;
}

std::int64_t CpuBackend::since_start_ns(std::int32_t stamp) {
  return std::max<std::int64_t>(0, stamps_[static_cast<std::size_t>(stamp)] - start_ns_);
}

}  // namespace trivium::runtime::cpu
