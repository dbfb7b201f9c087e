#include "runtime/cuda/graph_recorder.h"

#include "runtime/cuda/check.h"

namespace trivium::runtime::cuda {

void GraphRecorder::begin() {
  TRIVIUM_CHECK_CUDA(cudaStreamBeginCapture(launcher_->stream(), cudaStreamCaptureModeThreadLocal));
  launcher_->records(true);
  issued_before_ = launcher_->issued();
}

GraphRecorder::Recorded GraphRecorder::end() {
  struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
  };
  cudaGraph_t recorded = nullptr;
  TRIVIUM_CHECK_CUDA(cudaStreamEndCapture(launcher_->stream(), &recorded));
  launcher_->records(false);
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph(recorded);
  cudaGraphExec_t made = nullptr;
  TRIVIUM_CHECK_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  Recorded ready{decltype(Recorded::graph)(made), launcher_->issued() - issued_before_};
  // The memory that it needs in addition to the plan's may be missing: that fails here, and the work is issued instead.
  TRIVIUM_CHECK_CUDA(cudaGraphUpload(ready.graph.get(), launcher_->stream()));
  return ready;
}

void GraphRecorder::give_up() {
  launcher_->records(false);
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(launcher_->stream(), &state) != cudaSuccess || state != cudaStreamCaptureStatusNone) {
    cudaGraph_t recorded = nullptr;
    static_cast<void>(cudaStreamEndCapture(launcher_->stream(), &recorded));
    if (recorded != nullptr) static_cast<void>(cudaGraphDestroy(recorded));
  }
  static_cast<void>(cudaGetLastError());  // it was told as the cache's failure
}

void GraphRecorder::launch(const Recorded& recorded) {
  launcher_->count(recorded.launches);
  TRIVIUM_CHECK_CUDA(cudaGraphLaunch(recorded.graph.get(), launcher_->stream()));
}

}  // namespace trivium::runtime::cuda
