// A stream's work as a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "runtime/cuda/launcher.h"

namespace trivium::runtime::cuda {

/// What GraphCache records with. The launcher outlives it.
class GraphRecorder {
 public:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  struct Recorded {
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> graph;
    std::int64_t launches = 0;  ///< that were recorded
  };

  explicit GraphRecorder(Launcher& launcher) : launcher_(&launcher) {}
  void begin();    ///< of this thread's work alone: what other threads do meanwhile is not recorded
  Recorded end();  ///< throws Aborted where something was issued that a graph cannot hold
  void give_up();  ///< the stream issues again
  void launch(const Recorded& recorded);
  std::uint64_t generation() const { return launcher_->generation(); }

 private:
  Launcher* launcher_;
  std::int64_t issued_before_ = 0;
};

}  // namespace trivium::runtime::cuda
