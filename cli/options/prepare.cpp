#include "cli/options/prepare.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trivium::cli {

simulator::Prepared prepare(const JobRequest& request, bool ignore_memory, const std::stop_token& stop) {
  auto prepared = simulator::prepare(request.file.job, request.cluster, {.fits = !ignore_memory}, stop);
  if (prepared) return std::move(prepared).value();
  const base::Error& why = prepared.error();
  if (why.kind != base::ErrorKind::kNoPlan) throw base::Failure(why);
  const bool is_too_big = why.rule == simulator::kMemoryRule || why.rule == simulator::kHostMemoryRule;
  throw base::Failure(why.kind, is_too_big ? fmt::format("the plan does not fit: {}", why.message)
                                           : fmt::format("the plan cannot run: {} ({})", why.message, why.rule));
}

}  // namespace trivium::cli
