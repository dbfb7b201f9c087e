#include "cli/options/prepare.h"

#include <fmt/format.h>

#include <variant>

#include "base/error.h"
#include "program/verify/verify.h"
#include "simulator/stoppable.h"

namespace trivium::cli {
namespace {

[[noreturn]] void refuse(const program::Infeasible& why) {
  throw base::Failure(base::ErrorKind::kNoPlan, fmt::format("the plan cannot run: {} ({})", why.reason, why.rule));
}

}  // namespace

Prepared prepare(const JobRequest& request, bool ignore_memory, const std::stop_token& stop) {
  const program::Job& job = request.file.job;
  const auto checked = program::check(job);
  if (const auto* no = std::get_if<program::Infeasible>(&checked)) refuse(*no);
  if (const auto no = simulator::unsupported_by(job, request.cluster)) refuse(*no);
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) refuse(*no);
  Prepared prepared;
  prepared.program = std::get<program::Program>(std::move(lowered));
  prepared.memory = simulator::memory_of(prepared.program, request.cluster);
  prepared.too_big = simulator::out_of_memory(prepared.memory);
  if (prepared.too_big && !ignore_memory) {
    throw base::Failure(base::ErrorKind::kNoPlan, fmt::format("the plan does not fit: {}", prepared.too_big->reason));
  }
  prepared.program = simulator::order(std::move(prepared.program), request.cluster, stop).value_or_throw();
  if (const std::vector<std::string> problems = program::verify(prepared.program); !problems.empty()) {
    throw base::Failure(base::ErrorKind::kRuntime,
                        fmt::format("the program is not sound ({} problems): {}", problems.size(), problems.front()));
  }
  return prepared;
}

}  // namespace trivium::cli
