// Snapshots of PyTorch's caching allocator: what a device's memory held at its peak, compared with the plan's
// memory.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/memory/memory.h"

namespace trivium::calibration::foreign {

/// Who allocated a block, by the Python calls on its stack.
enum class Owner {
  kParameters,  ///< made or moved while the model was built
  kGathered,    ///< parameters that FSDP makes whole for a while
  kOptimizer,
  kForward,   ///< activations, and what a forward needs for a moment
  kBackward,  ///< gradients, and what a backward needs for a moment
  kOther
};
constexpr int kOwners = 6;
std::string_view name_of(Owner owner);

struct AllocationSite {
  std::string at;  ///< "model.py:33 forward": the innermost call outside PyTorch, else the innermost
  Owner owner = Owner::kOther;
  std::int64_t bytes = 0, blocks = 0;
};

struct MemorySnapshot {
  std::string file;
  std::optional<int> rank;          ///< the number that the file's name ends with
  std::int64_t peak_bytes = 0;      ///< allocated at most, while it was recorded
  std::int64_t reserved_bytes = 0;  ///< of the device, when the snapshot was taken
  std::map<Owner, std::int64_t> at_peak;
  std::vector<AllocationSite> sites;          ///< at the peak, the largest first
  std::optional<std::int64_t> refused_bytes;  ///< of the request that ran out of memory
  std::int64_t events = 0;                    ///< recorded; 0: of the peak nothing is known but what lies there now
};

/// A pickle of `torch.cuda.memory._dump_snapshot`, PyTorch 2.1 to 2.10; of several devices the one with most. Errors:
/// Failure(kInput) naming the file and what is wrong.
MemorySnapshot read_memory_snapshot(std::string_view bytes, const std::string& file);

/// Whether the content is such a snapshot.
bool is_memory_snapshot(std::string_view bytes);

/// Schema `trivium.memory-comparison/1`. `predicted`: of the snapshot's rank.
nlohmann::json to_json(const MemorySnapshot& snapshot, const std::optional<simulator::StageMemory>& predicted);
std::string to_text(const MemorySnapshot& snapshot, const std::optional<simulator::StageMemory>& predicted);

}  // namespace trivium::calibration::foreign
