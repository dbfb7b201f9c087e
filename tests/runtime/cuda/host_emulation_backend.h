// The CUDA backend's kernels in memory of the host, one after the other: whole trainings without a GPU.
#pragma once

#include "runtime/cpu/backend.h"
#include "runtime/cuda/epilogues.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/refusal.h"
#include "tests/runtime/cuda/host_emulations.h"

namespace trivium::runtime::cuda {

/// What becomes of products and activations that could be one.
enum class Fusing { kOff, kOn, kWithoutAlgorithm };

class HostEmulationBackend final : public Backend {
 public:
  explicit HostEmulationBackend(Fusing fusing = Fusing::kOff) : fusing_(fusing) {}
  std::string_view name() const override { return "emulated"; }
  std::string refusal(const program::Program& program, const program::Op& op) const override {
    return refusal_of(program, op);
  }
  Memory allocate(std::int64_t bytes) override { return core_.allocate(bytes); }
  Memory allocate_on_host(std::int64_t bytes) override { return core_.allocate(bytes); }
  bool shares_host_memory() const override { return true; }
  void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) override {
    core_.upload(lane, to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::int64_t bytes) override { core_.download(to, from, bytes); }
  void prepare(const program::Program& program) override {
    if (fusing_ != Fusing::kOff) epilogues_ = Epilogues(program);
  }
  void run(const KernelArguments& a, program::Lane) override {
    const EpiloguePart part = epilogues_.part_of(*a.op);
    if (part == EpiloguePart::kProduct) {
      product_ = a;
    } else if (part != EpiloguePart::kNone) {
      run_emulation_epilogue(part, product_, a, precision_of(a), fusing_ == Fusing::kOn);
      ++fused_;
    } else {
      run_emulation(a, precision_of(a));
    }
  }
  int fused() const { return fused_; }  ///< activations that came with their products
  void enter(program::Lane) override {}
  void mark(std::int32_t, program::Lane) override {}
  void wait(std::int32_t, program::Lane) override {}
  void finish() override {}
  void start_clock(std::int64_t shared_ns) override { core_.start_clock(shared_ns); }
  std::int32_t stamp(program::Lane lane) override { return core_.stamp(lane); }
  std::int64_t since_start_ns(std::int32_t stamp) override { return core_.since_start_ns(stamp); }

 private:
  Fusing fusing_;
  cpu::CpuBackend core_;
  Epilogues epilogues_;
  KernelArguments product_;
  int fused_ = 0;
};

}  // namespace trivium::runtime::cuda
