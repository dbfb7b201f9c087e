#include "runtime/cuda/launcher.h"

#include <mutex>
#include <set>
#include <string>

#include "base/say.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/gemm_engine.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {
namespace {

template <class T>
DeviceOperation find(const program::Op& op) {
  if (const DeviceOperation found = find_row_operation<T>(op)) return found;
  if (const DeviceOperation found = find_attention_operation<T>(op)) return found;
  if (const DeviceOperation found = find_state_operation<T>(op)) return found;
  return find_wire_operation(op);
}

}  // namespace

Scratch::~Scratch() { static_cast<void>(cudaFree(memory_)); }

std::byte* Scratch::at_least(std::int64_t bytes) {
  if (bytes > bytes_) {
    device_.await_idle();
    TRIVIUM_CHECK_CUDA(cudaFree(memory_));
    memory_ = nullptr;
    bytes_ = 0;
    void* memory = nullptr;
    TRIVIUM_CHECK_CUDA(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
    memory_ = static_cast<std::byte*>(memory);
    bytes_ = bytes;
    ++moves_;
  }
  return memory_;
}

KernelList& KernelList::get() {
  static KernelList all;
  return all;
}

bool KernelList::add(const void* kernel) {
  kernels_.push_back(kernel);
  return true;
}

void KernelList::load() const {
  for (const void* kernel : kernels_) {
    cudaFuncAttributes attributes{};
    TRIVIUM_CHECK_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  }
}

void Launcher::gemm(const Gemm& gemm) {
  count(1);
  products_.run(gemm, stream_, workspace_.at_least(GemmEngine::kWorkspaceBytes));
}

bool Launcher::try_gemm(const Gemm& gemm) {
  count(1);
  return products_.try_run(gemm, stream_, workspace_.at_least(GemmEngine::kWorkspaceBytes));
}

void Launcher::note(std::string_view words) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  const std::lock_guard lock(mutex);
  if (said.emplace(words).second) base::say("note: {}\n", words);
}

void Launcher::zero(void* to, std::int64_t bytes) {
  count(1);
  if (bytes > 0) TRIVIUM_CHECK_CUDA(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), stream_));
}

void Launcher::copy(void* to, const void* from, std::int64_t bytes) {
  count(1);
  if (bytes > 0) {
    TRIVIUM_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_));
  }
}

EpilogueOperations find_epilogue_operations(const program::Op& activation, program::DType precision) {
  return precision == program::DType::kBf16 ? find_epilogue_operations<Bf16>(activation)
                                            : find_epilogue_operations<Fp16>(activation);
}

DeviceOperation find_operation(const program::Op& op, program::DType precision) {
  if (precision == program::DType::kFp32) return find<float>(op);
  if (precision == program::DType::kBf16) return find<Bf16>(op);
  if (precision == program::DType::kFp16) return find<Fp16>(op);
  return nullptr;
}

}  // namespace trivium::runtime::cuda
