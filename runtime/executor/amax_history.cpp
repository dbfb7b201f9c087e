// Casts whose scales come from the steps before (fp8 delayed): what a step begins with.
#include <vector>

#include "program/ir/fp8_layout.h"
#include "runtime/executor/rank_executor.h"

namespace trivium::runtime {

using program::AmaxHistory;

// The step's largest numbers are those of its own passes: a validation leaves none. Whether there is a history is seen
// by a chunk's first site, the input of its first product, which is nowhere 0; all ranks of a stage have the same one.
void RankExecutor::begin_history() {
  for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
    const program::ChunkTemplate& kind = program_.kinds[static_cast<std::size_t>(role_.chunks[c].kind)];
    if (kind.history == program::kNoBuffer) continue;
    std::byte* const history = arenas_.address(static_cast<int>(c), kind.history, 0);
    const std::int64_t row = kind.sites * size_of(program::DType::kFp32);
    const std::vector<float> none(static_cast<std::size_t>(kind.sites));
    backend_.upload(program::Lane::kCompute, history + AmaxHistory::kThisStep * row, none.data(), row);
    if (!has_history_) {
      float largest = 0;
      backend_.download(&largest, history + AmaxHistory::kOfWindow * row, sizeof largest);
      has_history_ = largest > 0;
      if (has_history_) backend_.forget_replays();  // they look first
    }
    values_.looks_first = !has_history_;
  }
}

}  // namespace trivium::runtime
