#include "cli/options/prepare.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trivium::cli {

namespace {

[[noreturn]] void refuse(const base::Error& why) {
  if (why.kind != base::ErrorKind::kNoPlan) throw base::Failure(why);
  const bool is_too_big = why.rule == simulator::kMemoryRule || why.rule == simulator::kHostMemoryRule;
  throw base::Failure(why.kind, is_too_big ? fmt::format("the plan does not fit: {}", why.message)
                                           : fmt::format("the plan cannot run: {} ({})", why.message, why.rule));
}

}  // namespace

simulator::Prepared prepare(const JobRequest& request, bool ignore_memory, const std::stop_token& stop) {
  auto prepared = simulator::prepare(request.file.job, request.cluster, {.fits = !ignore_memory}, stop);
  if (!prepared) refuse(prepared.error());
  return std::move(prepared).value();
}

simulator::Prediction predict(const JobRequest& request, bool ignore_memory, const simulator::SimulationOptions& how,
                              const std::stop_token& stop) {
  auto predicted =
      simulator::predict(request.file.job, request.cluster, {.fits = !ignore_memory, .simulation = how}, stop);
  if (!predicted) refuse(predicted.error());
  return std::move(predicted).value();
}

}  // namespace trivium::cli
