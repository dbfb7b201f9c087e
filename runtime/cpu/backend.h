// Cores as a backend: calls do their work, so that lanes need no order of their own.
#pragma once

#include <vector>

#include "runtime/backend.h"

namespace trivium::runtime::cpu {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "CPU"; }
  std::string refusal(const program::Program& program, const program::Op& op) const override;

  Memory allocate(std::int64_t bytes) override;
  Memory allocate_on_host(std::int64_t bytes) override { return allocate(bytes); }
  bool shares_host_memory() const override { return true; }
  void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const std::byte* from, std::int64_t bytes) override;

  void run(const KernelArguments& a, program::Lane lane) override;
  void enter(program::Lane) override {}
  void mark(std::int32_t, program::Lane) override {}
  void wait(std::int32_t, program::Lane) override {}
  void finish() override {}

  void start_clock(std::int64_t shared_ns) override;
  std::int32_t stamp(program::Lane lane) override;
  std::int64_t since_start_ns(std::int32_t stamp) override;

 private:
  std::int64_t start_ns_ = 0;
  std::vector<std::int64_t> stamps_;
};

}  // namespace trivium::runtime::cpu
