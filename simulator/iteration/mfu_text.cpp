#include "simulator/iteration/mfu_text.h"

#include <fmt/format.h>

#include "base/readable.h"

namespace trivium::simulator {

std::string mfu_peak_text(const program::Plan& plan) {
  return plan.fp8 == program::Fp8::kNone ? "" : fmt::format(" of the {} peak", name_of(plan.precision));
}

std::string mfu_text(double mfu, const program::Plan& plan) { return base::percent(mfu) + mfu_peak_text(plan); }

std::string mfu_title(const char* name, const program::Plan& plan) {
  return plan.fp8 == program::Fp8::kNone ? name : fmt::format("{} of {} peak", name, name_of(plan.precision));
}

}  // namespace trivium::simulator
