#include "runtime/executor/arenas.h"

#include "runtime/cpu/backend.h"

namespace trivium::runtime {
namespace {

using program::Space;

std::array<Space, program::kSpaces> all_spaces() {
  std::array<Space, program::kSpaces> spaces{};
  for (std::size_t s = 0; s < spaces.size(); ++s) spaces[s] = static_cast<Space>(s);
  return spaces;
}

}  // namespace

Arenas::Arenas(const program::Program& program, const program::Role& role, Backend& backend)
    : Arenas(program, role, backend, all_spaces()) {}

Arenas::Arenas(const program::Program& program, const program::Role& role, Backend& backend,
               std::span<const Space> spaces)
    : program_(program), role_(role) {
  for (const Space space : spaces) {
    const auto s = static_cast<std::size_t>(space);
    if (program.settings.storage_of(space) == program::Storage::kDisk && role.bytes[s] > 0) {
      files_[s] = std::make_unique<DiskArena>(static_cast<std::size_t>(role.bytes[s]));
      continue;
    }
    memory_[s] =
        program::is_offloaded(space) ? backend.allocate_on_host(role.bytes[s]) : backend.allocate(role.bytes[s]);
    if (!program::is_offloaded(space)) bytes_ += role.bytes[s];
  }
}

std::byte* Arenas::base(int chunk, Space space, int frame, int delayed) const {
  const program::Chunk& part = role_.chunks[static_cast<std::size_t>(chunk)];
  const auto s = static_cast<std::size_t>(space);
  std::int64_t offset = part.base[s];
  if (space == Space::kFrame || space == Space::kTokens || space == Space::kOffloadedActivation) {
    offset += frame * program_.kinds[static_cast<std::size_t>(part.kind)].bytes[s];
  }
  if (space == Space::kDeferred) {
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

std::byte* Arenas::address(const program::Task& task, int buffer) const {
  const program::Chunk& chunk = role_.chunks[static_cast<std::size_t>(task.chunk)];
  const auto kind_of = [&](const program::Chunk& of) -> const program::ChunkTemplate& {
    return program_.kinds[static_cast<std::size_t>(of.kind)];
  };
  if (task.input_frame < 0 || buffer != kind_of(chunk).input) {
    return address(task.chunk, buffer, task.frame, task.deferred_frame);
  }
  const int before = chunk.input_from;
  return address(before, kind_of(role_.chunks[static_cast<std::size_t>(before)]).output, task.input_frame);
}

Arenas Arenas::on_host(Backend& backend, std::span<const Space> spaces) const {
  cpu::CpuBackend host;
  Arenas copy(program_, role_, host, spaces);
  for (const Space s : spaces) backend.download(copy.space(s), space(s), role_.bytes[static_cast<std::size_t>(s)]);
  return copy;
}

void Arenas::take(Backend& backend, const Arenas& host, std::span<const Space> spaces) {
  for (const Space s : spaces) {
    backend.upload(program::Lane::kCompute, space(s), host.space(s), role_.bytes[static_cast<std::size_t>(s)]);
  }
}

}  // namespace trivium::runtime
