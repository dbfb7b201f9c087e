#include "simulator/prepare.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "program/verify/verify.h"
#include "simulator/schedule/engine.h"
#include "simulator/simulate.h"

namespace trivium::simulator {
namespace {

base::Error refusal(const program::Infeasible& why) { return {base::ErrorKind::kNoPlan, why.reason, why.rule}; }

}  // namespace

base::Result<Prepared> prepare(const program::Job& job, const hardware::Cluster& cluster, const PrepareOptions& options,
                               const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  const auto checked = program::check(job);
  if (const auto* no = std::get_if<program::Infeasible>(&checked)) return refusal(*no);
  if (const auto no = unsupported_by(job, cluster)) return refusal(*no);
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) return refusal(*no);
  return prepare(std::get<program::Program>(std::move(lowered)), cluster, options, stop);
}

base::Result<Prepared> prepare(program::Program lowered, const hardware::Cluster& cluster,
                               const PrepareOptions& options, const std::stop_token& stop) {
  Prepared prepared;
  prepared.program = std::move(lowered);
  prepared.memory = memory_of(prepared.program, cluster);
  prepared.too_big = out_of_memory(prepared.memory);
  if (prepared.too_big && options.fits) return refusal(*prepared.too_big);
  if (options.ordered) {
    auto in_order = order(std::move(prepared.program), cluster, stop);
    if (!in_order) return in_order.error();
    prepared.program = std::move(in_order).value();
  }
  if (!options.verified || !options.ordered) return prepared;
  if (const std::vector<std::string> problems = program::verify(prepared.program); !problems.empty()) {
    return base::Error{base::ErrorKind::kRuntime,
                       fmt::format("the program is not sound ({} problems): {}", problems.size(), problems.front())};
  }
  return prepared;
}

}  // namespace trivium::simulator
