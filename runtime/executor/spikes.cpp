#include "runtime/executor/spikes.h"

#include <algorithm>
#include <cmath>

namespace trivium::runtime {
namespace {

constexpr double kDeviationOfNormal = 1.4826;  // standard deviation over median absolute deviation

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double middle(const std::deque<double>& values) { return middle(std::vector<double>(values.begin(), values.end())); }

void keep(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > SpikeWatch::kWindow) values.pop_front();
}

}  // namespace

std::vector<program::Spike> SpikeWatch::after(const program::StepRecord& step) {
  std::vector<program::Spike> found;
  if (losses_.size() >= kLeast) {
    const double typical = middle(losses_);
    std::vector<double> off;
    for (const double loss : losses_) off.push_back(std::abs(loss - typical));
    const double allowed =
        std::max(kDeviations * kDeviationOfNormal * middle(std::move(off)), kRise * std::abs(typical));
    if (step.loss > typical + allowed) found.push_back({step.step, "loss", step.loss, typical});
  }
  if (norms_.size() >= kLeast) {
    const double typical = middle(norms_);
    if (step.grad_norm > kNormFactor * typical) found.push_back({step.step, "grad_norm", step.grad_norm, typical});
  }
  const auto spiked = [&](const std::string& of) {
    return std::any_of(found.begin(), found.end(), [&](const program::Spike& s) { return s.of == of; });
  };
  if (!spiked("loss")) keep(losses_, step.loss);
  if (!spiked("grad_norm")) keep(norms_, step.grad_norm);
  return found;
}

}  // namespace trivium::runtime
