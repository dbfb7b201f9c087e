#include "runtime/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/checkpoint/agree.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/lock.h"
#include "runtime/cpu/backend.h"

namespace trivium::runtime::checkpoint {
namespace {

using base::refuse;

namespace fs = std::filesystem;

ShardFile write_shard(const fs::path& path, const std::vector<Piece>& pieces) {
  std::vector<TensorEntry> entries;
  for (const Piece& piece : pieces) {
    entries.push_back({.name = piece_name(piece.state, stored_name(piece), piece.box),
                       .number = number_of(piece.type),
                       .shape = {piece.box.rows, piece.box.columns}});
  }
  SafetensorsWriter writer(path, std::move(entries), {{"format", "trivium"}});
  for (const Piece& piece : pieces) write_piece(piece, writer);
  writer.finish();
  return {path.filename().string(), writer.bytes(), writer.checksum()};
}

void make_fresh(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) {
    throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: cannot make the folder: {}",
                                                               base::one_line(folder.string()), error.message()));
  }
}

/// A folder that goes when its writer gives up; what was published has another name by then.
class RemovedUnlessPublished {
 public:
  explicit RemovedUnlessPublished(fs::path folder) : folder_(std::move(folder)) {}
  ~RemovedUnlessPublished() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  RemovedUnlessPublished(const RemovedUnlessPublished&) = delete;
  RemovedUnlessPublished& operator=(const RemovedUnlessPublished&) = delete;

 private:
  fs::path folder_;
};

void check_file(const fs::path& folder, const ShardFile& shard) {
  const fs::path path = folder / shard.name;
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) refuse(path, fmt::format("the checkpoint lacks it: {}", error.message()));
  if (static_cast<std::int64_t>(bytes) != shard.bytes) {
    refuse(path, fmt::format("torn: {} bytes, {} were written", bytes, shard.bytes));
  }
  if (SafetensorsFile(path).checksum() != shard.checksum) refuse(path, "altered or torn: its checksum differs");
}

}  // namespace

void save(const fs::path& folder, Description description, std::int64_t keep, const program::Program& program,
          const Arenas& arenas, Communicator& communicator, int everyone) {
  const fs::path unfinished = folder / unfinished_name(description.step);
  const bool leads = communicator.rank() == 0;
  try {
    agree(communicator, everyone, [&]() -> ShardFile {
      if (leads) make_fresh(unfinished);
      return {};
    });
    description.files = agree(communicator, everyone, [&] {
      return write_shard(unfinished / shard_name(communicator.rank()),
                         saved_pieces(program, communicator.rank(), arenas));
    });
    agree(communicator, everyone, [&]() -> ShardFile {
      if (leads) {
        base::write_file_atomically(unfinished / kDescriptionFile, base::json_text(to_json(description), 1) + "\n");
        read_description(unfinished, false);
      }
      // What older checkpoints give way to must be whole on the disk: read again, by each rank its own.
      check_file(unfinished, description.files[static_cast<std::size_t>(communicator.rank())]);
      return {};
    });
    agree(communicator, everyone, [&]() -> ShardFile {
      if (leads) publish(folder, description.step, keep);
      return {};
    });
  } catch (const base::Failure&) {
    std::error_code ignored;
    if (leads) fs::remove_all(unfinished, ignored);
    throw;
  }
}

void write_resharded(const fs::path& folder, Description description, const program::Program& program,
                     const StoredTensors& tensors) {
  const fs::path unfinished = folder / unfinished_name(description.step);
  make_fresh(unfinished);
  const RemovedUnlessPublished guard(unfinished);
  const FolderLock lock(folder, {});
  description.files.clear();
  cpu::CpuBackend core;
  for (int rank = 0; rank < program.mesh.size(); ++rank) {
    const Arenas arenas(program, program.role_of(rank), core, kKeptSpaces);
    fill(tensors, program, rank, arenas);
    description.files.push_back(write_shard(unfinished / shard_name(rank), saved_pieces(program, rank, arenas)));
  }
  base::write_file_atomically(unfinished / kDescriptionFile, base::json_text(to_json(description), 1) + "\n");
  read_description(unfinished, true);
  publish(folder, description.step, 0);
}

void fill(const StoredTensors& tensors, const program::Program& program, int rank, const Arenas& arenas) {
  for (const Piece& piece : needed_pieces(program, rank, arenas)) tensors.fill(piece);
}

Description read_description(const fs::path& path, bool verify) {
  const fs::path file = path / kDescriptionFile;
  Description description = description_from_json(base::read_json_file(file), file.string());
  if (verify) {
    for (const ShardFile& shard : description.files) check_file(path, shard);
  }
  return description;
}

Opened open(const fs::path& path, bool verify) {
  Description description = read_description(path, verify);
  std::vector<fs::path> files;
  for (const ShardFile& shard : description.files) files.push_back(path / shard.name);
  return {path, std::move(description), StoredTensors(files)};
}

Newest newest(const fs::path& folder) {
  Newest result;
  std::error_code error;
  if (fs::exists(folder / kDescriptionFile, error)) {
    read_description(folder, true);
    result.path = folder;
    return result;
  }
  const Listing listing = list(folder);
  for (const fs::path& path : listing.unfinished) {
    result.passed_over.push_back(fmt::format("{}: half-written, ignored", base::one_line(path.string())));
  }
  for (const fs::path& path : listing.whole) {
    try {
      read_description(path, true);
      result.path = path;
      return result;
    } catch (const base::Failure& failure) {
      result.passed_over.push_back(fmt::format("{}; ignored", failure.what()));
    }
  }
  return result;
}

fs::path newest_or_throw(const fs::path& folder) {
  const Newest found = newest(folder);
  if (found.path) return *found.path;
  refuse(folder, found.passed_over.empty() ? "there is no checkpoint here"
                                           : fmt::format("no whole checkpoint here: {}", found.passed_over.front()));
}

}  // namespace trivium::runtime::checkpoint
