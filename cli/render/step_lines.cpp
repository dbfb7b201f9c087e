#include "cli/render/step_lines.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/say.h"
#include "cli/render/render.h"

namespace trivium::cli {

void StepLines::add(std::int64_t step, const std::string& line) {
  if (!lost_.empty()) return;
  const std::string why = try_print(line);
  if (why.empty()) return;
  lost_ = fmt::format("steps from {} on could not be written to standard output: {}", step, why);
  base::say("note: {}; the training goes on\n", lost_);
}

void StepLines::require_whole() const {
  if (!lost_.empty()) throw base::Failure(base::ErrorKind::kRuntime, lost_ + "; all else of the training was done");
}

}  // namespace trivium::cli
