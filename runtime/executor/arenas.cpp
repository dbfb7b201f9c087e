#include "runtime/executor/arenas.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace trivium::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // what kernels are promised

}  // namespace

void Arenas::Free::operator()(std::byte* p) const { std::free(p); }

Arenas::Arenas(const program::Program& program, const program::Role& role) : program_(program), role_(role) {
  const program::Offload& offload = program.job.plan.offload;
  for (std::size_t s = 0; s < program::kSpaces; ++s) {
    const auto which = static_cast<program::Space>(s);
    const program::Storage storage = which == program::Space::kAwayState   ? offload.optimizer
                                     : which == program::Space::kAwayFrame ? offload.activations
                                                                           : program::Storage::kNone;
    const auto wanted = static_cast<std::size_t>(role.bytes[s]);
    if (storage == program::Storage::kDisk && wanted > 0) {
      files_[s].emplace(wanted);
      continue;
    }
    const std::size_t size = (wanted + kAlignment) / kAlignment * kAlignment;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, size);
    memory_[s].reset(memory);
    if (!program::is_away(which)) bytes_ += role.bytes[s];
  }
}

std::byte* Arenas::base(int chunk, program::Space space, int frame, int delayed) const {
  const program::Chunk& part = role_.chunks[static_cast<std::size_t>(chunk)];
  const auto s = static_cast<std::size_t>(space);
  std::int64_t offset = part.base[s];
  if (space == program::Space::kFrame || space == program::Space::kTokens || space == program::Space::kAwayFrame) {
    offset += frame * program_.kinds[static_cast<std::size_t>(part.kind)].bytes[s];
  }
  if (space == program::Space::kDelayed) {
    offset += delayed * program_.kinds[static_cast<std::size_t>(part.kind)].bytes[s];
  }
  return this->space(space) + offset;
}

std::byte* Arenas::address(int chunk, int buffer, int frame, int delayed) const {
  if (buffer == program::kNoBuffer) return nullptr;
  const program::Chunk& part = role_.chunks[static_cast<std::size_t>(chunk)];
  const program::Buffer& b =
      program_.kinds[static_cast<std::size_t>(part.kind)].buffers[static_cast<std::size_t>(buffer)];
  return base(chunk, b.space, frame, delayed) + b.offset;
}

}  // namespace trivium::runtime
